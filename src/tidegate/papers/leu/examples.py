"""L1 to L4: the paper's worked examples, and LEU as a stack algorithm on random sequences.

Both by the paper's own equations, in rational arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.analysis.exact import leu_curve, leu_misses
from tidegate.analysis.exact.leu.rational import distributions, exact_leu
from tidegate.display.figures import COLOURS
from tidegate.papers.ledger import Finding, load_claims
from tidegate.papers.pictures import new_axes
from tidegate.papers.report import Exhibit, make_exhibit

CLAIMS = load_claims("leu")


class ExampleBlock(NamedTuple):
    """A block at some time: touches since its last one, its priority, and the lease that has it."""

    tesla: int
    priority: Fraction
    lease: int | None


def priorities(
    period: str, now: int, references: Sequence[str] | None = None
) -> dict[str, ExampleBlock]:
    """Return every block at time ``now`` (from 1) of a sequence that repeats this period.

    >>> priorities("axayaz", 6)["x"]
    ExampleBlock(tesla=4, priority=Fraction(1, 2), lease=6)
    """
    owners = references or period
    known = distributions(period, owners, endless=True)
    last = {block: i for i, block in enumerate(period[:now], start=1)}
    return {
        block: ExampleBlock(now - i, *known[owners[i - 1]].priority(now - i))
        for block, i in last.items()
    }


REFERENCES = ["r1", "r2"] * 3  # a is touched by r1, all others by r2
_FIGURE_3 = {"a": "1 (lease 2)", "x": "1/2 (lease 6)", "y": "1/4 (lease 6)", "z": "1/6 (lease 6)"}
_PRINTED = {"a": "1", "x": "1/2", "y": "1/3", "z": "1/4"}


ERRATUM = (
    "The digits that 3.1 prints for aaxyz (1/2, 1/3, 1/4) are an erratum: the paper's own equation "
    "2, with the TESLA of its Figure 3, 0 for the block just touched, has 1/3, 1/4, 1/5. The "
    "order, which is the claim, is the same."
)


def example_findings() -> Iterator[Finding]:
    """Yield the findings on L1 to L3."""
    by_block = priorities("axayaz", 6)
    for name, said in _FIGURE_3.items():
        ours = f"{by_block[name].priority} (lease {by_block[name].lease})"
        yield CLAIMS["L1"].for_part(name).exact(ours, said)
    other = priorities("aaxyz", 5)
    ranked = sorted(other, key=lambda name: -other[name].priority)
    yield CLAIMS["L2"].for_part("order").exact(", ".join(ranked), "a, x, y, z")
    by_reference = priorities("axayaz", 6, REFERENCES)
    for name in "xyz":
        ours, said = (str(blocks[name].priority) for blocks in (by_reference, by_block))
        yield CLAIMS["L3"].for_part(name).exact(ours, said)


def examples_figure() -> Exhibit:
    """Return all three examples, and how a priority depends on TESLA."""
    cases = (
        ("axayaz, blocks", priorities("axayaz", 6), _FIGURE_3),
        ("axayaz, references", priorities("axayaz", 6, REFERENCES), _FIGURE_3),
        ("aaxyz, blocks", priorities("aaxyz", 5), _PRINTED),
    )
    rows = [
        (case, name, b.tesla, str(b.priority), b.lease, said[name])
        for case, blocks, said in cases
        for name, b in sorted(blocks.items())
    ]
    columns = ("example", "block", "TESLA", "priority", "lease", "paper")
    table = pl.DataFrame(rows, schema=columns, orient="row")
    title = "the worked examples"
    return make_exhibit("leu", "Figure 3", title, table, draw_examples, [ERRATUM])


def draw_examples() -> Figure:
    """Draw the priority of both references over TESLA, with the blocks at time 6."""
    title = (
        "axayaz … at time 6: the lowest, z, would be evicted; "
        "× the interval has passed, nothing is expected"
    )
    figure, axes = new_axes(8, 3.4, title, xlabel="TESLA: touches since the last one")
    axes.set(ylabel="priority: uses per touch of staying", ylim=(-0.04, 1.18))
    known = distributions("axayaz", REFERENCES, endless=True)
    for reference, colour in zip(("r1", "r2"), COLOURS, strict=False):
        longest = max(known[reference].counts)
        heights = [float(known[reference].priority(tesla)[0]) for tesla in range(longest)]
        label = f"{reference}: reuse interval {longest}, always"
        axes.plot(heights, color=colour, label=label, marker=".", linewidth=1.5)
        axes.plot([longest], [0], color=colour, marker="x")
    for name, block in priorities("axayaz", 6, REFERENCES).items():
        colour, below = (COLOURS[0], 5) if name == "a" else (COLOURS[1], -14)
        at, text = (block.tesla, float(block.priority)), f"{name}: {block.priority}"
        axes.annotate(text, at, (8, below), textcoords="offset points", color=colour)
        axes.plot(*at, "o", color=colour, markersize=8, markerfacecolor="none")
    axes.legend(frameon=False, fontsize=8, loc="upper center")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


TOUCHES = 120


def stack_findings(sequences: int) -> Iterator[Finding]:
    """Yield the findings on L4: inclusion at every step, misses that never grow with size, and one
    pass that equals every size.
    """
    claim = load_claims("leu")["L4"]
    steps = included = grown = sizes = equal = 0
    for ids, references in random_sequences(sequences):
        curve = leu_curve(ids, references)
        most = len(set(ids))
        states = [exact_leu(ids, c, references) for c in range(1, most + 1)]
        for smaller, larger in pairwise(states):
            steps += len(ids)
            included += sum(a <= b for a, b in zip(smaller.resident, larger.resident, strict=True))
            grown += larger.misses > smaller.misses
        sizes += most
        equal += sum(
            found.misses == leu_misses(ids, c, references) == curve.misses_at(c)
            for c, found in enumerate(states, start=1)
        )
    over = f"{sequences} random sequences of {TOUCHES} touches, half of them by reference"
    said, ours = "a smaller memory's blocks are in the larger's", f"{included:,} of {steps:,} steps"
    yield claim.for_part("inclusion").holds(included == steps, said, ours, why=f"on {over}")
    ours = f"{grown} of {sizes - sequences:,} sizes grow"
    yield claim.for_part("misses").holds(grown == 0, "misses never grow with size", ours)
    ours = f"{equal:,} of {sizes:,} sizes equal, {over}"
    yield claim.for_part("one pass").holds(equal == sizes, "one pass gives all sizes", ours)


def random_sequences(n: int) -> Iterator[tuple[list[int], list[int] | None]]:
    """Yield Zipf's law, loops and uniform draws in turn; every other one with references."""
    rng = np.random.default_rng(19)
    for i in range(n):
        distinct = int(rng.integers(3, 14))
        ids = (
            rng.zipf(1.4, TOUCHES) % distinct,
            np.resize(rng.permutation(distinct), TOUCHES) * rng.integers(0, 2, TOUCHES),
            rng.integers(0, distinct, TOUCHES),
        )[i % 3]
        yield ids.tolist(), rng.integers(0, 4, TOUCHES).tolist() if i % 2 else None

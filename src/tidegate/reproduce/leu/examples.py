"""L1 to L3: the paper's worked examples, by its own equations in rational arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import polars as pl
from matplotlib.figure import Figure

from tidegate.analysis.exact.leu.rational import distributions
from tidegate.figures import COLOURS
from tidegate.reproduce.ledger import Finding, load_claims
from tidegate.reproduce.report import Exhibit

CLAIMS = load_claims("leu")
_WORDS = (
    "priority(a, 1) = 1, for l = 2; priority(x, 4) = 1/2, for l = 6; priority(y, 2) = 1/4, for l = 6; priority(z, 0) = 1/6, "
    "for l = 6. (Figure 3) […] consider the trace “aaxyz aaxyz …” […] we would obtain 1 for a and 1/2, 1/3, 1/4 "
    "respectively for x, y, z. (3.1)"
)


class Block(NamedTuple):
    """A block at some time: how long ago it was touched, its priority and the lease that has it."""

    tesla: int
    priority: Fraction
    lease: int | None


def priorities(period: str, now: int, references: Sequence[str] | None = None) -> dict[str, Block]:
    """Every block at time ``now`` (from 1) of a sequence that repeats this period for ever.

    >>> priorities("axayaz", 6)["x"]
    Block(tesla=4, priority=Fraction(1, 2), lease=6)
    """
    owners = references or period
    known = distributions(period, owners, endless=True)
    last = {block: i for i, block in enumerate(period[:now], start=1)}
    return {
        block: Block(now - i, *known[owners[i - 1]].priority(now - i)) for block, i in last.items()
    }


REFERENCES = ["r1", "r2"] * 3  # a is touched by r1, all others by r2
_FIGURE_3 = {"a": "1 (lease 2)", "x": "1/2 (lease 6)", "y": "1/4 (lease 6)", "z": "1/6 (lease 6)"}
_PRINTED = {"a": "1", "x": "1/2", "y": "1/3", "z": "1/4"}


def example_findings() -> Iterator[Finding]:
    by_block = priorities("axayaz", 6)
    for name, said in _FIGURE_3.items():
        yield CLAIMS["L1"].exact(
            f"{by_block[name].priority} (lease {by_block[name].lease})", said, part=name
        )
    other = priorities("aaxyz", 5)
    ranked = sorted(other, key=lambda name: -other[name].priority)
    yield CLAIMS["L2"].exact(", ".join(ranked), "a, x, y, z", part="order")
    why = (
        "by the paper's own equation 2 and the TESLA of its Figure 3, which is 0 for the block just touched; the printed "
        "digits have TESLA one larger for x, y, z. The order, which is the claim, is the same"
    )
    yield CLAIMS["L2"].exact(
        _said({n: str(b.priority) for n, b in other.items()}),
        _said(_PRINTED),
        part="digits",
        why=why,
    )
    by_reference = priorities("axayaz", 6, REFERENCES)
    for name in "xyz":
        yield CLAIMS["L3"].exact(
            str(by_reference[name].priority), str(by_block[name].priority), part=name
        )


def _said(values: dict[str, str]) -> str:
    return ", ".join(f"{name} {values[name]}" for name in sorted(values))


def examples_figure() -> Exhibit:
    """All three examples, and how a priority depends on TESLA."""
    cases = (
        ("axayaz, blocks", priorities("axayaz", 6), _FIGURE_3),
        ("axayaz, references", priorities("axayaz", 6, REFERENCES), _FIGURE_3),
        ("aaxyz, blocks", priorities("aaxyz", 5), _PRINTED),
    )
    rows = [
        {
            "example": case,
            "block": name,
            "TESLA": b.tesla,
            "priority": str(b.priority),
            "lease": b.lease,
            "paper": said[name],
        }
        for case, blocks, said in cases
        for name, b in sorted(blocks.items())
    ]
    return Exhibit("Figure 3", "the worked examples", _WORDS, pl.DataFrame(rows), draw_examples)


def draw_examples() -> Figure:
    """The priority of both references over TESLA, with the blocks where they are at time 6."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots()
    known = distributions("axayaz", REFERENCES, endless=True)
    for reference, colour in zip(("r1", "r2"), COLOURS, strict=False):
        longest = max(known[reference].counts)
        teslas = range(longest)
        heights = [float(known[reference].priority(tesla)[0]) for tesla in teslas]
        label = f"{reference}: reuse interval {longest}, always"
        axes.plot(teslas, heights, color=colour, label=label, marker=".", linewidth=1.5)
        axes.plot([longest], [0], color=colour, marker="x")
    for name, block in priorities("axayaz", 6, REFERENCES).items():
        colour = COLOURS[0 if name == "a" else 1]
        axes.annotate(
            f"{name}: {block.priority}",
            (block.tesla, float(block.priority)),
            (8, 5 if name == "a" else -14),
            textcoords="offset points",
            color=colour,
        )
        axes.plot(
            [block.tesla],
            [float(block.priority)],
            "o",
            color=colour,
            markersize=8,
            markerfacecolor="none",
        )
    axes.set(
        xlabel="TESLA: touches since the last one",
        ylabel="priority: uses per touch of staying",
        ylim=(-0.04, 1.18),
    )
    axes.set_title(
        "axayaz … at time 6: the lowest, z, would be evicted; × the interval has passed, nothing is expected"
    )
    axes.title.set_fontsize(10)
    axes.legend(frameon=False, fontsize=8, loc="upper center")
    axes.spines[["top", "right"]].set_visible(False)
    return figure

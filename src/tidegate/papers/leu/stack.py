"""L4: LEU is a stack algorithm. Random sequences, by the exact equations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tidegate.analysis.exact import leu_curve, leu_misses
from tidegate.analysis.exact.leu.rational import exact_leu
from tidegate.papers.ledger import Finding, load_claims

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
    yield claim.of("inclusion").holds(included == steps, said, ours, why=f"on {over}")
    ours = f"{grown} of {sizes - sequences:,} sizes grow"
    yield claim.of("misses").holds(grown == 0, "misses never grow with size", ours)
    ours = f"{equal:,} of {sizes:,} sizes equal, {over}"
    yield claim.of("one pass").holds(equal == sizes, "one pass gives all sizes", ours)


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

"""Output of ``tidegate analyze --leu``: which access sites deserve memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidegate.cli import output
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.analysis.exact import ReferenceAnalysis
    from tidegate.analysis.exact.references import ReferenceWorth
    from tidegate.analysis.sequence import Unit
    from tidegate.trace import Trace

QUANTILES = (0.1, 0.5, 0.9)


def analyze(
    trace: Trace, unit: Unit, near: str | None, progress: Callable[[int], None]
) -> ReferenceAnalysis:
    """Analyze a trace by access sites; by default memory is two thirds of what is touched."""
    import numpy as np

    from tidegate import units
    from tidegate.analysis import Sequence
    from tidegate.analysis.exact import Touches, analyze_references

    size = Sequence(trace, unit).unit_bytes
    given = None if near is None else units.size(near) // size
    if given == 0:
        raise TidegateError(
            f"--near must hold at least one {unit} of {units.show_size(size)}, got {near}"
        )
    touches = Touches.of_trace(trace, unit, progress)
    capacity = given or max(1, 2 * len(np.unique(touches.ids)) // 3)
    return analyze_references(trace, touches, unit, size, capacity)


def rows(found: ReferenceAnalysis) -> list[dict[str, Any]]:
    """Return a row per access site."""
    return [
        {
            "reference": r.reference,
            "object": r.object,
            "touches": r.touches,
            "reused": r.reused,
            **{f"interval_{q:.0%}".rstrip("%"): r.quantile(q) for q in QUANTILES},
            "lease": r.lease,
            "lease_hits": r.lease_hits,
            "memory": r.memory,
            "hits": r.hits,
            "worth": r.worth,
        }
        for r in found.references
    ]


def data(found: ReferenceAnalysis) -> dict[str, Any]:
    """Return everything, with each site's distribution in doubling buckets."""
    each = [
        row | {"intervals": _buckets(r)}
        for row, r in zip(rows(found), found.references, strict=True)
    ]
    return {
        "name": found.name,
        "unit": found.unit,
        "unit_bytes": found.unit_bytes,
        "touches": found.touches,
        "distinct": found.distinct,
        "capacity": found.capacity,
        "hits": found.hits,
        "references": each,
    }


def _buckets(r: ReferenceWorth) -> list[dict[str, int]]:
    """Return the number of reuses after 1, 2-3, 4-7, … touches."""
    import numpy as np

    powers, counts = np.unique(np.log2(np.maximum(r.intervals, 1)).astype(int), return_counts=True)
    return [
        {"at_least": 1 << int(p), "reuses": int(n)} for p, n in zip(powers, counts, strict=True)
    ]


def show(found: ReferenceAnalysis) -> None:
    from tidegate.units import counted, show_count, show_size

    print(
        f"{found.name}: {show_count(found.touches)} touches of {show_count(found.distinct)} "
        f"{found.unit}s by {counted(len(found.references), 'reference')}. "
        f"LEU with {show_size(found.capacity * found.unit_bytes)}: "
        f"{found.hits / found.touches:.1%} hits"
    )
    print(
        f"intervals and leases in touches of other {found.unit}s; "
        "shares of memory and hits are what LEU gives and gets"
    )
    output.print_table(
        [
            "reference",
            "object",
            "touches",
            "reused",
            "interval 10%",
            "50%",
            "90%",
            "best lease",
            "its hits",
            "memory",
            "hits",
            "hits / memory",
        ],
        [
            (
                str(r.reference),
                r.object,
                show_count(r.touches),
                f"{r.reused:.1%}",
                *("-" if (at := r.quantile(q)) is None else show_count(at) for q in QUANTILES),
                "-" if r.lease is None else show_count(r.lease),
                f"{r.lease_hits:.1%}",
                f"{r.memory:.1%}",
                f"{r.hits:.1%}",
                f"{r.worth:.2f}",
            )
            for r in found.references
        ],
        left=2,
    )

"""The output of ``tidegate analyze --leu``: which access sites deserve memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidegate.cli import output
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.analysis.exact import AccessSiteAnalysis
    from tidegate.analysis.exact.access_sites import AccessSiteWorth
    from tidegate.analysis.sequence import Unit
    from tidegate.trace import Trace

QUANTILES = (0.1, 0.5, 0.9)


def analyze(
    trace: Trace, unit: Unit, near: str | None, progress: Callable[[int], None]
) -> AccessSiteAnalysis:
    """Analyze a trace by access sites, in memory of this size; by default two thirds of what is
    touched.
    """
    import numpy as np

    from tidegate import units
    from tidegate.analysis import Sequence
    from tidegate.analysis.exact import TouchSequence, analyze_access_sites

    size = Sequence(trace, unit).unit_bytes
    given = None if near is None else units.size(near) // size
    if given == 0:
        raise TidegateError(
            f"--near must hold at least one {unit} of {units.show_size(size)}, got {near}"
        )
    touches = TouchSequence.of_trace(trace, unit, progress)
    capacity = given or max(1, 2 * len(np.unique(touches.ids)) // 3)
    return analyze_access_sites(trace, touches, unit, size, capacity)


def rows(found: AccessSiteAnalysis) -> list[dict[str, Any]]:
    """Return a row per access site."""
    return [
        {
            "reference": s.site,
            **{name: getattr(s, name) for name in ("object", "touches", "reused")},
            **{f"interval_{q:.0%}".rstrip("%"): s.quantile(q) for q in QUANTILES},
            **{name: getattr(s, name) for name in ("lease", "lease_hits", "memory", "hits")},
            "worth": s.worth,
        }
        for s in found.sites
    ]


def data(found: AccessSiteAnalysis) -> dict[str, Any]:
    """Return everything, with each access site's distribution in doubling buckets."""
    names = ("name", "unit", "unit_bytes", "touches", "distinct", "capacity", "hits")
    each = zip(rows(found), found.sites, strict=True)
    return {
        **{name: getattr(found, name) for name in names},
        "references": [row | {"intervals": _buckets(site)} for row, site in each],
    }


def _buckets(site: AccessSiteWorth) -> list[dict[str, int]]:
    """Return how many reuses came after 1, 2-3, 4-7, … touches."""
    import numpy as np

    power = np.log2(np.maximum(site.intervals, 1)).astype(int)
    found = zip(*np.unique(power, return_counts=True), strict=True)
    return [{"at_least": 1 << int(p), "reuses": int(n)} for p, n in found]


_HEAD = "reference, object, touches, reused, interval 10%, 50%, 90%, best lease"
_HEAD += ", its hits, memory, hits, hits / memory"


def show(found: AccessSiteAnalysis) -> None:
    from tidegate.units import counted, show_count, show_size

    touches, distinct = show_count(found.touches), show_count(found.distinct)
    near = show_size(found.capacity * found.unit_bytes)
    output.print_text(
        f"{found.name}: {touches} touches of {distinct} {found.unit}s by "
        f"{counted(len(found.sites), 'reference')}. LEU with {near}: "
        f"{found.hits / found.touches:.1%} hits"
    )
    output.print_text(
        f"intervals and leases in touches of other {found.unit}s; "
        "shares of memory and hits are what LEU gives and gets"
    )
    head = _HEAD.split(", ")
    # hits and memory are what the question is about; intervals explain them
    drop = ["interval 10%", "90%", "50%", "reused", "its hits", "best lease", "touches", "object"]
    drop += ["memory", "hits"]
    output.print_table(head, [_row(site) for site in found.sites], left=2, drop=drop)


def _row(s: AccessSiteWorth) -> tuple[str, ...]:
    from tidegate.units import show_count

    counts = [s.touches, *map(s.quantile, QUANTILES), s.lease]
    touches, *waits = ("-" if n is None else show_count(n) for n in counts)
    shares = (f"{share:.1%}" for share in (s.lease_hits, s.memory, s.hits))
    return (str(s.site), s.object, touches, f"{s.reused:.1%}", *waits, *shares, f"{s.worth:.2f}")

"""Pages touched one by one in a given order: the way to see what a prefetcher brings."""

from __future__ import annotations

from tidegate.errors import TidegateError
from tidegate.options import Option
from tidegate.trace.build import blocks_of
from tidegate.trace.trace import Launch
from tidegate.workloads.program import Derived, Launches, Space, footprint, workload


def _pages(given: object) -> str:
    """Return the text of a list of page numbers, checked."""
    parts = str(given).replace("+", " ").split()
    if not all(part.isdecimal() for part in parts):
        raise TidegateError(f"must be numbers joined by +, such as 0+1+2+4, got '{given}'")
    return "+".join(parts)


@workload("page-order")
class PageOrder(Derived):
    """One thread touches pages of 64 KiB in the order given, a launch each.

    It is the micro-benchmark of UVMSmart's comments, which shows what tree prefetch brings with
    each fault.
    """

    bytes = footprint("128MiB", "size of the array")
    order = Option("", "pages of 64 KiB, such as 0+1+2+4; none: all in turn", parse=_pages)

    def sizes(self) -> dict[str, int]:
        return {"a": self.bytes}

    def launches(self, space: Space) -> Launches:
        a, per = space["a"], max(1, (64 << 10) // space.geometry.page)
        order = [int(text) * per for text in self.order.split("+") if text]
        for page in order or range(0, a.pages, per):
            if page >= a.pages:
                named, end = page // per, -(-a.pages // per)
                raise TidegateError(f"order must name pages below {end}, got {named}")
            yield Launch("touch", [blocks_of(1, [a.first_page + page], bytes=4)])

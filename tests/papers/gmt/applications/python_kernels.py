"""Kernels in plain Python: the elements that threads use, when, and the pages of these."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from tidegate.workloads import Workload, workloads
from workloads.read_traces import read

PAGE = 256  # so that small problems have many pages
Visit = tuple[int, int, int]  # page, write, access site


def small(name: str, page: int = PAGE, **options: object) -> tuple[Workload, Trace]:
    workload = workloads.find(name)(**options)
    return workload, workload.trace(Geometry(page, page))


class Used:
    """Pages that a launch, or a wave of it, uses: whether written, and how far along."""

    def __init__(self, trace: Trace):
        self._first = {o.name: (o.first_page, i) for i, o in enumerate(trace.objects)}
        self._page = trace.geometry.page
        self.first: dict[tuple[int, int], float] = {}  # by page and access site
        self.written: set[int] = set()

    def use(
        self, name: str, index: int, along: float = 0.0, write: bool = False, size: int = 4
    ) -> None:
        """Use element ``index`` of an object, when the part ``along`` of the launch is done."""
        first, reference = self._first[name]
        for number in range(index * size // self._page, ((index + 1) * size - 1) // self._page + 1):
            self.first.setdefault((first + number, reference), along)
            if write:
                self.written.add(first + number)

    def visits(self) -> set[Visit]:
        return {(page, int(page in self.written), reference) for page, reference in self.first}


def check(trace: Trace, expected: Sequence[Used], apart: int = 2) -> None:
    """Check that each launch visits what its threads use, every page once, at the right time.

    A page comes within ``apart`` blocks of its first use by the threads.
    """
    launches = read(trace)
    assert len(launches) == len(expected)
    for launch, used in zip(launches, expected, strict=True):
        blocks = launch.blocks()
        visits = [
            (page, write, reference) for block in blocks for page, write, _, reference in block
        ]
        assert len(set(visits)) == len(visits), "each page once"
        assert set(visits) == used.visits()
        for i, block in enumerate(blocks):
            for page, _, _, reference in block:
                assert abs(i - used.first[page, reference] * len(blocks)) <= apart, "in step"

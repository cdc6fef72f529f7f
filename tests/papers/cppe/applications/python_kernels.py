"""Kernels in plain Python, access by access: what each thread block uses of which page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from tidegate.workloads import workloads
from workloads.read_traces import Read, read

PAGE = 256  # so that small problems have many pages


class Block:
    """One thread block: its accesses by step and page."""

    def __init__(self, trace: Trace):
        self._first = {o.name: (o.first_page, i) for i, o in enumerate(trace.objects)}
        self._page = trace.geometry.page
        # bytes by element, by page, whether written, and access site
        self.steps: list[dict[tuple[int, int, int], dict[int, int]]] = [{}]

    def use(self, name: str, index: int, write: bool = False, size: int = 4) -> None:
        """Use element ``index`` of an object."""
        first, reference = self._first[name]
        low = index * size
        while low < (index + 1) * size:
            page = low // self._page
            stop = min((index + 1) * size, (page + 1) * self._page)
            key = first + page, int(write), reference
            self.steps[-1].setdefault(key, {})[index] = stop - low
            low = stop

    def change(self, name: str, index: int, size: int = 4) -> None:
        """Load and then store element ``index`` of an object."""
        self.use(name, index, size=size)
        self.use(name, index, write=True, size=size)

    def step(self) -> None:
        if self.steps[-1]:
            self.steps.append({})

    def touches(self) -> Iterator[set[tuple[int, int, int]]]:
        """Yield (page, write, access site) of each step."""
        return (set(step) for step in self.steps if step)

    def used(self) -> list[dict[tuple[int, int], int]]:
        """Return the bytes loaded from and stored to each page, by step."""
        return [
            {(page, write): sum(used.values()) for (page, write, _), used in step.items()}
            for step in self.steps
            if step
        ]


def small(name: str, page: int = PAGE, **options: object) -> tuple[Any, Trace]:
    workload = workloads.find(name)(**options)
    return workload, workload.trace(Geometry(page, 4 * page))


def check(trace: Trace, expected: Iterable[Iterable[Block]]) -> None:
    """Check that the trace's launches are the expected ones, block by block and step by step."""
    launches = read(trace)
    expected = list(expected)
    assert len(launches) == len(expected)
    for launch, blocks in zip(launches, expected, strict=True):
        check_launch(launch, blocks)


def check_launch(launch: Read, expected: Iterable[Block]) -> None:
    wanted = [block for block in expected if any(block.steps)]
    blocks = launch.blocks()
    assert len(blocks) == len(wanted)
    for touches, block in zip(blocks, wanted, strict=True):
        for step, used in zip(block.touches(), block.used(), strict=True):
            now, touches = touches[: len(step)], touches[len(step) :]
            assert {(page, write, reference) for page, write, _, reference in now} == step
            places = {(page, write): at for at, (page, write, *_) in enumerate(now)}
            assert all(places.get((page, 0), -1) < places[page, 1] for page, w in places if w)
            for page, loaded in used:
                if (page, 1 - loaded) in used:  # loads behind the first store count as its bytes
                    both = used[page, 0] + used[page, 1]
                    assert sum(now[places[page, w]][2] for w in (0, 1)) >= min(both, PAGE)
                else:
                    assert now[places[page, loaded]][2] >= used[page, loaded]
        assert not touches

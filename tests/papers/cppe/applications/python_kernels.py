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
        # bytes by element, by page and access site
        self.steps: list[dict[tuple[int, int], dict[int, int]]] = [{}]
        self.written: list[set[int]] = [set()]  # pages

    def use(self, name: str, index: int, write: bool = False, size: int = 4) -> None:
        """Use element ``index`` of an object."""
        first, reference = self._first[name]
        low = index * size
        while low < (index + 1) * size:
            page = low // self._page
            stop = min((index + 1) * size, (page + 1) * self._page)
            self.steps[-1].setdefault((first + page, reference), {})[index] = stop - low
            if write:
                self.written[-1].add(first + page)
            low = stop

    def step(self) -> None:
        if self.steps[-1]:
            self.steps.append({})
            self.written.append(set())

    def touches(self) -> Iterator[set[tuple[int, int, int]]]:
        """Yield (page, write, access site) of each step."""
        for step, written in zip(self.steps, self.written, strict=True):
            if step:
                yield {(page, int(page in written), reference) for page, reference in step}

    def used(self) -> list[dict[int, int]]:
        """Return the bytes used of each page, by step."""
        return [
            {page: sum(used.values()) for (page, _), used in step.items()}
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
            assert all(size >= used[page] for page, _, size, _ in now)
        assert not touches

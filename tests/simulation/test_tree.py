"""Tree prefetch against brute force: every state of a region, by the rule in the driver's words."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tidegate.compiled.array_table import ArrayTable
from tidegate.policies.interface.page_flags import FAULTED, NEAR, REMOTE, WANTED
from tidegate.simulation.gpu.memory import make_constants, make_memory
from tidegate.simulation.gpu.tree import mark_subtrees
from tidegate.trace.geometry import Geometry
from traces import PAGES, Given, machine

pytestmark = pytest.mark.oracle


class Region:
    """A region of ``pages`` pages, the second of two, with a page table that can be set."""

    def __init__(self, pages: int, geometry_pages: int = PAGES, round_tails: bool = False):
        geometry = Geometry(4096, 4096 * geometry_pages)
        trace = Given([], [geometry_pages, pages], geometry)
        on = machine(round_tails=round_tails)
        self._constants = make_constants(on, trace, 2, False, False, 0.0)
        self._memory = make_memory(trace, 1, self._constants._replace(batch_faults=geometry_pages))
        self._table = ArrayTable(self._memory)
        self._base, self.pages = geometry_pages, pages

    def wanted(self, states: list[int], threshold: int) -> set[int]:
        faulted = [i for i, state in enumerate(states) if state & FAULTED]
        state = self._memory.page_state[self._base : self._base + self.pages]
        state[:] = states
        self._memory.books["threshold"] = threshold
        self._memory.batch_page[: len(faulted)] = np.array(faulted) + self._base
        mark_subtrees(self._table, self._constants, 1, 0, len(faulted))
        assert (state & (0xFF - WANTED) == states).all()
        return set(np.flatnonzero(state & WANTED).tolist())


def expected(states: list[int], threshold: int, low: int, high: int) -> set[int]:
    """From the root down: the first node on the way to a fault that is more than ``threshold`` %
    occupied is taken whole.

    ``low`` to ``high`` is the node; it may reach beyond the region's end, where it has no leaves.
    """
    leaves = states[low:high]
    if not any(state & FAULTED for state in leaves):
        return set()
    if sum(state != 0 for state in leaves) / len(leaves) > threshold / 100:
        return {low + i for i, state in enumerate(leaves) if not state}
    if high - low == 1:
        return set()
    middle = (low + high) // 2
    return expected(states, threshold, low, middle) | expected(states, threshold, middle, high)


@pytest.mark.slow
@pytest.mark.parametrize("pages", [8, 7, 5, 4, 1])
def test_every_state_of_a_region(pages):
    """Pages far, near or just faulted, in every combination; a region that is cut short has smaller
    nodes at its end.
    """
    region = Region(pages)
    for states in product((0, NEAR, FAULTED), repeat=pages):
        if FAULTED in states:
            for threshold in (0, 1, 25, 50, 51, 75, 100):
                wanted = region.wanted(list(states), threshold)
                assert wanted == expected(list(states), threshold, 0, PAGES), (states, threshold)


@pytest.mark.slow
@pytest.mark.parametrize("pages", [8, 7, 6, 5, 3, 2, 1])
def test_every_state_of_a_rounded_tail(pages):
    """Behind a tail's end are leaves that nothing occupies, up to a power of two."""
    region = Region(pages, round_tails=True)
    behind = [0] * ((1 << (pages - 1).bit_length()) - pages)
    for states in product((0, NEAR, FAULTED), repeat=pages):
        if FAULTED in states:
            for threshold in (0, 25, 50, 51, 75, 100):
                wanted = region.wanted(list(states), threshold)
                tree = expected([*states, *behind], threshold, 0, PAGES)
                assert wanted == tree & set(range(pages)), (states, threshold)


@pytest.mark.parametrize("tail", range(1, 32))
def test_tails_of_a_whole_block_of_64_kib_pages(tail):
    """Filled from the left at 51 %, until all of it is there."""
    region = Region(tail, 32, round_tails=True)
    behind = [0] * ((1 << (tail - 1).bit_length()) - tail)
    for near in range(tail):
        states = [NEAR] * near + [FAULTED] + [0] * (tail - near - 1)
        tree = expected([*states, *behind], 51, 0, 32)
        assert region.wanted(states, 51) == tree & set(range(tail)), near


@pytest.mark.parametrize(("size", "least"), [(2, 2), (4, 3), (8, 5), (16, 9), (32, 17)])
def test_at_51_per_cent_a_node_needs_one_more_than_half(size, least):
    """A node of a 32-page region, filled from its left; the last page to fill it faults."""
    region = Region(32, 32)
    for occupied in range(1, size + 1):
        states = [NEAR] * (occupied - 1) + [FAULTED] + [0] * (32 - occupied)
        takes_all = set(range(occupied, size)) <= region.wanted(states, 51)
        assert takes_all == (occupied >= least), occupied


def test_what_is_prefetched_does_not_count_in_the_same_pass():
    """3 of 4 take the fourth; with it the root would be 4 + 1 of 8, which is enough, but it is not
    asked again.
    """
    states = [NEAR, NEAR, FAULTED, 0, NEAR, 0, 0, 0]
    assert Region(8).wanted(states, 51) == {3}


def test_pages_that_prefer_far_memory_are_neither_counted_nor_fetched():
    states = [NEAR, NEAR, FAULTED, REMOTE, NEAR, NEAR, 0, 0]
    assert Region(8).wanted(states, 51) == {6, 7}
    states = [NEAR, FAULTED, REMOTE, REMOTE, NEAR, NEAR, REMOTE, REMOTE]
    assert Region(8).wanted(states, 51) == set()

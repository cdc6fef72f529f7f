"""A workload from a program's model alone: touches as the compiler's analysis expects them."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiler.analysis.measures import with_values
from tidegate.compiler.model import ProgramModel
from tidegate.compiler.plan.schedule import launch_names, make_plan
from tidegate.errors import TidegateError
from tidegate.trace.plan import Plan
from tidegate.workloads.offloaded import StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, Workload

_WHOLE = 1 - 1e-9  # a credit of 1, but for rounding
MOST = 200  # launches of a rehearsed run
_OVER = 10  # times as many are rehearsed if loops cannot turn less often; then it breaks off


class Modelled(Workload):
    """A program of which only the model is known.

    Each launch walks all objects it uses in step, as densely as its access density says; launches
    follow one another as often as the control flow makes likely. Assumed, not derived: no index
    function is known.
    """

    name = "the program"

    def __init__(self, model: ProgramModel, variables: Mapping[str, int], most: int = MOST):
        super().__init__()
        self.model, self.values = with_values(model, variables), dict(variables)
        self.order, self.ways, self.cut = order_of(model, variables, most)
        self._plan = make_plan(self.model, variables)

    def plan(self) -> Plan:
        return self._plan

    def sizes(self) -> dict[str, int]:
        return sizes_of(self.model, self.values)

    def launches(self, space: Space) -> Launches:
        names = launch_names(self.model)
        for number, at in enumerate(self.order):
            planned = self._plan.by_name[names[at]]
            used = [(use, space[use.object].bytes) for use in planned.uses if use.object in space]
            if not used:
                continue
            elements = max(1, max(size for _, size in used) // 4)
            streams = []
            for use, size in used:
                share = 1.0 if use.density is None else min(1.0, use.density)
                each = size / elements
                write = self.model.is_written(self.model.launches[at], use.object)
                streams.append(StreamedBytes(use.object, each, write=write, share=share))
            yield loop_launch(space, planned.name, elements, *streams, seed=number)


def sizes_of(model: ProgramModel, variables: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of the placeable objects for these values."""
    objects = [(o.name, o.bytes) for o in model.placeable() if o.bytes is not None]
    if not objects:
        raise TidegateError(
            f"no kernel region of '{model.source}' uses an object on the heap or a global array; "
            "nothing can be placed"
        )
    return {name: max(1, size.at(variables)) for name, size in objects}


class LaunchOrder(NamedTuple):
    """Launches, by number, in the order of a run."""

    order: list[int]
    ways: list[list[int]]  # a likeliest way from the entry to each launch that is not in the order
    cut: bool  # whether loops turn more often than in the order


def order_of(model: ProgramModel, values: Mapping[str, int], most: int = MOST) -> LaunchOrder:
    """Return a run of the program in launches, with the control flow's probabilities.

    Loops turn less often than they do, outer ones first, if the run would have more than ``most``
    launches. The order is not random: after each launch, every successor gets its probability as
    credit. The likeliest successor is taken until the others together have a credit of 1; then the
    least likely of those with a credit of 1, or else the likeliest of the others. So a loop of n
    rounds is repeated n times before it is left, within another loop too, and every launch comes as
    often as the model says, within one.
    """
    if not model.launches:
        notes = "; ".join(map(str, model.notes))
        raise TidegateError(
            f"no launch of '{model.source}' could be traced, so nothing can be planned ({notes})"
        )
    turns = model.flow.turns(values)
    fewer = _fewer_turns(model, turns, most)
    first, ways = model.flow.next_launches(fewer)
    ways = np.vstack([ways, first])
    # the last column is the program's end, the last row its entry
    ways = np.hstack([ways, np.maximum(0, 1 - ways.sum(axis=1, keepdims=True))])
    credit = np.zeros_like(ways)
    order: list[int] = []
    at, end = len(model.launches), len(model.launches)
    whole = sum(model.flow.frequencies(fewer)) + len(model.launches)
    longest = max(most, min(whole, _OVER * most))
    while len(order) < longest:
        credit[at] += ways[at]
        following = _next(ways[at], credit[at])
        credit[at, following] -= 1
        if following == end:
            break
        order.append(following)
        at = following
    others = [way for n in range(end) if n not in order and (way := _way_to(n, ways))]
    return LaunchOrder(order, others, fewer != turns or longest < whole)


def _fewer_turns(model: ProgramModel, turns: list[float], most: int) -> list[float]:
    """Return the loops' turns, reduced until a run has no more than ``most`` launches.

    Outer loops are reduced first, to three turns: what is asked in the third is asked in all that
    follow, and inner loops keep their length.
    """
    loops, flow = model.flow.loops, model.flow
    depths = sorted({loop.depth for loop in loops})
    for least, depth in [(least, depth) for least in (3, 2) for depth in depths]:
        if sum(flow.frequencies(turns)) <= most:
            break

        def at_most(limit: float, depth: int = depth, now: list[float] = turns) -> list[float]:
            return [
                min(n, limit) if loop.depth == depth else n
                for n, loop in zip(now, loops, strict=True)
            ]

        longest = max(n for n, loop in zip(turns, loops, strict=True) if loop.depth == depth)
        low, high = least, max(least, int(longest))
        while low < high:
            middle = (low + high + 1) // 2
            if sum(flow.frequencies(at_most(middle))) <= most:
                low = middle
            else:
                high = middle - 1
        turns = at_most(low)
    return turns


def _way_to(target: int, ways: NDArray[np.float64]) -> list[int]:
    """Return the likeliest way from the entry to a launch; an empty one if none leads there."""
    entry = len(ways) - 1
    best, back = {entry: 1.0}, dict[int, int]()
    waiting = [(-1.0, entry)]
    while waiting:
        p, at = heapq.heappop(waiting)
        if at == target:
            way = [at]
            while back[way[-1]] != entry:
                way.append(back[way[-1]])
            return way[::-1]
        for after in np.flatnonzero(ways[at, :-1]).tolist():
            likely = -p * ways[at, after]
            if likely > best.get(after, 0.0):
                best[after], back[after] = likely, at
                heapq.heappush(waiting, (-likely, after))
    return []


def _next(ways: NDArray[np.float64], credit: NDArray[np.float64]) -> int:
    """Return the next launch, by each one's probability and credit."""
    ways = ways.round(9)  # of equals, the first is taken
    likeliest = int(np.argmax(ways))
    others = [way for way in range(len(ways)) if way != likeliest and ways[way] > 0]
    if sum(credit[way] for way in others) < _WHOLE:
        return likeliest
    due = [way for way in others if credit[way] >= _WHOLE]
    return min(due, key=lambda way: ways[way]) if due else max(others, key=lambda way: ways[way])

"""A workload from a program's model alone: touches as the compiler's analysis expects them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tidegate.compiler.model import ProgramModel
from tidegate.compiler.plan.make import launch_names, make_plan
from tidegate.errors import TidegateError
from tidegate.trace.plan import Plan
from tidegate.workloads.openmp.offloaded import Stream, loop_launch
from tidegate.workloads.program import Launches, Space, Workload

_WHOLE = 1 - 1e-9  # a credit of 1, but for rounding
MOST = 200  # launches; a program that makes more has long repeated itself


class Modelled(Workload):
    """A program of which only the model is known.

    Each launch walks all objects it uses in step, as densely as its access density says; launches
    follow one another as often as the control flow makes likely. Assumed, not derived: no index
    function is known.
    """

    name = "the program"

    def __init__(self, model: ProgramModel, variables: Mapping[str, int], most: int = MOST):
        super().__init__()
        self.model, self.values = model, dict(variables)
        self.order, self.cut = order_of(model, most)
        self._plan = make_plan(model, variables)

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
                each, write = size / elements, use.copied_out
                streams.append(Stream(use.object, each, write=write, share=share))
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


def order_of(model: ProgramModel, most: int = MOST) -> tuple[list[int], bool]:
    """Return launches, by number, in an order with the control flow's probabilities.

    Return also whether the order was cut short, at ``most`` launches. The order is not random:
    after each launch, every successor gets its probability as credit. The likeliest successor is
    taken until the others together have a credit of 1; then the least likely of those with a credit
    of 1, or else the likeliest of the others. So a loop of n rounds is repeated n times before it
    is left, within another loop too, and every launch comes as often as the model says, within one.
    """
    if not model.launches:
        notes = "; ".join(map(str, model.notes))
        raise TidegateError(
            f"no launch of '{model.source}' could be traced, so nothing can be planned ({notes})"
        )
    ways = np.array(model.next_launches).reshape(len(model.launches), -1)
    # the last column is the program's end
    ways = np.hstack([ways, 1 - ways.sum(axis=1, keepdims=True)])
    often = np.array([launch.frequency for launch in model.launches])
    # the first launch: more frequent than the others' successors make it
    at = int(np.argmax(often - often @ ways[:, :-1]))
    credit = np.zeros_like(ways)
    order: list[int] = []
    while at < len(ways) and len(order) < most:
        order.append(at)
        credit[at] += ways[at]
        following = _next(ways[at], credit[at])
        credit[at, following] -= 1
        at = following
    return order, at < len(ways)


def _next(ways: NDArray[np.float64], credit: NDArray[np.float64]) -> int:
    """Return the next launch, by each one's probability and credit."""
    likeliest = int(np.argmax(ways))
    others = [way for way in range(len(ways)) if way != likeliest and ways[way] > 0]
    if sum(credit[way] for way in others) < _WHOLE:
        return likeliest
    due = [way for way in others if credit[way] >= _WHOLE]
    return min(due, key=lambda way: ways[way]) if due else max(others, key=lambda way: ways[way])

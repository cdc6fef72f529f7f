"""A program of which only its model is known, as a workload: what the compiler believes, made
touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tidegate.compiler.model import ProgramModel
from tidegate.compiler.plan.make import launch_names, make_plan
from tidegate.errors import TidegateError
from tidegate.trace.plan import Plan
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.openmp.offloaded import Stream, region
from tidegate.workloads.program import Space, Workload

_WHOLE = 1 - 1e-9  # credit for one turn, but for rounding
MOST = 200  # launches; a program that makes more has long repeated itself


class Modelled(Workload):
    """Each launch walks all objects it uses in step, as densely as its access density says;
    launches follow one another as often as the control flow makes likely. Assumed, not derived: no
    index function is known."""

    provenance = Provenance.ASSUMED
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

    def launches(self, space: Space) -> Iterator[Launch]:
        names = launch_names(self.model)
        for number, at in enumerate(self.order):
            planned = self._plan.by_name[names[at]]
            objects = [
                (use, space[use.object].bytes) for use in planned.uses if use.object in space
            ]
            if not objects:
                continue
            elements = max(1, max(size for _, size in objects) // 4)
            streams = [
                Stream(
                    use.object,
                    size / elements,
                    write=use.copied_out,
                    share=1.0 if use.density is None else min(1.0, use.density),
                )
                for use, size in objects
            ]
            yield region(space, planned.name, elements, streams, number)


def sizes_of(model: ProgramModel, variables: Mapping[str, int]) -> dict[str, int]:
    """The placeable objects' sizes for these values."""
    sizes = {
        o.name: max(1, o.bytes.at(variables)) for o in model.placeable() if o.bytes is not None
    }
    if not sizes:
        raise TidegateError(
            f"no region of '{model.source}' uses an object on the heap or a global array; nothing can be placed"
        )
    return sizes


def order_of(model: ProgramModel, most: int = MOST) -> tuple[list[int], bool]:
    """Launches, by number, in an order with the control flow's probabilities, and whether it was
    cut short.

    No draws: each time a launch is over, every way on from it gets credit, as much as it is likely.
    The likeliest way is taken until the others together have credit for a whole turn; then it is
    the least likely of those with that much of their own, or else the likeliest of the others. So a
    loop of n rounds goes round n times before it is left, within another loop too, and every launch
    comes as often as the model says, to within one.
    """
    if not model.launches:
        said = "; ".join(map(str, model.notes))
        raise TidegateError(
            f"no launch of '{model.source}' could be traced, so nothing can be planned ({said})"
        )
    ways = np.array(model.next_launches).reshape(len(model.launches), -1)
    # the last way is the program's end
    ways = np.hstack([ways, 1 - ways.sum(axis=1, keepdims=True)])
    often = np.array([launch.frequency for launch in model.launches])
    # where more comes in than other launches send
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
    """The way that is taken, by how likely each is and the credit it has."""
    likeliest = int(np.argmax(ways))
    others = [way for way in range(len(ways)) if way != likeliest and ways[way] > 0]
    if sum(credit[way] for way in others) < _WHOLE:
        return likeliest
    due = [way for way in others if credit[way] >= _WHOLE]
    return min(due, key=lambda way: ways[way]) if due else max(others, key=lambda way: ways[way])

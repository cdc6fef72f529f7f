"""Planning: the requests of a placement policy at each launch of a program, and predicted times.

rehearse  the policy, on a memory that only records requests ──▶ Schedule, for code
predict   the same policy and its rivals in the simulator ──▶ times
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tidegate import units
from tidegate.compiler.model import ProgramModel
from tidegate.compiler.plan.schedule import Action, Schedule, SiteSchedule
from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import Machine
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.placement.objects import regions_of
from tidegate.policies.registries import placement
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object
from tidegate.workloads.openmp.modelled import Modelled, sizes_of

OVER = 1.5  # times near memory: the size that is assumed where none is given
RIVALS = ("um", "host", "prefetch-all", "explicit", "object-lru", "rlm", "glm", "rdm")


class Rehearsal:
    """A memory that only records requests. A region counts as resident once nothing keeps it far;
    a request that changes nothing is not recorded again.
    """

    def __init__(self, objects: tuple[Object, ...], geometry: Geometry, frames: int, plan: Any):
        self.objects, self.geometry, self.frames, self.plan = objects, geometry, frames, plan
        self.place, self.actions = "", list[Action]()
        # regions that may be near, by faults or by a prefetch
        self._near, self._fetched, self._far = set[int](), set[int](), set[int]()

    def is_resident(self, region: int) -> bool:
        return region in self._near

    def prefetch(self, first_page: int, pages: int = 1) -> None:
        regions = self._regions(first_page, pages)
        if regions - self._fetched:
            self._record("prefetch", first_page, pages)
        self._fetched |= regions
        self._near |= regions

    def evict(self, region: int) -> None:
        self._near.discard(region)
        self._fetched.discard(region)
        self._record(
            "evict", region * self.geometry.pages_per_region, self.geometry.pages_per_region
        )

    def advise(self, first_page: int, pages: int, prefer: str | None) -> None:
        regions = self._regions(first_page, pages)
        if prefer == "far" and regions - self._far:
            self._record("far", first_page, pages)
            self._far |= regions
        elif prefer is None:
            if regions & self._far:
                self._record("anywhere", first_page, pages)
                self._far -= regions
            self._near |= regions

    def _regions(self, first_page: int, pages: int) -> set[int]:
        ppr = self.geometry.pages_per_region
        return set(range(first_page // ppr, -(-(first_page + pages) // ppr)))

    def _record(self, verb: str, first_page: int, pages: int) -> None:
        owner = next(o for o in reversed(self.objects) if o.first_page <= first_page)
        at = (first_page - owner.first_page) * self.geometry.page
        to = min(owner.bytes, at + pages * self.geometry.page)
        # regions that leave one by one are one call
        if self.actions and self.actions[-1].follows(verb, owner.name, at):
            at = self.actions.pop().first
        self.actions.append(Action(verb, owner.name, at, to, owner.bytes))


def rehearse(
    program: Modelled, policy: PlacementPolicy, geometry: Geometry, frames: int
) -> Schedule:
    """Return the policy's requests before each launch, place by place and visit by visit."""
    trace = program.trace(geometry)
    memory = Rehearsal(trace.objects, geometry, frames, trace.plan)
    policy.attach(memory)  # type: ignore[arg-type]
    policy.start()
    visits: dict[str, list[tuple[Action, ...]]] = defaultdict(list)
    near: dict[str, dict[str, int]] = {}
    names = [launch.name for launch in program.plan().launches]
    for number, at in enumerate(program.order):
        memory.place, memory.actions = names[at], []
        policy.on_launch(number)
        visits[names[at]].append(tuple(memory.actions))
        near[names[at]] = _near_bytes(memory, program, names[at])
    regions = {
        name: program.model.where(launch)
        for name, launch in zip(names, program.model.launches, strict=True)
    }
    places = tuple(
        SiteSchedule(
            name,
            regions[name],
            tuple(u.object for u in program.plan().by_name[name].uses),
            tuple(visits[name]),
            near[name],
        )
        for name in visits  # in the order of their first launches
    )
    given = tuple(sorted(program.values.items()))
    notes = (*map(str, program.model.notes), *_loops_not_known(program.model, program.values))
    place_of = {place.name: n for n, place in enumerate(places)}
    order = tuple(place_of[names[at]] for at in program.order)
    return Schedule(program.model.source, given, places, len(order), program.cut, order, notes)


def _near_bytes(memory: Rehearsal, program: Modelled, name: str) -> dict[str, int]:
    """Return the bytes of each used object that have room near."""
    uses = {u.object for u in program.plan().by_name[name].uses}
    return {
        o.name: min(
            o.bytes,
            memory.geometry.region * sum(map(memory.is_resident, regions_of(o, memory))),  # type: ignore[arg-type]
        )
        for o in memory.objects
        if o.name in uses
    }


def predict(
    program: Modelled,
    machine: Machine,
    near: int,
    policies: Iterable[str] = RIVALS,
    progress: Callable[[int], None] = lambda touches: None,
) -> dict[str, Run | str]:
    """Return each policy's run, or the error message."""
    runs: dict[str, Run | str] = {}
    for name in policies:
        spec = RunSpec(program, machine, placement=name, near=near)
        try:
            runs[name] = spec.answer(cache=False, progress=progress)
        except TidegateError as error:
            runs[name] = str(error)
    return runs


def settle(
    model: ProgramModel, given: Mapping[str, int], near: int
) -> tuple[dict[str, int], list[str]]:
    """Return values for the variables that size objects, and notes.

    Variables that are not given get one value that makes their objects larger than near memory. A
    variable that only counts a region's iterations gets none: no size determines it.
    """
    variables = model.variables()
    unknown = sorted(given.keys() - set(variables))
    if unknown:
        raise TidegateError(
            f"--set must name a variable of '{model.source}' ({', '.join(variables) or 'none'}), "
            f"got {', '.join(unknown)}"
        )
    sizing = {v for o in model.placeable() if o.bytes is not None for v in o.bytes.variables()}
    missing = [v for v in variables if v not in given and v in sizing]
    if not missing:
        return dict(given), []
    low, high = 1, 2
    while _footprint(model, given, missing, high) < OVER * near and high < 2**40:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if _footprint(model, given, missing, middle) < OVER * near:
            low = middle
        else:
            high = middle
    values = {**given, **dict.fromkeys(missing, high)}
    size = units.show_size(sum(sizes_of(model, values).values()))
    verb = "was" if len(missing) == 1 else "each was"
    note = f"{', '.join(missing)} = {high:,} {verb} assumed: {size} in all; give it with --set"
    return values, [note]


def _footprint(
    model: ProgramModel, given: Mapping[str, int], missing: list[str], value: int
) -> int:
    """Return the bytes of the objects that the missing variables size."""
    sizes = sizes_of(model, {**given, **dict.fromkeys(missing, value)})
    grow = [
        o.name
        for o in model.placeable()
        if o.bytes is not None and set(missing) & o.bytes.variables()
    ]
    return sum(sizes[name] for name in grow)


def _loops_not_known(model: ProgramModel, values: Mapping[str, int]) -> Iterator[str]:
    """Yield a note for each place whose iterations depend on variables without a value."""
    for launch in model.launches:
        lacking = sorted(
            (launch.trip_count.variables() if launch.trip_count is not None else set())
            - values.keys()
        )
        if lacking:
            yield (
                f"{model.where(launch)}: its iterations depend on {', '.join(lacking)}, which no "
                "size determines; its objects are taken as densely used (or give it with --set)"
            )


def make_policy(spec: str) -> PlacementPolicy:
    """Return the policy to plan with; refuse one that decides nothing at launches."""
    policy = placement.make(spec)
    if type(policy).on_launch is PlacementPolicy.on_launch:
        decides = [
            n
            for n in placement.names()
            if placement.find(n).on_launch is not PlacementPolicy.on_launch
        ]
        raise TidegateError(
            f"policy must decide at launches ({', '.join(decides)}), got {spec}; take one of those"
        )
    return policy

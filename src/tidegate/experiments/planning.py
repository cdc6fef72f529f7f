"""Planning: what a placement policy would ask for at each launch of a program, and how long the
program would take.

rehearse  the policy itself, on a memory that only writes down what it is asked for ──▶ Schedule, for code
predict   the same policy and its rivals in the simulator ──▶ times
"""

from __future__ import annotations

from collections import Counter, defaultdict
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

OVER = 1.5  # times near memory: the size that is assumed when nobody says how large the program is
RIVALS = ("um", "host", "prefetch-all", "explicit", "object-lru", "rlm", "glm", "rdm")


class Rehearsal:
    """A memory that only notes what it is asked. A region may be resident once nothing keeps it
    far, and what is asked for again changes nothing, so it is noted once."""

    def __init__(self, objects: tuple[Object, ...], geometry: Geometry, frames: int, plan: Any):
        self.objects, self.geometry, self.frames, self.plan = objects, geometry, frames, plan
        self.launch, self.asked = "", list[Action]()
        self._near: set[int] = set()  # regions that may be near, by faults or by a prefetch
        self._fetched: set[int] = set()
        self._far: set[int] = set()

    def is_resident(self, region: int) -> bool:
        return region in self._near

    def prefetch(self, first_page: int, pages: int = 1) -> None:
        regions = self._regions(first_page, pages)
        if regions - self._fetched:
            self._note("prefetch", first_page, pages)
        self._fetched |= regions
        self._near |= regions

    def evict(self, region: int) -> None:
        self._near.discard(region)
        self._fetched.discard(region)
        self._note("evict", region * self.geometry.pages_per_region, self.geometry.pages_per_region)

    def advise(self, first_page: int, pages: int, prefer: str | None) -> None:
        regions = self._regions(first_page, pages)
        if prefer == "far" and regions - self._far:
            self._note("far", first_page, pages)
            self._far |= regions
        elif prefer is None:
            if regions & self._far:
                self._note("anywhere", first_page, pages)
                self._far -= regions
            self._near |= regions

    def _regions(self, first_page: int, pages: int) -> set[int]:
        ppr = self.geometry.pages_per_region
        return set(range(first_page // ppr, -(-(first_page + pages) // ppr)))

    def _note(self, verb: str, first_page: int, pages: int) -> None:
        owner = next(o for o in reversed(self.objects) if o.first_page <= first_page)
        at = (first_page - owner.first_page) * self.geometry.page
        to = min(owner.bytes, at + pages * self.geometry.page)
        # regions that leave one by one are one call
        if self.asked and self.asked[-1].follows(verb, owner.name, at):
            self.asked[-1] = Action(verb, owner.name, self.asked[-1].first, to, owner.bytes)
        else:
            self.asked.append(Action(verb, owner.name, at, to, owner.bytes))


def rehearse(
    program: Modelled, policy: PlacementPolicy, geometry: Geometry, frames: int
) -> Schedule:
    """What the policy asks for before each launch, place by place and visit by visit."""
    trace = program.trace(geometry)
    memory = Rehearsal(trace.objects, geometry, frames, trace.plan)
    policy.attach(memory)  # type: ignore[arg-type]
    policy.start()
    visits: dict[str, list[tuple[Action, ...]]] = defaultdict(list)
    near: dict[str, list[dict[str, int]]] = defaultdict(list)
    names = [launch.name for launch in program.plan().launches]
    for number, at in enumerate(program.order):
        memory.launch, memory.asked = names[at], []
        policy.on_launch(number)
        visits[names[at]].append(tuple(memory.asked))
        near[names[at]].append(_held(memory, program, names[at]))
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
            near[name][-1],
        )
        for name in visits  # in the order of their first launches
    )
    given = tuple(sorted(program.values.items()))
    notes = (*map(str, program.model.notes), *_loops_not_known(program.model, program.values))
    place_of = {place.name: n for n, place in enumerate(places)}
    order = tuple(place_of[names[at]] for at in program.order)
    return Schedule(program.model.source, given, places, len(order), program.cut, order, notes)


def _held(memory: Rehearsal, program: Modelled, name: str) -> dict[str, int]:
    """Bytes of each used object that have room near."""
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
    """Each policy's run, or why there is none."""
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
    """Values for the variables that size objects: as given, and for the others one that makes what
    they size too large.

    A variable that only says how often a region loops, and is not given, has none: no size could
    tell it.
    """
    wanted = model.variables()
    unknown = sorted(given.keys() - set(wanted))
    if unknown:
        known = f"it has {', '.join(wanted)}" if wanted else "it has none"
        raise TidegateError(
            f"'{model.source}' has no size that depends on {', '.join(unknown)}; {known}"
        )
    sizing = {v for o in model.placeable() if o.bytes is not None for v in o.bytes.variables()}
    missing = [v for v in wanted if v not in given and v in sizing]
    if not missing:
        return dict(given), []
    low, high = 1, 2
    while _footprint(model, given, missing, high) < OVER * near and high < 2**40:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high)
            if _footprint(model, given, missing, middle) < OVER * near
            else (low, middle)
        )
    values = {**given, **dict.fromkeys(missing, high)}
    size = units.show_size(sum(sizes_of(model, values).values()))
    said = f"{', '.join(missing)} = {high:,} {'was' if len(missing) == 1 else 'each was'} assumed: {size} in all"
    return values, [f"{said}; say otherwise with --set"]


def _footprint(
    model: ProgramModel, given: Mapping[str, int], missing: list[str], value: int
) -> int:
    """Bytes of the objects that the missing variables size."""
    sizes = sizes_of(model, {**given, **dict.fromkeys(missing, value)})
    grow = [
        o.name
        for o in model.placeable()
        if o.bytes is not None and set(missing) & o.bytes.variables()
    ]
    return sum(sizes[name] for name in grow)


def _loops_not_known(model: ProgramModel, values: Mapping[str, int]) -> Iterator[str]:
    """A note for each place whose iterations depend on variables that have no value."""
    for launch in model.launches:
        lacking = sorted(
            (launch.trip_count.variables() if launch.trip_count is not None else set())
            - values.keys()
        )
        if lacking:
            yield (
                f"{model.where(launch)}: how often it loops depends on {', '.join(lacking)}, which no size tells; "
                "its objects are taken as densely used (or give it with --set)"
            )


def make_policy(spec: str) -> PlacementPolicy:
    """The policy that is planned with; it must be one that decides at launches."""
    policy = placement.make(spec)
    if type(policy).on_launch is PlacementPolicy.on_launch:
        decides = [
            n
            for n in placement.names()
            if placement.find(n).on_launch is not PlacementPolicy.on_launch
        ]
        raise TidegateError(
            f"{spec} decides nothing at launches, so there is nothing to plan; take {', '.join(decides)}"
        )
    return policy


def launched(program: Modelled) -> Counter[str]:
    """How often each place launches in the order that was taken."""
    names = [launch.name for launch in program.plan().launches]
    return Counter(names[at] for at in program.order)

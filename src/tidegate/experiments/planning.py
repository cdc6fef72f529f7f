"""Planning: the requests of a placement policy at each launch of a program, and predicted times.

rehearse  the policy, on a memory that only records requests ──▶ Schedule, for code
predict   the same policy and its rivals in the simulator ──▶ times
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tidegate import units
from tidegate.compiler.model import ProgramModel
from tidegate.compiler.plan.schedule import Action, Schedule, SiteSchedule, Visit, visits_of_places
from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import Machine
from tidegate.policies.interface.events import ADVICE, ASK_ADVISE, ASK_EVICT, ASK_PREFETCH
from tidegate.policies.interface.memory_view import VERB_NAMES, MemoryView
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.interface.visibility import Faults
from tidegate.policies.placement.objects import regions_of
from tidegate.policies.registries import placement
from tidegate.trace.geometry import Geometry
from tidegate.trace.plan import Plan
from tidegate.trace.trace import Object
from tidegate.workloads.modelled import Modelled, sizes_of

OVER = 1.5  # times near memory: the size that is assumed where none is given
MOST_BYTES = 4096 * units.GiB  # of all objects: a launch of more would take minutes to predict
TOUCHES = 6_000_000  # pages that a prediction touches, about, with each policy
RIVALS = ("um", "host", "prefetch-all", "explicit", "object-lru", "rlm", "glm", "rdm")


class Rehearsal(MemoryView):
    """A memory that only records requests. A region counts as resident once nothing keeps it far;
    a request that changes nothing is not recorded again.
    """

    objects: tuple[Object, ...] = ()
    regions: int = 0
    plan: Plan | None = None

    def __init__(
        self, objects: tuple[Object, ...], geometry: Geometry, frames: int, plan: Plan | None
    ):
        super().__init__("a placement", Faults(), geometry, frames, 0, {})
        self.objects, self.plan, self.actions = objects, plan, list[Action]()
        self.regions = max(
            -(-(o.first_page + o.pages) // geometry.pages_per_region) for o in objects
        )
        # regions that may be near, by faults or by a prefetch
        self._near, self._fetched, self._far = set[int](), set[int](), set[int]()

    def is_resident(self, region: int) -> bool:
        return region in self._near

    def _request(self, request: int, *words: int) -> None:
        if request == ASK_PREFETCH:
            self._prefetch(*words)
        elif request == ASK_EVICT:
            self._evict(*words)
        elif request == ASK_ADVISE:
            self._advise(*words)
        else:
            raise self._not_offered(VERB_NAMES[request])

    def _prefetch(self, first_page: int, pages: int) -> None:
        regions = self._regions(first_page, pages)
        if regions - self._fetched:
            self._record("prefetch", first_page, pages)
        self._fetched |= regions
        self._near |= regions

    def _evict(self, region: int) -> None:
        self._near.discard(region)
        self._fetched.discard(region)
        self._record(
            "evict", region * self.geometry.pages_per_region, self.geometry.pages_per_region
        )

    def _advise(self, first_page: int, pages: int, advice: int) -> None:
        regions = self._regions(first_page, pages)
        if advice == ADVICE["far"] and regions - self._far:
            self._record("far", first_page, pages)
            self._far |= regions
        elif advice == ADVICE[None]:
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
    names = [launch.name for launch in program.plan().launches]
    near: dict[int, dict[str, int]] = {}
    runs = [
        tuple(_rehearsed(program, order, copy.deepcopy(policy), geometry, frames, near))
        for order in (program.order, *program.ways)
    ]
    visits = visits_of_places(runs)
    order = list(dict.fromkeys(at for run in runs for at, _ in run))  # of their first launches
    places = tuple(
        SiteSchedule(
            names[at],
            program.model.where(program.model.launches[at]),
            tuple(u.object for u in program.plan().by_name[names[at]].uses),
            tuple(visits[at]),
            near[at],
        )
        for at in order
    )
    given = tuple(sorted(program.values.items()))
    notes = (
        *map(str, program.model.notes),
        *_loops_not_known(program.model, program.values),
        *_never_launched(program.model, set(order)),
    )
    place = {at: n for n, at in enumerate(order)}
    numbered = tuple(tuple((place[at], actions) for at, actions in run) for run in runs)
    return Schedule(program.model.source, given, places, numbered, program.cut, notes)


def _rehearsed(
    program: Modelled,
    order: Sequence[int],
    policy: PlacementPolicy,
    geometry: Geometry,
    frames: int,
    near: dict[int, dict[str, int]],
) -> Iterator[Visit]:
    """Yield each launch of an order with the policy's requests; note in ``near`` what is near at
    the last launch of each place.
    """
    trace = program.trace(geometry)
    memory = Rehearsal(trace.objects, geometry, frames, trace.plan)
    policy.attach(memory)
    policy.start()
    names = [launch.name for launch in program.plan().launches]
    known = set(near)
    for number, at in enumerate(order):
        memory.place, memory.actions = names[at], []
        policy.on_launch(number)
        if at not in known:
            near[at] = _near_bytes(memory, program, names[at])
        yield at, tuple(memory.actions)


def _never_launched(model: ProgramModel, planned: set[int]) -> Iterator[str]:
    for n, launch in enumerate(model.launches):
        if n not in planned:
            yield f"{model.where(launch)}: no way through the program leads to it; it is left out"


def _near_bytes(memory: Rehearsal, program: Modelled, name: str) -> dict[str, int]:
    """Return the bytes of each used object that have room near."""
    uses = {u.object for u in program.plan().by_name[name].uses}
    return {
        o.name: min(
            o.bytes, memory.geometry.region * sum(map(memory.is_resident, regions_of(o, memory)))
        )
        for o in memory.objects
        if o.name in uses
    }


def brief(program: Modelled, page: int) -> Modelled:
    """Return the program with as many turns of its loops as a prediction has time for: a few
    seconds for all policies, whatever the sizes.
    """
    sizes = program.sizes()
    used = {x.name: sum(sizes.get(u.object, 0) for u in x.uses) for x in program.plan().launches}
    names = [launch.name for launch in program.plan().launches]
    touches = sum(used[names[at]] for at in program.order) // page
    if touches <= TOUCHES:
        return program
    most = max(1, len(program.order) * TOUCHES // touches)
    return Modelled(program.model, program.values, most)


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
            runs[name] = spec.run(cache=False, progress=progress)
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
    notes = [
        f"{name} = {min(turns):.3g} was assumed: the turns of a loop around launches; "
        "give it with --set"
        for name, turns in _loop_variables(model, given).items()
    ]
    unknown = sorted(given.keys() - set(variables))
    if unknown:
        raise TidegateError(
            f"--set must name a variable of '{model.source}' ({', '.join(variables) or 'none'}), "
            f"got {', '.join(unknown)}"
        )
    sizing = {v for o in model.placeable() if o.bytes is not None for v in o.bytes.variables()}
    missing = [v for v in variables if v not in given and v in sizing]
    if not missing:
        total = sum(sizes_of(model, given).values())
        if total > MOST_BYTES:
            raise TidegateError(
                f"the objects of '{model.source}' must have at most {units.show_size(MOST_BYTES)} "
                f"in all, got {units.show_size(total)}; give smaller values with --set"
            )
        return dict(given), notes
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
    return values, [note, *notes]


def _loop_variables(model: ProgramModel, given: Mapping[str, int]) -> dict[str, list[float]]:
    """Return the variables without a value that only bound loops, and how often those turn."""
    found: dict[str, list[float]] = {}
    for loop in model.flow.loops:
        for name in sorted(loop.count.variables() - given.keys() if loop.count else ()):
            found.setdefault(name, []).append(loop.turns)
    return found


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

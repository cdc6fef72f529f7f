"""What a placement policy requests before each launch, in a real run of it."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from tidegate.advice.advice import Advice
from tidegate.advice.simulate import Outcome
from tidegate.compiler.plan.schedule import Action, Schedule, SiteSchedule, visits_of_places
from tidegate.errors import TidegateError
from tidegate.experiments.planning import make_policy, rehearse
from tidegate.experiments.specification import RunSpec
from tidegate.policies.registries import placement
from tidegate.policies.systems import find_system
from tidegate.trace.trace import Object, Trace
from tidegate.workloads.modelled import Modelled

_PAGES = {"prefetch": "prefetch", "prefetch_async": "prefetch"}
_REGION = {"evict": "evict", "evict_async": "evict"}
_ADVICE = {"far": "far", None: "anywhere", "read-mostly": "read-mostly"}


class _Overheard:
    """A memory that notes requests and passes everything on."""

    def __init__(self, memory: Any):
        self._memory = memory
        # the first entry is for requests before any launch
        self.launches: list[tuple[str, list[Action]]] = [("", [])]
        self._first = [o.first_page for o in memory.objects]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._memory, name)
        if name in _PAGES or name in _REGION or name == "advise":
            return lambda *given: self._note(name, found, given)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_memory", "launches", "_first"):
            super().__setattr__(name, value)
        else:
            setattr(self._memory, name, value)

    def _note(self, verb: str, request: Any, given: tuple[Any, ...]) -> None:
        request(*given)
        ppr, page = self._memory.geometry.pages_per_region, self._memory.geometry.page
        if verb in _REGION:
            said, first, pages = _REGION[verb], given[0] * ppr, ppr
        elif verb == "advise":
            said, first, pages = _ADVICE[given[2]], given[0], given[1]
        else:
            said, first, pages = _PAGES[verb], given[0], given[1] if len(given) > 1 else 1
        owner: Object = self._memory.objects[bisect_right(self._first, first) - 1]
        _append(self.launches[-1][1], said, owner, first, first + pages, page)


def _append(
    actions: list[Action], verb: str, owner: Object, first: int, end: int, page: int
) -> None:
    """Append a request for the pages ``first`` up to ``end``, or join it with the last one."""
    at = (first - owner.first_page) * page
    to = min(owner.bytes, (end - owner.first_page) * page)
    if actions and actions[-1].follows(verb, owner.name, at):
        at = actions.pop().first
    if at < to:
        actions.append(Action(verb, owner.name, at, to, owner.bytes))


def overhear(advice: Advice, outcome: Outcome) -> list[tuple[str, list[Action]]]:
    """Return each launch's place and the requests before it; the run is made again for it."""
    settings = dict(outcome.trial.candidate.settings)
    system = find_system(settings.get("system", "uvm"))
    policy = placement.make(settings.pop("placement", system.placement))
    heard: list[_Overheard] = []
    attach, on_launch = policy.attach, policy.on_launch

    def listen(memory: Any) -> None:
        heard.append(_Overheard(memory))
        attach(heard[-1])  # type: ignore[arg-type]

    def note(launch: int) -> None:
        heard[-1].launches.append((policy.memory.place, []))
        on_launch(launch)

    policy.attach, policy.on_launch = listen, note  # type: ignore[method-assign]
    trace = advice.subject.trace(advice.machine)
    RunSpec(trace, advice.machine, near=advice.near, placement=policy, **settings).run(cache=False)
    (_, early), *launches = heard[-1].launches
    launches[0][1][:0] = early
    return launches


def fastest(advice: Advice, kind: str) -> Outcome:
    """Return the fastest candidate that this kind of code realises."""
    found = next((o for o in advice.ranked if kind in o.trial.candidate.emits), None)
    if found is None:
        raise TidegateError(
            f"no candidate for {advice.subject.name} can be written as {kind} code; "
            "leave it out of --emit"
        )
    return found


def rehearsed(advice: Advice, outcome: Outcome, program: Modelled) -> Schedule:
    """Return the requests of a placement of objects, on a compiler's model of the program."""
    system = find_system(outcome.trial.candidate.settings["system"])
    frames = advice.near // advice.machine.geometry.region
    return rehearse(program, make_policy(system.placement), advice.machine.geometry, frames)


def discards(trace: Trace) -> list[list[Action]]:
    """Return by launch the discards that can be made before it: of data that died since."""
    found: list[list[Action]] = [[]]
    first = [o.first_page for o in trace.objects]
    for launch in trace.launches():
        dead: list[Action] = []
        for begin, end in launch.frees:
            while begin < end:  # a range may reach over several objects
                number = bisect_right(first, begin)
                stop = min(end, first[number] if number < len(first) else end)
                owner = trace.objects[number - 1]
                _append(dead, "discard", owner, begin, stop, trace.geometry.page)
                begin = stop
        found.append(dead)
    return found


def schedule_of(advice: Advice, outcome: Outcome) -> Schedule:
    """Return the requests by launch site, for the compiler's emitters."""
    launches = overhear(advice, outcome)
    dead = discards(advice.subject.trace(advice.machine))
    launches = [(place, [*dead[n], *asked]) for n, (place, asked) in enumerate(launches)]
    number = {place: n for n, place in enumerate(dict.fromkeys(p for p, _ in launches))}
    run = tuple((number[place], tuple(actions)) for place, actions in launches)
    visits = visits_of_places([run])
    sites = tuple(
        SiteSchedule(place, place, (), tuple(visits[n]), {}) for place, n in number.items()
    )
    notes = (f"By {outcome.name}, as simulated. It was never run on a GPU.",)
    return Schedule(advice.subject.name, (), sites, (run,), notes=notes)

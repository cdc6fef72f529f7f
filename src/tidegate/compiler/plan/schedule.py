"""The plan of a program (trace/plan.py), from its model and the values of its variables, and its
schedule: the requests to memory before each launch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidegate.compiler.model import FROM, TO, LaunchSite, ProgramModel
from tidegate.trace.plan import Plan, PlannedLaunch, PlannedUse


def make_plan(model: ProgramModel, variables: Mapping[str, int], by_region: bool = False) -> Plan:
    """Return the plan of a program whose variables have these values.

    ``by_region``: use the paper's distances from region to region, not those from launch to launch.
    """
    placeable = {o.name for o in model.placeable()}
    launches = tuple(
        PlannedLaunch(name, _uses(model, launch, placeable, variables, by_region))
        for name, launch in zip(launch_names(model), model.launches, strict=True)
    )
    return Plan(launches, {name: model.global_locality(name) for name in sorted(placeable)})


def launch_names(model: ProgramModel) -> list[str]:
    """Return a name for every launch site: its function, with the line or a number if that is
    ambiguous.
    """
    functions = Counter(_function(region.name) for region in model.regions)
    places: Counter[str] = Counter()
    names = []
    for launch in model.launches:
        function = _function(launch.region)
        name = function if functions[function] == 1 else launch.region
        places[name] += 1
        names.append(name if places[name] == 1 else f"{name}/{places[name]}")
    return names


def _function(region: str) -> str:
    """Return a region's function, which in C++ may contain colons."""
    return region.rpartition(":")[0] or region


def _uses(
    model: ProgramModel,
    launch: LaunchSite,
    placeable: set[str],
    variables: Mapping[str, int],
    by_region: bool,
) -> tuple[PlannedUse, ...]:
    maps: Counter[str] = Counter()
    for argument in launch.arguments:
        for name in argument.objects:
            maps[name] |= argument.map_type
    return tuple(
        PlannedUse(
            use.object,
            use.locality,
            model.nearest_region(launch.region, use.object) if by_region else use.distance,
            model.access_density(launch, use, variables),
            bool(maps[use.object] & TO),
            bool(maps[use.object] & FROM),
        )
        for use in launch.uses
        if use.object in placeable
    )


@dataclass(frozen=True)
class Action:
    """One request for the bytes ``first`` up to ``end`` of an object that has ``bytes``."""

    # prefetch, evict, far (prefer host memory), anywhere (no preference any more), read-mostly, or
    # discard (the data are dead)
    verb: str
    object: str
    first: int
    end: int
    bytes: int

    def follows(self, verb: str, name: str, first: int) -> bool:
        """Return whether a request for bytes from ``first`` on continues this one."""
        return (verb, name, first) == (self.verb, self.object, self.end)

    @property
    def whole(self) -> bool:
        """Whether it is about all of the object's bytes."""
        return (self.first, self.end) == (0, self.bytes)

    def __str__(self) -> str:
        part = "" if self.whole else f" [{self.first:,} … {self.end:,})"
        return f"{self.verb} {self.object}{part}"


Visit = tuple[int, tuple[Action, ...]]


def visits_of_places(runs: Iterable[Sequence[Visit]]) -> dict[int, list[tuple[Action, ...]]]:
    """Return the requests of each place, visit by visit, in the first run that has it."""
    found: dict[int, list[tuple[Action, ...]]] = {}
    for run in runs:
        here: dict[int, list[tuple[Action, ...]]] = {}
        for place, actions in run:
            here.setdefault(place, []).append(actions)
        found = {**here, **found}
    return found


def settled(seen: Sequence[object]) -> tuple[int, int]:
    """Return (n, period): from the n-th element on (from 0), a sequence repeats with this period,
    as in nested loops.

    Two whole periods must have been seen. If there are none, the period is 0 and what follows is
    not known.
    """
    total = len(seen)
    found = [(total, 0)]
    for period in range(1, total // 2 + 1):
        start = total - period
        while start > 0 and seen[start - 1] == seen[start - 1 + period]:
            start -= 1
        if total - start >= 2 * period:
            found.append((start, period))
    return min(found, key=sum)


@dataclass(frozen=True)
class SiteSchedule:
    """The requests before the launches of one launch site."""

    name: str
    region: str  # with the calls that lead to it, if several places launch the region
    objects: tuple[str, ...]
    visits: tuple[tuple[Action, ...], ...]  # requests before its first launch, its second, …
    near: dict[str, int]  # bytes of each object that are near at its last launch

    @property
    def used(self) -> list[str]:
        """The objects of its requests, whether or not its launches use them."""
        return sorted({a.object for actions in self.visits for a in actions})

    def cases(self) -> list[tuple[str, tuple[Action, ...]]]:
        """Return C conditions on ``tidegate_visit`` (from 1), no two of them true at once, and the
        requests of each.
        """
        start, period = settled(self.visits)
        when: dict[tuple[Action, ...], list[str]] = {}
        for n in range(start):
            when.setdefault(self.visits[n], []).append(f"tidegate_visit == {n + 1}")
        for n in range(period):
            turn = "" if period == 1 else f" && (tidegate_visit - {start + 1}) % {period} == {n}"
            when.setdefault(self.visits[start + n], []).append(f"(tidegate_visit > {start}{turn})")
        return [
            (" || ".join(conditions), actions) for actions, conditions in when.items() if actions
        ]


@dataclass(frozen=True)
class Schedule:
    """The requests of every launch site."""

    source: str
    variables: tuple[tuple[str, int], ...]
    places: tuple[SiteSchedule, ...]
    # rehearsed runs, a launch after the other: an index of ``places`` and the requests before it;
    # after the first run, only ways to places that it has not
    runs: tuple[tuple[Visit, ...], ...] = ()
    cut: bool = False  # whether the program's loops turn more often
    notes: tuple[str, ...] = ()  # assumptions

    @property
    def launches(self) -> int:
        """How many launches were rehearsed."""
        return sum(map(len, self.runs))

    def functions(self) -> dict[str, str]:
        """Return the emitted function to call before each launch, by its site's name."""
        spelt = identifiers(place.name for place in self.places)
        return {name: f"tidegate_before_{identifier}" for name, identifier in spelt.items()}

    def parameters(self) -> dict[str, str]:
        """Return the emitted parameter of each object."""
        return identifiers(name for place in self.places for name in place.used)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


# Identifiers

# of C23 and C++23, alternative spellings of operators included
_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires restrict return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t
while xor xor_eq
"""
_KEYWORDS = frozenset(_WORDS.split())
# digits, and the prefixes of names of the emitted code, its headers and the compiler
_NOT_OURS = re.compile(r"\d|cuda|CUDA|tidegate|TIDEGATE|omp_|__|_[A-Z]|$")


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return an identifier for each name: the name itself where possible, and no two the same.

    >>> identifiers(["x", "class", "malloc:6", "malloc.6"])
    {'x': 'x', 'class': 'class_', 'malloc:6': 'malloc_6', 'malloc.6': 'malloc_6_2'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    # names that are identifiers already come first and stay as they are
    for name in sorted(dict.fromkeys(names), key=lambda name: name != _as_identifier(name)):
        spelt = _as_identifier(name)
        numbers = range(2, len(taken) + 3)
        found[name] = next(s for s in (spelt, *(f"{spelt}_{n}" for n in numbers)) if s not in taken)
        taken.add(found[name])
    return found


def _as_identifier(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if _NOT_OURS.match(plain):
        plain = f"o_{plain}"
    return f"{plain}_" if plain in _KEYWORDS else plain

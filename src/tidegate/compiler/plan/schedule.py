"""Schedule: what is to be asked of memory before each launch, and the code that asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidegate.compiler.plan.identifiers import identifiers


@dataclass(frozen=True)
class Action:
    """One request: bytes ``first`` up to ``end`` of an object that has ``bytes``."""

    verb: str  # prefetch, evict, far (prefer host memory) or anywhere (prefer nothing any more)
    object: str
    first: int
    end: int
    bytes: int

    def follows(self, verb: str, name: str, first: int) -> bool:
        """Would a request for bytes from ``first`` on go on where this one ends?"""
        return (verb, name, first) == (self.verb, self.object, self.end)

    def __str__(self) -> str:
        part = (
            "" if (self.first, self.end) == (0, self.bytes) else f" [{self.first:,} … {self.end:,})"
        )
        return f"{self.verb} {self.object}{part}"


@dataclass(frozen=True)
class Place:
    """One place that launches a region."""

    name: str
    region: str  # and where it is launched from, if that is not from one place only
    objects: tuple[str, ...]
    visits: tuple[tuple[Action, ...], ...]  # what is asked before its first launch, its second, …
    near: dict[str, int]  # bytes of each object that have room near at its last launch

    @property
    def used(self) -> list[str]:
        """The objects that any request is about, whether or not this launch uses them."""
        return sorted({a.object for actions in self.visits for a in actions})

    def settled(self) -> tuple[int, int]:
        """(n, period): from the n-th visit on (counted from 0) what is asked repeats itself, as in
        loops within loops.

        It has to have done so once in full; if it never has, the period is 0 and nothing is known
        of later visits.
        """
        visits, total = self.visits, len(self.visits)
        found = [(total, 0)]
        for period in range(1, total // 2 + 1):
            start = total - period
            while start > 0 and visits[start - 1] == visits[start - 1 + period]:
                start -= 1
            if total - start >= 2 * period:
                found.append((start, period))
        return min(found, key=sum)

    def cases(self) -> list[tuple[str, tuple[Action, ...]]]:
        """C conditions on ``visit`` (from 1), of which no two are true at once, and what is asked
        then.
        """
        start, period = self.settled()
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
    """Every place's requests."""

    source: str
    variables: tuple[tuple[str, int], ...]
    places: tuple[Place, ...]
    launches: int = 0  # that were rehearsed
    cut: bool = False  # the program makes more
    order: tuple[int, ...] = ()  # the places, by number, as they were rehearsed
    notes: tuple[str, ...] = ()  # what was assumed

    def functions(self) -> dict[str, str]:
        """The function of the emitted code that is to be called before each launch, by its place's
        name.
        """
        return {
            name: f"tidegate_before_{spelt}"
            for name, spelt in identifiers(p.name for p in self.places).items()
        }

    def parameters(self) -> dict[str, str]:
        """What the emitted code calls each object."""
        return identifiers(name for place in self.places for name in place.used)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


Write = Callable[[Action, str], str]
"""The code of an action on an object that is called so."""

_CUDA = {
    "prefetch": "TIDEGATE_PREFETCH({p}, {n}, tidegate_device)",
    "evict": "TIDEGATE_PREFETCH({p}, {n}, cudaCpuDeviceId)",
    "far": "TIDEGATE_ADVISE({p}, {n}, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId);\n"
    "    TIDEGATE_ADVISE({p}, {n}, cudaMemAdviseSetAccessedBy, tidegate_device)",
    "anywhere": "TIDEGATE_ADVISE({p}, {n}, cudaMemAdviseUnsetPreferredLocation, cudaCpuDeviceId);\n"
    "    TIDEGATE_ADVISE({p}, {n}, cudaMemAdviseUnsetAccessedBy, tidegate_device)",
}
# With unified shared memory a map moves nothing, unless it says close: then the object has a copy
# in the device's memory. The regions' own maps find it there and leave it alone, so what it holds
# comes back only when it is asked for.
_OPENMP = {
    "prefetch": '_Pragma("omp target enter data map(close, to : {o}[0 : {n}])")',
    "evict": '_Pragma("omp target exit data map(close, from : {o}[0 : {n}])")',
    "far": "/* {o}: bytes {first} to {end} stay in host memory, which regions reach by unified shared memory */",
    "anywhere": "/* {o}: bytes {first} to {end} are free to move again */",
}
_OPENMP_PART = "/* {o}: the plan has bytes {first} to {end} near; directives place whole objects only, so it stays where it is */"

_CUDA_HEAD = """#include <cuda_runtime.h>

/* CUDA 13 takes a place as a structure, earlier versions take its number. */
#if CUDART_VERSION >= 13000
static inline struct cudaMemLocation tidegate_place(int device) {
  struct cudaMemLocation place;
  place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device == cudaCpuDeviceId ? 0 : device;
  return place;
}
#define TIDEGATE_ADVISE(p, n, advice, device) cudaMemAdvise(p, n, advice, tidegate_place(device))
#define TIDEGATE_PREFETCH(p, n, device) cudaMemPrefetchAsync(p, n, tidegate_place(device), 0, 0)
#else
#define TIDEGATE_ADVISE(p, n, advice, device) cudaMemAdvise(p, n, advice, device)
#define TIDEGATE_PREFETCH(p, n, device) cudaMemPrefetchAsync(p, n, device, 0)
#endif
"""
_OPENMP_HEAD = """#include <stddef.h>

#pragma omp requires unified_shared_memory
"""
_OPENMP_COPIES = "While {o} is near, regions use a copy of it there. Call this before the host reads {o}, after the last launch too."
_OPENMP_WRITTEN = "And this after the host wrote {o}."


def emit_cuda(schedule: Schedule) -> str:
    """A header: call each function before the launch it is named after.

    Objects are of cudaMallocManaged.
    """

    def write(a: Action, called: str) -> str:
        place = f"(char *){called}" + (f" + {a.first}u" if a.first else "")
        return _CUDA[a.verb].format(p=place, n=f"{a.end - a.first}u") + ";"

    return "\n".join(_lines(schedule, _CUDA_HEAD, ["int tidegate_device"], "void", write))


def emit_openmp(schedule: Schedule) -> str:
    """A header: call each function before the region it is named after, and those that copy around
    the host's own uses.
    """

    def write(a: Action, called: str) -> str:
        part = a.verb == "prefetch" and (a.first, a.end) != (0, a.bytes)
        return (_OPENMP_PART if part else _OPENMP[a.verb]).format(
            o=called, first=a.first, end=a.end, n=a.end - a.first
        )

    placed = of_whole_objects(schedule)
    return "\n".join([*_lines(placed, _OPENMP_HEAD, [], "char", write), *_copies(placed)])


def of_whole_objects(schedule: Schedule) -> Schedule:
    """The same schedule for directives, which place whole objects only: one that loses a part of
    its room leaves, and one that has room for a part stays where it is."""
    held: dict[str, int] = {}  # bytes from the object's first that were asked near
    visits: list[list[tuple[Action, ...]]] = [[] for _ in schedule.places]
    for number in schedule.order:
        asked = schedule.places[number].visits[len(visits[number])]
        before = dict(held)
        for a in asked:
            if a.verb == "prefetch" and a.first <= held.get(a.object, 0):
                held[a.object] = max(held.get(a.object, 0), a.end)
            elif a.verb == "evict":
                held[a.object] = min(held.get(a.object, 0), a.first)
        visits[number].append(tuple(_of_whole_objects(asked, before, held)))
    places = zip(schedule.places, visits, strict=True)
    return replace(schedule, places=tuple(replace(place, visits=tuple(v)) for place, v in places))


def _of_whole_objects(
    asked: tuple[Action, ...], before: dict[str, int], after: dict[str, int]
) -> Iterator[Action]:
    sizes = {a.object: a.bytes for a in asked if a.verb in ("evict", "prefetch")}
    was, now = (
        {name for name, size in sizes.items() if held.get(name) == size} for held in (before, after)
    )
    yield from (
        Action("evict", name, 0, size, size) for name, size in sizes.items() if name in was - now
    )
    yield from (
        Action("prefetch", name, 0, size, size) for name, size in sizes.items() if name in now - was
    )
    for a in asked:
        if a.verb in ("far", "anywhere") or (a.verb == "prefetch" and a.object not in now):
            yield a


def _copies(schedule: Schedule) -> Iterator[str]:
    """Functions that bring an object's two copies together; what is not near has one only, and they
    do nothing.
    """
    spelt = schedule.parameters()
    actions = (a for place in schedule.places for visit in place.visits for a in visit)
    near = {
        a.object: a.bytes for a in actions if a.verb == "prefetch" and a.end - a.first == a.bytes
    }
    for name, size in sorted(near.items()):
        o = spelt[name]
        for text, verb in ((_OPENMP_COPIES, "from"), (_OPENMP_WRITTEN, "to")):
            yield _comment(text.format(o=o))
            yield f"static inline void tidegate_update_{verb}_device_{o}(char *{o}) {{"
            yield f'  _Pragma("omp target update {verb}({o}[0 : {size}])")'
            yield "}\n"


def _lines(
    schedule: Schedule, head: str, first: list[str], kind: str, write: Write
) -> Iterator[str]:
    sizes = ", ".join(f"{name} = {value}" for name, value in schedule.variables) or "no variables"
    yield _comment(
        f"Where the objects of {schedule.source} live, launch by launch. Made by tidegate plan for {sizes}."
    )
    if schedule.cut:
        yield _comment(
            f"{schedule.launches} launches were rehearsed; after them, what each place asked last is repeated."
        )
    called, functions = schedule.parameters(), schedule.functions()
    renamed = [f"{name} is called {spelt} here" for name, spelt in called.items() if name != spelt]
    yield from map(_comment, [*schedule.notes, *renamed])
    yield head
    for place in schedule.places:
        parameters = (
            ", ".join([*first, *(f"{kind} *{called[name]}" for name in place.used)]) or "void"
        )
        yield _comment(f"Before every launch of {place.region}.")
        yield f"static inline void {functions[place.name]}({parameters}) {{"
        yield from _body(place, lambda action: write(action, called[action.object]))
        yield "}\n"


def _body(place: Place, write: Callable[[Action], str]) -> Iterator[str]:
    cases = place.cases()
    if cases:
        yield "  static unsigned long tidegate_visit = 0;"
        yield "  tidegate_visit++;"
    for n, (condition, actions) in enumerate(cases):
        yield ("  } else " if n else "  ") + f"if ({condition}) {{"
        yield from (f"    {write(action)}" for action in actions)
    yield from ["  }"] if cases else ["  /* nothing to be done */"]


def _comment(text: str) -> str:
    return f"/* {text.replace('*/', '* /')} */"

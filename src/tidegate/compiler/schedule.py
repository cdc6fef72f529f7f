"""Schedule: what is to be asked of memory before each launch, and the code that asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tidegate.compiler.identifiers import identifiers


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
        part = "" if (self.first, self.end) == (0, self.bytes) else f" [{self.first:,} … {self.end:,})"
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
        """(n, period): from the n-th visit on (counted from 0) what is asked repeats itself, as in loops within loops.

        It has to have done so once in full; if it never has, the period is 0 and nothing is known of later visits.
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
        """C conditions on ``visit`` (from 1), of which no two are true at once, and what is asked then."""
        start, period = self.settled()
        when: dict[tuple[Action, ...], list[str]] = {}
        for n in range(start):
            when.setdefault(self.visits[n], []).append(f"tidegate_visit == {n + 1}")
        for n in range(period):
            turn = "" if period == 1 else f" && (tidegate_visit - {start + 1}) % {period} == {n}"
            when.setdefault(self.visits[start + n], []).append(f"(tidegate_visit > {start}{turn})")
        return [(" || ".join(conditions), actions) for actions, conditions in when.items() if actions]


@dataclass(frozen=True)
class Schedule:
    """Every place's requests."""

    source: str
    variables: tuple[tuple[str, int], ...]
    places: tuple[Place, ...]
    launches: int = 0  # that were rehearsed
    cut: bool = False  # the program makes more
    notes: tuple[str, ...] = ()  # what was assumed

    def functions(self) -> dict[str, str]:
        """The function of the emitted code that is to be called before each launch, by its place's name."""
        return {name: f"tidegate_before_{spelt}" for name, spelt in identifiers(p.name for p in self.places).items()}

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
# With unified shared memory a map moves nothing, unless it says close: then the object has a copy in the device's memory.
_OPENMP = {
    "prefetch": '_Pragma("omp target enter data map(close, to : {o}[0 : {n}])")',
    "evict": '_Pragma("omp target exit data map(close, from : {o}[0 : {n}])")',
    "far": "/* {o}: bytes {first} to {end} stay in host memory, which regions reach by unified shared memory */",
    "anywhere": "/* {o}: bytes {first} to {end} are free to move again */",
}
_OPENMP_PART = (
    "/* {o}: the plan has bytes {first} to {end} near; directives place whole objects only, so it stays where it is */"
)

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


def emit_cuda(schedule: Schedule) -> str:
    """A header: call each function before the launch it is named after. Objects are of cudaMallocManaged."""

    def write(a: Action, called: str) -> str:
        place = f"(char *){called}" + (f" + {a.first}u" if a.first else "")
        return _CUDA[a.verb].format(p=place, n=f"{a.end - a.first}u") + ";"

    return "\n".join(_lines(schedule, _CUDA_HEAD, ["int tidegate_device"], "void", write))


def emit_openmp(schedule: Schedule) -> str:
    """A header: call each function before the region it is named after."""

    def write(a: Action, called: str) -> str:
        part = a.verb in ("prefetch", "evict") and (a.first, a.end) != (0, a.bytes)
        return (_OPENMP_PART if part else _OPENMP[a.verb]).format(o=called, first=a.first, end=a.end, n=a.end - a.first)

    return "\n".join(_lines(schedule, _OPENMP_HEAD, [], "char", write))


def _lines(schedule: Schedule, head: str, first: list[str], kind: str, write: Write) -> Iterator[str]:
    sizes = ", ".join(f"{name} = {value}" for name, value in schedule.variables) or "no variables"
    yield _comment(f"Where the objects of {schedule.source} live, launch by launch. Made by tidegate plan for {sizes}.")
    if schedule.cut:
        yield _comment(f"{schedule.launches} launches were rehearsed; after them, what each place asked last is repeated.")
    called, functions = schedule.parameters(), schedule.functions()
    renamed = [f"{name} is called {spelt} here" for name, spelt in called.items() if name != spelt]
    yield from map(_comment, [*schedule.notes, *renamed])
    yield head
    for place in schedule.places:
        parameters = ", ".join([*first, *(f"{kind} *{called[name]}" for name in place.used)]) or "void"
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

"""The code of a schedule: a C header of CUDA calls or OpenMP directives, one function per launch
site, with C and C++ identifiers for objects and sites whose names are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tidegate.compiler.plan.schedule import Action, Schedule, SiteSchedule, Visit, visits_of_places

Write = Callable[[Action, str], str]
"""Returns the code of an action on the parameter of this name."""

_CUDA = {
    "prefetch": "TIDEGATE_PREFETCH({p}, {n}, tidegate_device)",
    "evict": "TIDEGATE_PREFETCH({p}, {n}, cudaCpuDeviceId)",
    "far": "TIDEGATE_ADVISE({p}, {n}, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId);\n"
    "    TIDEGATE_ADVISE({p}, {n}, cudaMemAdviseSetAccessedBy, tidegate_device)",
    "anywhere": "TIDEGATE_ADVISE({p}, {n}, cudaMemAdviseUnsetPreferredLocation, cudaCpuDeviceId);\n"
    "    TIDEGATE_ADVISE({p}, {n}, cudaMemAdviseUnsetAccessedBy, tidegate_device)",
    "read-mostly": "TIDEGATE_ADVISE({p}, {n}, cudaMemAdviseSetReadMostly, tidegate_device)",
    "discard": "TIDEGATE_DISCARD({p}, {n})",
}
# With unified shared memory a map moves nothing, unless it has `close`: then the object gets a copy
# in the device's memory. The regions' own maps find that copy and leave it alone, so its contents
# come back only by an update or exit data.
_OPENMP = {
    "prefetch": '_Pragma("omp target enter data map(close, to : {o}[0 : {n}])")',
    "evict": '_Pragma("omp target exit data map(close, from : {o}[0 : {n}])")',
    "far": "/* {o}: bytes {first} to {end} stay in host memory, "
    "which regions reach by unified shared memory */",
    "anywhere": "/* {o}: bytes {first} to {end} are free to move again */",
    "read-mostly": "/* {o}: bytes {first} to {end} are only read */",
}
_OPENMP_PART = (
    "/* {o}: the plan has bytes {first} to {end} near; "
    "directives place whole objects only, so it stays where it is */"
)

_CUDA_HEAD = """#include <cuda_runtime.h>

/* The stream of prefetches. With one beside the kernels they overlap: define it before. */
#ifndef TIDEGATE_STREAM
#define TIDEGATE_STREAM 0
#define TIDEGATE_DISCARDS
#endif

/* CUDA 13 takes a place as a structure, earlier versions take its number. */
#if CUDART_VERSION >= 13000
static inline struct cudaMemLocation tidegate_place(int device) {
  struct cudaMemLocation place;
  place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device == cudaCpuDeviceId ? 0 : device;
  return place;
}
#define TIDEGATE_ADVISE(p, n, advice, device) cudaMemAdvise(p, n, advice, tidegate_place(device))
#define TIDEGATE_PREFETCH(p, n, device) \\
  cudaMemPrefetchAsync(p, n, tidegate_place(device), 0, TIDEGATE_STREAM)
#else
#define TIDEGATE_ADVISE(p, n, advice, device) cudaMemAdvise(p, n, advice, device)
#define TIDEGATE_PREFETCH(p, n, device) cudaMemPrefetchAsync(p, n, device, TIDEGATE_STREAM)
#endif

/* Data that are dead need not be written back: CUDA 13 can discard them, earlier versions cannot.
   A discard must not run beside a kernel or a prefetch of the same data. So with a stream of your
   own define TIDEGATE_DISCARDS only if it waits for the kernels before each of these calls. */
#if CUDART_VERSION >= 13000 && defined(TIDEGATE_DISCARDS)
static inline void tidegate_discard(void *p, size_t n) {
  cudaMemDiscardBatchAsync(&p, &n, 1, 0, TIDEGATE_STREAM);
}
#define TIDEGATE_DISCARD(p, n) tidegate_discard(p, n)
#else
#define TIDEGATE_DISCARD(p, n) ((void)(p))
#endif
"""
_OPENMP_HEAD = """#include <stddef.h>

#pragma omp requires unified_shared_memory
"""
_OPENMP_COPIES = (
    "While {o} is near, regions use a copy of it there. "
    "Call this before the host reads {o}, after the last launch too."
)
_OPENMP_WRITTEN = "And this after the host wrote {o}."


def emit_cuda(schedule: Schedule) -> str:
    """Return a header whose functions are to be called before the launches they are named after.

    Objects must come from cudaMallocManaged.
    """

    def write(a: Action, called: str) -> str:
        place = f"(char *){called}" + (f" + {a.first}u" if a.first else "")
        return _CUDA[a.verb].format(p=place, n=f"{a.end - a.first}u") + ";"

    return "\n".join(_lines(schedule, _CUDA_HEAD, ["int tidegate_device"], "void", write))


def emit_openmp(schedule: Schedule) -> str:
    """Return a header whose functions are to be called before the regions they are named after,
    and around the host's own uses.
    """

    def write(a: Action, called: str) -> str:
        template = _OPENMP_PART if a.verb == "prefetch" and not a.whole else _OPENMP[a.verb]
        return template.format(o=called, first=a.first, end=a.end, n=a.end - a.first)

    placed = of_whole_objects(schedule)
    return "\n".join([*_lines(placed, _OPENMP_HEAD, [], "char", write), *_copies(placed)])


def of_whole_objects(schedule: Schedule) -> Schedule:
    """Return the schedule for directives, which place whole objects only: an object that loses a
    part of its near memory leaves, and one with room for a part stays where it is.
    """
    runs = [tuple(_run_of_whole_objects(run)) for run in schedule.runs]
    visits = visits_of_places(runs)
    places = tuple(
        replace(place, visits=tuple(visits.get(n, ()))) for n, place in enumerate(schedule.places)
    )
    return replace(schedule, places=places, runs=tuple(runs))


def _run_of_whole_objects(run: Iterable[Visit]) -> Iterator[Visit]:
    held: dict[str, int] = {}  # bytes from the object's first on that were requested near
    for number, actions in run:
        before = dict(held)
        for a in actions:
            if a.verb == "prefetch" and a.first <= held.get(a.object, 0):
                held[a.object] = max(held.get(a.object, 0), a.end)
            elif a.verb == "evict":
                held[a.object] = min(held.get(a.object, 0), a.first)
        yield number, tuple(_of_whole_objects(actions, before, held))


def _of_whole_objects(
    actions: tuple[Action, ...], before: dict[str, int], after: dict[str, int]
) -> Iterator[Action]:
    sizes = {a.object: a.bytes for a in actions if a.verb in ("evict", "prefetch")}
    was = {name for name, size in sizes.items() if before.get(name) == size}
    now = {name for name, size in sizes.items() if after.get(name) == size}
    for verb, moved in (("evict", was - now), ("prefetch", now - was)):
        yield from (Action(verb, o, 0, size, size) for o, size in sizes.items() if o in moved)
    for a in actions:
        if a.verb in ("far", "anywhere") or (a.verb == "prefetch" and a.object not in now):
            yield a


def _copies(schedule: Schedule) -> Iterator[str]:
    """Yield functions that synchronise an object's two copies; without a near copy, no-ops."""
    spelt = schedule.parameters()
    actions = (a for place in schedule.places for visit in place.visits for a in visit)
    near = {a.object: a.bytes for a in actions if a.verb == "prefetch" and a.whole}
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
    title = f"Where the objects of {schedule.source} live, launch by launch."
    yield _comment(f"{title} Made by tidegate plan for {sizes}.")
    if schedule.cut:
        then = "the program's loops turn more often, and repeat what each place asked last"
        yield _comment(f"{schedule.launches} launches were rehearsed; {then}.")
    called, functions = schedule.parameters(), schedule.functions()
    renamed = [f"{name} is called {spelt} here" for name, spelt in called.items() if name != spelt]
    yield from map(_comment, [*schedule.notes, *renamed])
    yield head
    for place in schedule.places:
        parameters = [*first, *(f"{kind} *{called[name]}" for name in place.used)]
        yield _comment(f"Before every launch of {place.region}.")
        yield f"static inline void {functions[place.name]}({', '.join(parameters) or 'void'}) {{"
        yield from _body(place, lambda action: write(action, called[action.object]))
        yield "}\n"


def _body(place: SiteSchedule, write: Callable[[Action], str]) -> Iterator[str]:
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

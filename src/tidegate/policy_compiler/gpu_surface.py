"""The simulated GPU as compiled policies see it: ``self.memory``, its verbs, and the events."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: RUF012 - tables of primitives, never changed
from __future__ import annotations

import operator
from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from tidegate.compiled.addresses import load, load8, load16, load32, load_fixed, outside, store
from tidegate.compiled.jit import jit_within as primitive
from tidegate.policies.interface import events as e
from tidegate.policies.interface import header as h
from tidegate.policies.interface.memory_view import (
    ADVICE_OF_PAGES,
    COUNT,
    NEEDS,
    PAGES,
    PERCENT,
    REGION,
    RESIDENT,
    VERBS,
    MemoryView,
)
from tidegate.policies.interface.page_flags import FAULTED, touch_of
from tidegate.policy_compiler.handles import (
    Event,
    Handle,
    MemoryType,
    SparseType,
    bound_method,
    call_compiled,
    make_handle,
    members_of,
    one_number,
    surface_of,
    whole_number,
)
from tidegate.policy_compiler.primitives import regions


@primitive
def frames(block):
    return load_fixed(block + 8 * h.FRAMES)


@primitive
def observable(block):
    return load_fixed(block + 8 * h.OBSERVABLE)


@primitive
def pages_per_region(block):
    return load_fixed(block + 8 * h.PAGES_PER_REGION)


@primitive
def now(block):
    return load(load_fixed(block + 8 * h.TOUCHES))


@primitive
def accesses(block):
    return load(load_fixed(block + 8 * h.ACCESSES))


@primitive
def _check(block, region):
    if outside(region, load_fixed(block + 8 * h.REGIONS)):
        raise IndexError("no such region")


@primitive
def is_served(block, region):
    _check(block, region)
    served = load(load_fixed(block + 8 * h.SERVED) + h.REGION_BYTES * region)
    return served == load(load_fixed(block + 8 * h.TURN))


@primitive
def is_resident(block, region):
    _check(block, region)
    return load32(load_fixed(block + 8 * h.RESIDENT) + 4 * region) != 0


@primitive
def resident_next(block, cursor):
    """Return the next resident region behind this one, -1 if there is none."""
    here, count = load_fixed(block + 8 * h.RESIDENT), load_fixed(block + 8 * h.REGIONS)
    for region in range(cursor + 1, count):
        if load32(here + 4 * region):
            return region
    return -1


@primitive
def resident_len(block):
    here, count = load_fixed(block + 8 * h.RESIDENT), 0
    for region in range(load_fixed(block + 8 * h.REGIONS)):
        count += load32(here + 4 * region) != 0
    return count


@primitive
def is_observed(block, region):
    _check(block, region)
    return load16(load_fixed(block + 8 * h.OBSERVED) + h.REGION_BYTES * region) > 0


@primitive
def is_observed_unchecked(block, region):
    """Return the same of a region that comes from an order: it is in range."""
    return load16(load_fixed(block + 8 * h.OBSERVED) + h.REGION_BYTES * region) > 0


@primitive
def faulted_next(block, region, cursor):
    """Return the next page, as a number within the region, that faulted; -1 if there is none."""
    _check(block, region)
    state = load_fixed(block + 8 * h.PAGE_STATE) + region * load_fixed(
        block + 8 * h.PAGES_PER_REGION
    )
    pages = load32(load_fixed(block + 8 * h.REGION_PAGES) + h.REGION_BYTES * region)
    for page in range(cursor + 1, pages):
        if load8(state + page) & FAULTED:
            return page
    return -1


@primitive
def faulted_len(block, region):
    _check(block, region)
    state = load_fixed(block + 8 * h.PAGE_STATE) + region * load_fixed(
        block + 8 * h.PAGES_PER_REGION
    )
    count = 0
    for page in range(load32(load_fixed(block + 8 * h.REGION_PAGES) + h.REGION_BYTES * region)):
        count += (load8(state + page) & FAULTED) != 0
    return count


@primitive
def last_touch(block, region):
    _check(block, region)
    pages = load_fixed(block + 8 * h.PAGES_PER_REGION)
    first = load_fixed(block + 8 * h.LATEST) + 8 * pages * region
    latest = load(first)
    for page in range(1, pages):
        latest = max(latest, load(first + 8 * page))
    return touch_of(latest)


@primitive
def touch_count(block, region):
    _check(block, region)
    return load(load_fixed(block + 8 * h.REGION_TOUCHES) + 8 * region)


@primitive
def next_touch(block, region):
    _check(block, region)
    made = load(load_fixed(block + 8 * h.REGION_TOUCHES) + 8 * region)
    place = load(load_fixed(block + 8 * h.FUTURE_FIRST) + 8 * region) + made
    return load32(load_fixed(block + 8 * h.FUTURE_WHEN) + 4 * place)


# The verbs


@primitive
def _ask(block, verb, a, b, c):
    count = load_fixed(block + 8 * h.REQUEST_N)
    n = load(count)
    if n == e.REQUEST_ROWS:
        raise OverflowError("too many requests in one call")
    if n >= 0:
        request = load_fixed(block + 8 * h.REQUESTS) + 32 * n
        store(request, verb)
        store(request + 8, a)
        store(request + 16, b)
        store(request + 24, c)
        store(count, n + 1)


@primitive
def _check_pages(block, first, pages):
    most = load_fixed(block + 8 * h.REGIONS) * load_fixed(block + 8 * h.PAGES_PER_REGION)
    if pages < 1 or first < 0 or first >= most or pages > most - first:
        raise ValueError("no such pages")


def _make_verb(name: str) -> Any:
    """Return the primitive of a verb, which checks arguments as MemoryView does."""
    request, takes = VERBS[name]

    def of_pages(block, first_page, pages=1):
        _check_pages(block, first_page, pages)
        _ask(block, request, first_page, pages, 0)

    def of_advice(block, first_page, pages, advice):
        _check_pages(block, first_page, pages)
        _ask(block, request, first_page, pages, advice)

    def of_resident(block, region):
        if not is_resident(block, region):
            raise ValueError("the region is not resident")
        _ask(block, request, region, 0, 0)

    def of_region(block, region):
        _check(block, region)
        _ask(block, request, region, 0, 0)

    def of_count(block, accesses, pages=0, each=0):
        if accesses < 0 or accesses > e.MOST_ACCESSES:
            raise ValueError("no such number of accesses")
        if pages != 0:
            _check_pages(block, 0, pages)
        if each != 0 and each != 1:
            raise ValueError("neither of each page nor of granules")
        _ask(block, request, accesses, pages, each)

    def of_percent(block, percent):
        if percent < 0 or percent > e.NO_TREE:
            raise ValueError("no such threshold")
        _ask(block, request, percent, 0, 0)

    function: Any = {
        PAGES: of_pages,
        ADVICE_OF_PAGES: of_advice,
        RESIDENT: of_resident,
        REGION: of_region,
        COUNT: of_count,
        PERCENT: of_percent,
    }[takes]
    function.__name__ = function.__qualname__ = name
    return primitive(function)


_VERBS = {name: _make_verb(name) for name in VERBS}


# What is shown of it


class ResidentType(Handle):
    """The resident regions; ``sorted`` makes them iterable."""

    shown = "the set of resident regions"
    operators = {operator.contains: is_resident, len: resident_len}


class SortedResidentType(SparseType):
    """The resident regions from the lowest to the highest."""

    shown = "sorted(resident)"
    operators = {len: resident_len}
    step = resident_next


class FaultedType(SparseType):
    """The pages of a region that faulted."""

    members = ("block", "region")
    shown = "memory.faulted(region)"
    operators = {len: faulted_len}
    step = faulted_next


class ObservedType(Handle):
    """The observed regions."""

    shown = "the observed regions"
    operators = {operator.contains: is_observed}


class GeometryType(Handle):
    """Sizes of a page and a region."""

    shown = "memory.geometry"
    properties = {"pages_per_region": pages_per_region}


def _faulted(kind: Any) -> Any:
    return bound_method(kind, "faulted", one_number(FaultedType(), "faulted"))


@lower_builtin((MemoryType, "faulted"), MemoryType, types.int64)
def _lower_faulted(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    members = members_of(context, builder, sig.args[0], args[0])
    return make_handle(context, builder, FaultedType(), *members, args[1])


def _advise(kind: Any) -> Any:
    def typed(context: Any, args: Any) -> Any:
        first, pages, prefer = args
        if not isinstance(prefer, types.NoneType) and _advice(prefer) not in e.ADVICE:
            known = ", ".join(map(repr, e.ADVICE))
            raise TypingError(f"memory.advise takes one of {known}, written out")
        numbers = (whole_number(a, "advise") for a in (first, pages))
        return signature(types.none, *numbers, prefer)

    return bound_method(kind, "advise", typed)


def _advice(prefer: Any) -> Any:
    """Return the text that was written out; "" if none was."""
    return None if isinstance(prefer, types.NoneType) else getattr(prefer, "literal_value", "")


@lower_builtin((MemoryType, "advise"), MemoryType, types.VarArg(types.Any))
def _lower_advise(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    advice = context.get_constant(types.int64, e.ADVICE[_advice(sig.args[3])])
    members = members_of(context, builder, sig.args[0], args[0])
    return call_compiled(context, builder, _VERBS["advise"], [*members, args[1], args[2], advice])


_ASKED = (e.VICTIM, e.OBSERVE)
_LOOK_UPS = (
    *(frames, regions, observable, now, accesses, is_served, is_resident),
    *(last_touch, touch_count, next_touch),
)
GPU = surface_of(
    "gpu",
    MemoryView,
    NEEDS,
    {function.__name__: function for function in _LOOK_UPS}
    | {name: verb for name, verb in _VERBS.items() if name != "advise"},
    events={
        event: Event(name, event not in _ASKED, "a region" if event in _ASKED else "")
        for event, name in e.EVENT_NAMES.items()
    },
    views={"geometry": GeometryType(), "observed": ObservedType(), "resident": ResidentType()},
    typed={"faulted": _faulted, "advise": _advise},
)

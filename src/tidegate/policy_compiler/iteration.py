"""Loops over orders, resident regions, faulted pages and parts; and functions of iterables.

``reversed`` · ``islice`` · ``next(iterator, default)`` · ``sorted(resident)`` · ``first``
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import RefType, call_iternext, iternext_impl
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, overload

from tidegate.policies.structures.order import first
from tidegate.policy_compiler import primitives as p
from tidegate.policy_compiler.gpu_surface import (
    ObservedType,
    ResidentType,
    SortedResidentType,
    is_observed_unchecked,
)
from tidegate.policy_compiler.handles import (
    I64,
    ItemsIterator,
    OrderIterator,
    OrderType,
    PartsIterator,
    PartsType,
    PartType,
    SparseType,
    call_compiled,
    make_handle,
    members_of,
    whole_number,
)

_FORWARDS, _BACKWARDS = 0, 4  # which half word of a region's links leads on
_ITERABLE = (OrderType, OrderIterator, SparseType, ItemsIterator, types.Generator)


# Orders. ``left`` is how many steps may still be made. A plain iteration makes no more than there
# are regions, unless the order is changed meanwhile; one that ``islice`` has limited ends there.


def _iterator(context: Any, builder: Any, kind: Any, order: list[Any], back: int) -> Any:
    block, end, at, _ = order
    cursor = cgutils.alloca_once_value(builder, end)
    most = builder.add(call_compiled(context, builder, p.regions, [block]), I64(1))
    left = cgutils.alloca_once_value(builder, most)
    return make_handle(context, builder, kind, block, end, at, I64(back), cursor, left)


@lower_builtin("getiter", OrderType)
def _iterate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    order = members_of(context, builder, sig.args[0], args[0])
    return _iterator(context, builder, sig.return_type, order, _FORWARDS)


@lower_builtin("getiter", OrderIterator)
@lower_builtin("getiter", ItemsIterator)
def _iterate_on(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return args[0]


@lower_builtin("iternext", OrderIterator)
@iternext_impl(RefType.UNTRACKED)
def _step(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    kind = sig.args[0]
    block, end, at, back, cursor, left = members_of(context, builder, kind, args[0])
    words = [block, end, at, I64(kind.stride), back, builder.load(cursor)]
    found = call_compiled(context, builder, p.order_next, words)
    valid = builder.icmp_signed(">=", found, I64(0))
    steps = builder.load(left)
    some_left = builder.icmp_signed(">", steps, I64(0))
    if kind.limited:
        valid = builder.and_(some_left, valid)
    result.set_valid(valid)
    with builder.if_then(valid):
        if not kind.limited:
            with builder.if_then(builder.not_(some_left), likely=False):
                call_compiled(context, builder, p.order_changed, [])
        result.yield_(found)
        builder.store(found, cursor)
        builder.store(builder.sub(steps, I64(1)), left)


@infer_global(reversed)
class _Reversed(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        order = isinstance(args[0], OrderType)
        return signature(args[0].iterator_type, args[0]) if order else None


@lower_builtin(reversed, OrderType)
def _reverse(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    order = members_of(context, builder, sig.args[0], args[0])
    return _iterator(context, builder, sig.return_type, order, _BACKWARDS)


@infer_global(islice)
class _Islice(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if not args or not isinstance(args[0], OrderType | OrderIterator):
            return None
        if len(args) not in (2, 3):
            raise TypingError("islice takes an order, and one or two numbers")
        order: Any = args[0]
        stride = getattr(order, "iterator_type", order).stride
        bounds = [
            a if isinstance(a, types.NoneType) else whole_number(a, "islice") for a in args[1:]
        ]
        return signature(OrderIterator(stride, True), args[0], *bounds)


@lower_builtin(islice, OrderType, types.VarArg(types.Any))
@lower_builtin(islice, OrderIterator, types.VarArg(types.Any))
def _slice(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind, source = sig.return_type, args[0]
    if isinstance(sig.args[0], OrderType):
        order = members_of(context, builder, sig.args[0], args[0])
        source = _iterator(context, builder, kind, order, _FORWARDS)
    *same, left = members_of(context, builder, kind, source)
    begin, end = (I64(0), args[1]) if len(args) == 2 else args[1:3]
    steps = builder.load(left)
    if not isinstance(sig.args[-1], types.NoneType):
        call_compiled(context, builder, p.check_slice, [begin, end])
        fewer = builder.icmp_signed("<", end, steps)
        builder.store(builder.select(fewer, end, steps), left)
    source = make_handle(context, builder, kind, *same, left)
    with cgutils.for_range(builder, begin):
        call_iternext(context, builder, kind, source)  # passed over; at the end it stays there
    return source


# Resident regions and faulted pages


def in_order(regions: Any) -> Any:
    """Stand for ``sorted`` in compiled code, whose own has no way to refuse politely."""
    return sorted(regions)


@infer_global(in_order)
class _Sorted(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        resident = args and isinstance(args[0], ResidentType)
        return signature(SortedResidentType(), args[0]) if resident and not kws else None


@lower_builtin(in_order, ResidentType)
def _sort(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    members = members_of(context, builder, sig.args[0], args[0])
    return make_handle(context, builder, sig.return_type, *members)


@lower_builtin("getiter", SparseType)
def _iterate_items(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    cursor = cgutils.alloca_once_value(builder, I64(-1))
    return make_handle(context, builder, sig.return_type, args[0], cursor)


@lower_builtin("iternext", ItemsIterator)
@iternext_impl(RefType.UNTRACKED)
def _step_items(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    handle, cursor = members_of(context, builder, sig.args[0], args[0])
    kind = sig.args[0].handle
    words = [*members_of(context, builder, kind, handle), builder.load(cursor)]
    found = call_compiled(context, builder, kind.step, words)
    valid = builder.icmp_signed(">=", found, I64(0))
    result.set_valid(valid)
    with builder.if_then(valid):
        result.yield_(found)
        builder.store(found, cursor)


# Parts


@lower_builtin("getiter", PartsType)
def _iterate_parts(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    members = members_of(context, builder, sig.args[0], args[0])
    cursor = cgutils.alloca_once_value(builder, I64(0))
    return make_handle(context, builder, sig.return_type, *members, cursor)


@lower_builtin("iternext", PartsIterator)
@iternext_impl(RefType.UNTRACKED)
def _step_parts(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    block, cursor = members_of(context, builder, sig.args[0], args[0])
    part = builder.load(cursor)
    count = call_compiled(context, builder, p.parts_len, [block])
    valid = builder.icmp_signed("<", part, count)
    result.set_valid(valid)
    with builder.if_then(valid):
        result.yield_(make_handle(context, builder, PartType(), block, part))
        builder.store(builder.add(part, I64(1)), cursor)


# Functions of iterables


@infer_global(next)
class _NextOr(AbstractTemplate):
    """``next(iterator, default)``"""

    def generic(self, args: Any, kws: Any) -> Any:
        if len(args) != 2 or not isinstance(args[0], OrderIterator | types.Generator):
            return None
        kind, default = args[0].yield_type, getattr(args[1], "literal_type", args[1])
        if isinstance(default, types.NoneType):
            return signature(types.Optional(kind), *args)
        both = self.context.unify_types(kind, default)
        return signature(both, *args) if both else None


@lower_builtin(next, OrderIterator, types.Any)
@lower_builtin(next, types.Generator, types.Any)
def _next_or(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    default = context.cast(builder, args[1], sig.args[1], sig.return_type)
    answer = cgutils.alloca_once_value(builder, default)
    found = call_iternext(context, builder, sig.args[0], args[0])
    with builder.if_then(found.is_valid()):
        value = found.yielded_value()
        cast = context.cast(builder, value, sig.args[0].yield_type, sig.return_type)
        builder.store(cast, answer)
    return builder.load(answer)


def _is_in(observed: Any, region: int) -> bool:
    """Return whether a region that comes from an order is observed."""
    return region in observed


@infer_global(_is_in)
class _IsObserved(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        observed = isinstance(args[0], ObservedType)
        return signature(types.boolean, args[0], types.int64) if observed else None


@lower_builtin(_is_in, ObservedType, types.int64)
def _lower_is_observed(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    members = members_of(context, builder, sig.args[0], args[0])
    return call_compiled(context, builder, is_observed_unchecked, [*members, args[1]])


@overload(first, inline="always")
def _first(regions: Any, unless: Any) -> Any:
    if not isinstance(regions, _ITERABLE):
        return None
    if isinstance(regions, OrderType | OrderIterator) and isinstance(unless, ObservedType):

        def first_unobserved(regions: Any, unless: Any) -> Any:
            for region in regions:
                if not _is_in(unless, region):
                    return region
            return None

        return first_unobserved

    def first_of(regions: Any, unless: Any) -> Any:
        for region in regions:
            if region not in unless:
                return region
        return None

    return first_of

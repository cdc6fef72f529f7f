"""Methods, properties and operators of handles, each a primitive."""

from __future__ import annotations

import operator
from bisect import bisect_right
from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature
from numba.extending import infer_getattr, lower_builtin, lower_cast, lower_getattr_generic

from tidegate.policies.interface.compiling import memory_primitives as m
from tidegate.policies.interface.compiling import primitives as p
from tidegate.policies.interface.compiling.handles import (
    I64,
    ColumnType,
    DrawsType,
    Event,
    FaultedType,
    FloatColumnType,
    FloatListType,
    GeometryType,
    Handle,
    HeapType,
    ListType,
    MarksType,
    MemoryType,
    ObservedType,
    OrdersType,
    OrderType,
    PartsType,
    PartType,
    ResidentType,
    SortedResidentType,
    Surface,
    call_compiled,
    make_handle,
    members_of,
    whole_number,
    words_of,
)
from tidegate.policies.interface.events import (
    EVENT_NAMES,
    EVICTION,
    FAULT,
    LAUNCH,
    NOTIFICATION,
    OBSERVE,
    PREFETCH,
    VICTIM,
)

_HAS, _GET, _SET = operator.contains, operator.getitem, operator.setitem


def _sized(length: Any, some: Any, none: Any) -> dict[Any, Any]:
    return {len: length, bool: some, operator.not_: none}


OrderType.methods = {
    "move_to_tail": p.order_to_tail,
    "move_to_head": p.order_to_head,
    "remove": p.order_remove,
}
OrderType.properties = {"head": p.order_head, "tail": p.order_tail}
OrderType.operators = {_HAS: p.order_has, **_sized(p.order_len, p.order_any, p.order_none)}
OrdersType.operators = {len: p.orders_len}
MarksType.methods = {
    "add": p.marks_add,
    "discard": p.marks_discard,
    "remove": p.marks_remove,
    "clear": p.marks_clear,
}
MarksType.operators = {_HAS: p.marks_has, **_sized(p.marks_len, p.marks_any, p.marks_none)}
ColumnType.operators = {_GET: p.column_get, _SET: p.column_set}
FloatColumnType.operators = {_GET: p.float_column_get, _SET: p.float_column_set}
ListType.operators = {
    len: p.list_len,
    _GET: p.list_get,
    _SET: p.list_set,
    bisect_right: p.list_bisect_right,
}
FloatListType.operators = {len: p.list_len, _GET: p.float_list_get, _SET: p.float_list_set}
HeapType.methods = {"remove": p.heap_remove}
HeapType.properties = {"lowest": p.heap_lowest}
HeapType.operators = {
    _HAS: p.heap_has,
    _GET: p.heap_get,
    _SET: p.heap_set,
    **_sized(p.heap_len, p.heap_any, p.heap_none),
}
DrawsType.methods = {"below": p.draws_below}
ObservedType.operators = {_HAS: m.is_observed}
ResidentType.operators = {_HAS: m.is_resident, len: m.resident_len}
SortedResidentType.operators = {len: m.resident_len}
SortedResidentType.step = m.resident_next
FaultedType.operators = {len: m.faulted_len}
FaultedType.step = m.faulted_next
GeometryType.properties = {"pages_per_region": m.pages_per_region}
PartType.methods = {"victim": m.part_victim, "observe": m.part_observe}
PartsType.operators = {len: m.parts_len}

_RELAYED = {e: EVENT_NAMES[e] for e in (FAULT, PREFETCH, EVICTION, NOTIFICATION, LAUNCH)}

GPU = Surface(
    name="gpu",
    methods={
        "is_served": m.is_served,
        "is_resident": m.is_resident,
        "last_touch": m.last_touch,
        "touch_count": m.touch_count,
        "next_touch": m.next_touch,
        "prefetch": m.prefetch,
        "evict": m.evict,
        "observe_prefetched": m.observe_prefetched,
        "count_remote": m.count_remote,
        "set_prefetch_threshold": m.set_prefetch_threshold,
    },
    properties={"frames": m.frames, "regions": m.regions, "observable": m.observable, "now": m.now},
    views={"geometry": GeometryType(), "observed": ObservedType(), "resident": ResidentType()},
    needs={
        "now": "Everything()",
        "last_touch": "Everything()",
        "touch_count": "Everything()",
        "next_touch": "Everything(future=True)",
        "observe_prefetched": "Samples()",
        "count_remote": "Samples()",
    },
    events={event: Event(name) for event, name in _RELAYED.items()}
    | {e: Event(EVENT_NAMES[e], takes_number=False, answer="a region") for e in (VICTIM, OBSERVE)},
    typed={"faulted": lambda kind: _faulted(kind), "advise": lambda kind: _advise(kind)},
)


def _typed(context: Any, function: Any, handle: Handle, args: Any, what: str, **kws: Any) -> Any:
    """Return the signature of an operation, without the words that come first."""
    words = [types.int64] * (len(handle.members) + len(handle.numbers))
    given = [whole_number(a, what, handle.floats and i == 1) for i, a in enumerate(args)]
    named = {name: whole_number(kind, what) for name, kind in kws.items()}
    found: Any = types.Dispatcher(function).get_call_type(context, (*words, *given), named)
    return signature(found.return_type, *found.args[len(words) :])


def _lowered(function_of: Any) -> Any:
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = words_of(context, builder, sig.args[0], args[0])
        kinds = [types.int64] * len(words) + list(sig.args[1:])
        function = function_of(sig.args[0])
        return call_compiled(context, builder, function, [*words, *args[1:]], kinds)

    return lower


def _add_operator(key: Any) -> None:
    @infer_global(key)
    class Operation(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if kws or not args or not isinstance(args[0], Handle):
                return None
            if key not in args[0].operators:
                return None
            what = f"{args[0].shown}: {getattr(key, '__name__', key)}"
            if key is _SET and not args[0].floats and isinstance(args[2], types.Float):
                raise TypingError(
                    f"{args[0].shown} of whole numbers cannot hold a fraction; let it begin as 0.0"
                )
            sig = _typed(self.context, args[0].operators[key], args[0], args[1:], what)
            return signature(sig.return_type, args[0], *sig.args)

    lower_builtin(key, Handle, types.VarArg(types.Any))(_lowered(lambda h: h.operators[key]))


for _key in (len, bool, operator.not_, _HAS, _GET, _SET, bisect_right):
    _add_operator(_key)


@lower_cast(OrderType, types.boolean)
@lower_cast(MarksType, types.boolean)
@lower_cast(HeapType, types.boolean)
def _as_boolean(context: Any, builder: Any, kind: Any, to: Any, value: Any) -> Any:
    return call_compiled(
        context, builder, kind.operators[bool], words_of(context, builder, kind, value)
    )


# Attributes of handles


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Handle

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        if isinstance(kind, MemoryType):
            _check_sees(kind, name)
            if name in kind.surface.views:
                return kind.surface.views[name]
            if name in kind.surface.typed:
                return kind.surface.typed[name](kind)
        if isinstance(kind, PartType) and name in _RELAYED.values():
            return _bound(kind, name, _one_number(types.none, name))
        if function := kind.methods.get(name):
            _add_method(type(kind), name)
            return _bound(
                kind, name, lambda c, args, **kws: _typed(c, function, kind, args, name, **kws)
            )
        if function := kind.properties.get(name):
            return _typed(self.context, function, kind, (), name).return_type
        raise TypingError(f"{kind.shown} has no '{name}' in compiled code")


def _bound(kind: Any, name: str, typed: Any) -> Any:
    class Method(AbstractTemplate):
        key = (type(kind), name)
        prefer_literal = True

        def generic(self, args: Any, kws: Any) -> Any:
            return typed(self.context, args, **kws).replace(recvr=kind)

    return types.BoundFunction(Method, kind)


def _one_number(result: Any, name: str) -> Any:
    """Return the typing of a method that takes one whole number."""

    def typed(context: Any, args: Any) -> Any:
        if len(args) != 1:
            raise TypingError(f"{name} takes one number")
        return signature(result, whole_number(args[0], name))

    return typed


def _check_sees(kind: MemoryType, name: str) -> None:
    needed, sees = kind.surface.needs.get(name), kind.constants[1]
    if needed and not sees.startswith((needed.rstrip("()"), "Everything")):
        raise TypingError(
            f"it reads memory.{name} but declares sees = {sees}; it needs sees = {needed}"
        )
    if needed == "Everything(future=True)" and sees != needed:
        raise TypingError(f"it reads memory.{name}, which needs sees = {needed}")


_methods: set[tuple[type, str]] = set()


def _add_method(kind: type, name: str) -> None:
    """Say once for each name how the method is lowered."""
    if (kind, name) not in _methods:
        _methods.add((kind, name))
        lower_builtin((kind, name), kind, types.VarArg(types.Any))(
            _lowered(lambda h: h.methods[name])
        )


@lower_getattr_generic(Handle)
def _lower_property(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    if isinstance(kind, MemoryType) and name in kind.surface.views:
        members = members_of(context, builder, kind, value)
        return make_handle(context, builder, kind.surface.views[name], *members)
    return call_compiled(
        context, builder, kind.properties[name], words_of(context, builder, kind, value)
    )


# memory.faulted(region) and memory.advise(first, pages, "far" or None)


def _faulted(kind: Any) -> Any:
    return _bound(kind, "faulted", _one_number(FaultedType(), "faulted"))


@lower_builtin((MemoryType, "faulted"), MemoryType, types.int64)
def _lower_faulted(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    members = members_of(context, builder, sig.args[0], args[0])
    return make_handle(context, builder, FaultedType(), *members, args[1])


def _advise(kind: Any) -> Any:
    def typed(context: Any, args: Any) -> Any:
        first, pages, prefer = args
        literal = getattr(prefer, "literal_value", None)
        if not isinstance(prefer, types.NoneType) and literal != "far":
            raise TypingError("memory.advise takes 'far' or None, written out")
        numbers = (whole_number(a, "advise") for a in (first, pages))
        return signature(types.none, *numbers, prefer)

    return _bound(kind, "advise", typed)


@lower_builtin((MemoryType, "advise"), MemoryType, types.VarArg(types.Any))
def _lower_advise(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    function = m.advise_none if isinstance(sig.args[3], types.NoneType) else m.advise_far
    members = members_of(context, builder, sig.args[0], args[0])
    return call_compiled(context, builder, function, [*members, args[1], args[2]])


# Parts, and the orders of a family


def _lower_relay(event: int) -> Any:
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        members = members_of(context, builder, sig.args[0], args[0])
        return call_compiled(context, builder, m.part_relay, [*members, I64(event), args[1]])

    return lower


for _event, _name in _RELAYED.items():
    lower_builtin((PartType, _name), PartType, types.int64)(_lower_relay(_event))


@infer_global(_GET)
class _Item(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], OrdersType):
            return signature(OrderType(args[0].constants[1]), args[0], whole_number(args[1], "[ ]"))
        if isinstance(args[0], PartsType):
            return signature(PartType(), args[0], whole_number(args[1], "[ ]"))
        return None


@lower_builtin(_GET, OrdersType, types.int64)
def _one_order(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (block,) = members_of(context, builder, sig.args[0], args[0])
    words = words_of(context, builder, sig.args[0], args[0])
    end = call_compiled(context, builder, p.orders_end, [*words, args[1]])
    at = I64(sig.args[0].constants[0])
    return make_handle(context, builder, sig.return_type, block, end, at, I64(1))


@lower_builtin(_GET, PartsType, types.int64)
def _one_part(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    members = members_of(context, builder, sig.args[0], args[0])
    return make_handle(context, builder, sig.return_type, *members, args[1])

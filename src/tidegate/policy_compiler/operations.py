"""Methods, properties and operators of handles, each a primitive."""

from __future__ import annotations

import operator
from bisect import bisect_right
from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature
from numba.extending import infer_getattr, lower_builtin, lower_cast, lower_getattr_generic

from tidegate.policies.interface.events import EVENT_NAMES
from tidegate.policy_compiler import primitives as p
from tidegate.policy_compiler.handles import (
    GET,
    HAS,
    I64,
    SET,
    Handle,
    MemoryType,
    OrdersType,
    OrderType,
    PartsType,
    PartType,
    bound_method,
    call_compiled,
    make_handle,
    members_of,
    one_number,
    whole_number,
    words_of,
)

_RELAYED = {event: name for event, name in EVENT_NAMES.items() if name.startswith("on_")}


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
            if key is SET and not args[0].floats and isinstance(args[2], types.Float):
                raise TypingError(
                    f"{args[0].shown} of whole numbers cannot hold a fraction; let it begin as 0.0"
                )
            sig = _typed(self.context, args[0].operators[key], args[0], args[1:], what)
            return signature(sig.return_type, args[0], *sig.args)

    lower_builtin(key, Handle, types.VarArg(types.Any))(_lowered(lambda h: h.operators[key]))


for _key in (len, HAS, GET, SET, bisect_right):
    _add_operator(_key)


def _add_truth(key: Any, comparison: str) -> None:
    """``bool`` and ``not`` of what has a length."""

    @infer_global(key)
    class Truth(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            sized = args and isinstance(args[0], Handle) and len in args[0].operators
            return signature(types.boolean, args[0]) if sized else None

    @lower_builtin(key, Handle)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = words_of(context, builder, sig.args[0], args[0])
        length = call_compiled(context, builder, sig.args[0].operators[len], words)
        return builder.icmp_signed(comparison, length, I64(0))

    if key is bool:
        cast = lambda c, b, kind, to, value: lower(c, b, signature(to, kind), [value])  # noqa: E731
        lower_cast(Handle, types.boolean)(cast)


_add_truth(bool, "!=")
_add_truth(operator.not_, "==")


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
            return bound_method(kind, name, one_number(types.none, name))
        if function := kind.methods.get(name):
            _add_method(type(kind), name)
            return bound_method(
                kind, name, lambda c, args, **kws: _typed(c, function, kind, args, name, **kws)
            )
        if function := kind.properties.get(name):
            return _typed(self.context, function, kind, (), name).return_type
        raise TypingError(f"{kind.shown} has no '{name}' in compiled code")


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


# Parts, and the orders of a family


def _lower_relay(event: int) -> Any:
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        members = members_of(context, builder, sig.args[0], args[0])
        return call_compiled(context, builder, p.part_relay, [*members, I64(event), args[1]])

    return lower


for _event, _name in _RELAYED.items():
    lower_builtin((PartType, _name), PartType, types.int64)(_lower_relay(_event))


@infer_global(GET)
class _Item(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], OrdersType):
            return signature(OrderType(args[0].constants[1]), args[0], whole_number(args[1], "[ ]"))
        if isinstance(args[0], PartsType):
            return signature(PartType(), args[0], whole_number(args[1], "[ ]"))
        return None


@lower_builtin(GET, OrdersType, types.int64)
def _one_order(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (block,) = members_of(context, builder, sig.args[0], args[0])
    words = words_of(context, builder, sig.args[0], args[0])
    end = call_compiled(context, builder, p.orders_end, [*words, args[1]])
    at = I64(sig.args[0].constants[0])
    return make_handle(context, builder, sig.return_type, block, end, at, I64(1))


@lower_builtin(GET, PartsType, types.int64)
def _one_part(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    members = members_of(context, builder, sig.args[0], args[0])
    return make_handle(context, builder, sig.return_type, *members, args[1])

"""Numba types for what a policy's methods handle: its structures, its memory, its parts.

A handle is a few words at run time (``members``, the block's address first) and numbers that are
known when a policy is compiled (``constants``). Its methods, properties and operators are
primitives, which take the members, then the constants, then the arguments.
"""

# ruff: noqa: RUF012 - tables of primitives, never changed
from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, signature
from numba.extending import models, register_model

from tidegate.policy_compiler import primitives as p

I64 = ir.IntType(64)
HAS, GET, SET = operator.contains, operator.getitem, operator.setitem


class Struct:
    """Base of types whose values are a few words: ``members``, of which some are pointers."""

    members: tuple[str, ...] = ("block",)

    def __init_subclass__(cls) -> None:
        register_model(cls)(_Model)


class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: Any):
        pointer = types.EphemeralPointer(types.int64)
        special = {"cursor": pointer, "left": pointer, "handle": getattr(kind, "handle", None)}
        members = [(name, special.get(name, types.int64)) for name in kind.members]
        super().__init__(manager, kind, members)


class Handle(Struct, types.Type):
    """Base of the handles."""

    shown: ClassVar[str] = ""  # how messages call it
    floats: ClassVar[bool] = False  # its items are fractions
    methods: Mapping[str, Any] = MappingProxyType({})
    properties: Mapping[str, Any] = MappingProxyType({})
    operators: Mapping[Any, Any] = MappingProxyType({})

    def __init__(self, *constants: Any):
        self.constants = constants
        super().__init__(name=f"{type(self).__name__}{constants}")

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(c for c in self.constants if isinstance(c, int))


class OrderIterator(Struct, types.SimpleIteratorType):
    """An iteration over an order: forwards, or with ``back`` = 4 backwards."""

    members = ("block", "end", "at", "back", "cursor", "left")

    def __init__(self, stride: int, limited: bool):
        self.stride, self.limited = stride, limited
        super().__init__(f"OrderIterator({stride}, {limited})", types.int64)


class OrderType(Handle, types.IterableType):
    """Constant: stride. All orders of a policy are of one type, so that either may be meant."""

    members = ("block", "end", "at", "family")
    shown = "an Order"
    methods = {
        "move_to_tail": p.order_to_tail,
        "move_to_head": p.order_to_head,
        "remove": p.order_remove,
    }
    properties = {"head": p.order_head, "tail": p.order_tail}
    operators = {HAS: p.order_has, len: p.order_len}

    @property
    def iterator_type(self) -> Any:
        return OrderIterator(self.constants[0], False)


class OrdersType(Handle):
    """Constants: at, stride, cell."""

    shown = "Orders"
    operators = {len: p.orders_len}


class MarksType(Handle):
    """Constants: at, stride, cell."""

    shown = "Marks"
    methods = {
        "add": p.marks_add,
        "discard": p.marks_discard,
        "remove": p.marks_remove,
        "clear": p.marks_clear,
    }
    operators = {HAS: p.marks_has, len: p.marks_len}


class ColumnType(Handle):
    """Constants: at, stride."""

    shown = "a Column"
    operators = {GET: p.column_get, SET: p.column_set}


class FloatColumnType(ColumnType):
    """Constants: at, stride."""

    floats = True
    operators = {GET: p.float_column_get, SET: p.float_column_set}


class ListType(Handle):
    """Constant: cell."""

    shown = "a list"
    operators = {
        len: p.list_len,
        GET: p.list_get,
        SET: p.list_set,
        bisect_right: p.list_bisect_right,
    }


class FloatListType(ListType):
    """Constant: cell."""

    floats = True
    operators = {len: p.list_len, GET: p.float_list_get, SET: p.float_list_set}


class HeapType(Handle):
    """Constants: at, stride, cell."""

    shown = "a Heap"
    methods = {"remove": p.heap_remove}
    properties = {"lowest": p.heap_lowest}
    operators = {HAS: p.heap_has, GET: p.heap_get, SET: p.heap_set, len: p.heap_len}


class DrawsType(Handle):
    """Constant: cell."""

    shown = "Draws"
    methods = {"below": p.draws_below}


class ItemsIterator(Struct, types.SimpleIteratorType):
    """An iteration over a sparse handle."""

    members = ("handle", "cursor")

    def __init__(self, handle: SparseType):
        self.handle = handle
        super().__init__(f"ItemsIterator({handle})", types.int64)


class SparseType(Handle, types.IterableType):
    """Base of handles whose items ``step(*members, cursor)`` finds one after another, then -1."""

    step: ClassVar[Any]

    @property
    def iterator_type(self) -> Any:
        return ItemsIterator(self)


class PartType(Handle):
    """A policy that this one is made of."""

    members = ("block", "part")
    shown = "a part"
    methods = {"victim": p.part_victim, "observe": p.part_observe}


class PartsIterator(Struct, types.SimpleIteratorType):
    """An iteration over parts."""

    members = ("block", "cursor")


class PartsType(Handle, types.IterableType):
    """The policies that this one is made of."""

    shown = "the parts"
    operators = {len: p.parts_len}

    @property
    def iterator_type(self) -> Any:
        return PartsIterator("PartsIterator", PartType())


@dataclass(frozen=True)
class Event:
    """How an event is handled: by a method that takes its number, or nothing, and may answer."""

    method: str
    takes_number: bool = True
    answer: str = ""  # what the method must answer, for messages; "": answers are ignored
    convert: Any = None  # the mechanism's number for an answer, a compiled function; None: the same


@dataclass(frozen=True)
class Surface:
    """What a mechanism shows compiled policies as ``self.memory``, and the events it relays.

    Names, and what a policy must see for them, are those that the view declares.
    """

    name: str
    methods: dict[str, Any]
    properties: dict[str, Any]
    views: dict[str, Handle]  # properties that are handles
    needs: Mapping[str, str]  # what a policy must see for a name
    events: dict[int, Event]
    typed: dict[str, Callable[[Any], Any]]  # types of other methods


def surface_of(
    name: str,
    view: type,
    needs: Mapping[str, str],
    primitives: Mapping[str, Any],
    events: dict[int, Event],
    views: dict[str, Handle] | None = None,
    typed: dict[str, Callable[[Any], Any]] | None = None,
) -> Surface:
    """Return the surface with these primitives for names of a view: its methods and properties."""
    methods = {n: f for n, f in primitives.items() if callable(getattr(view, n, None))}
    properties = {n: f for n, f in primitives.items() if n not in methods}
    return Surface(name, methods, properties, views or {}, needs, events, typed or {})


class MemoryType(Handle):
    """``self.memory``. Constants: its surface's name, and what the policy sees."""

    shown = "self.memory"

    def __init__(self, surface: Surface, sees: str):
        self.surface, self.methods, self.properties = surface, surface.methods, surface.properties
        super().__init__(surface.name, sees)


def members_of(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return the words of a handle."""
    proxy = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    return [getattr(proxy, member) for member in kind.members]


def make_handle(context: Any, builder: Any, kind: Any, *words: Any) -> Any:
    """Return a handle of these words."""
    proxy = cgutils.create_struct_proxy(kind)(context, builder)
    for member, word in zip(kind.members, words, strict=True):
        setattr(proxy, member, word)
    return proxy._getvalue()


def words_of(context: Any, builder: Any, kind: Handle, value: Any) -> list[Any]:
    """Return what a primitive takes first: a handle's members, then its constants."""
    return [*members_of(context, builder, kind, value), *(I64(n) for n in kind.numbers)]


def call_compiled(
    context: Any, builder: Any, function: Any, args: list[Any], kinds: list[Any] | None = None
) -> Any:
    """Emit a call of a compiled function; arguments are int64 unless ``kinds`` says otherwise."""
    dispatcher = types.Dispatcher(function)
    given = tuple(kinds or [types.int64] * len(args))
    signature = dispatcher.get_call_type(context.typing_context, given, {})
    call = context.get_function(dispatcher, signature)
    result = call(builder, args)
    context.add_linking_libs(getattr(call, "libs", ()))
    return result


def whole_number(kind: Any, what: str, fraction: bool = False) -> Any:
    """Return the type that an argument is handed over as: int64, or float64 for a ``fraction``."""
    if isinstance(kind, types.Optional):
        kind = kind.type
    if fraction and isinstance(kind, types.Float | types.Integer | types.Boolean):
        return types.float64
    if isinstance(kind, types.Integer | types.Boolean | types.IntEnumMember):
        return types.int64
    raise TypingError(
        f"{what} takes a {'number' if fraction else 'whole number'}, not {name_of_kind(kind)}"
    )


def name_of_kind(kind: Any) -> str:
    """Return how messages call a type."""
    if isinstance(kind, types.Float):
        return "a fraction"
    if isinstance(kind, types.NoneType):
        return "None"
    return getattr(kind, "shown", "") or str(kind)


def bound_method(kind: Any, name: str, typed: Any) -> Any:
    """Return the type of a handle's method; ``typed(context, args)`` gives its signature."""

    class Method(AbstractTemplate):
        key = (type(kind), name)
        prefer_literal = True

        def generic(self, args: Any, kws: Any) -> Any:
            return typed(self.context, args, **kws).replace(recvr=kind)

    return types.BoundFunction(Method, kind)


def one_number(result: Any, name: str) -> Any:
    """Return the typing of a method that takes one whole number."""

    def typed(context: Any, args: Any) -> Any:
        if len(args) != 1:
            raise TypingError(f"{name} takes one number")
        return signature(result, whole_number(args[0], name))

    return typed

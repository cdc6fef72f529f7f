"""Numba types for what a policy's methods handle: its structures, its memory, its parts.

A handle is a few words at run time (``members``, the block's address first) and numbers that are
known when a policy is compiled (``constants``). Its methods, properties and operators are
primitives, which take the members, then the constants, then the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import models, register_model

I64 = ir.IntType(64)


class Handle(types.Type):
    """Base of the handles."""

    members: ClassVar[tuple[str, ...]] = ("block",)
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


class OrderIterator(types.SimpleIteratorType):
    """An iteration over an order: forwards, or with ``back`` = 4 backwards."""

    members = ("block", "end", "at", "back", "cursor", "left")

    def __init__(self, stride: int, limited: bool):
        self.stride, self.limited = stride, limited
        super().__init__(f"OrderIterator({stride}, {limited})", types.int64)


class OrderType(Handle, types.IterableType):
    """Constant: stride. All orders of a policy are of one type, so that either may be meant."""

    members = ("block", "end", "at", "family")
    shown = "an Order"

    @property
    def iterator_type(self) -> Any:
        return OrderIterator(self.constants[0], False)


class OrdersType(Handle):
    """Constants: at, stride, cell."""

    shown = "Orders"


class MarksType(Handle):
    """Constants: at, stride, cell."""

    shown = "Marks"


class ColumnType(Handle):
    """Constants: at, stride."""

    shown = "a Column"


class FloatColumnType(Handle):
    """Constants: at, stride."""

    shown = "a Column"
    floats = True


class ListType(Handle):
    """Constant: cell."""

    shown = "a list"


class FloatListType(Handle):
    """Constant: cell."""

    shown = "a list"
    floats = True


class HeapType(Handle):
    """Constants: at, stride, cell."""

    shown = "a Heap"


class DrawsType(Handle):
    """Constant: cell."""

    shown = "Draws"


class ItemsIterator(types.SimpleIteratorType):
    """An iteration over a sparse handle: ``step(*members, cursor)`` finds the next, or -1."""

    members = ("handle", "cursor")

    def __init__(self, handle: Handle):
        self.handle = handle
        super().__init__(f"ItemsIterator({handle})", types.int64)


class SparseType(Handle, types.IterableType):
    """Base of handles whose items are found one after another."""

    step: ClassVar[Any]

    @property
    def iterator_type(self) -> Any:
        return ItemsIterator(self)


class ResidentType(Handle):
    """The resident regions; ``sorted`` makes them iterable."""

    shown = "the set of resident regions"


class SortedResidentType(SparseType):
    """The resident regions from the lowest to the highest."""

    shown = "sorted(resident)"


class FaultedType(SparseType):
    """The pages of a region that faulted."""

    members = ("block", "region")
    shown = "memory.faulted(region)"


class ObservedType(Handle):
    """The observed regions."""

    shown = "the observed regions"


class GeometryType(Handle):
    """Sizes of a page and a region."""

    shown = "memory.geometry"


class PartType(Handle):
    """A policy that this one is made of."""

    members = ("block", "part")
    shown = "a part"


class PartsIterator(types.SimpleIteratorType):
    """An iteration over parts."""

    members = ("block", "cursor")


class PartsType(Handle, types.IterableType):
    """The policies that this one is made of."""

    shown = "the parts"

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
    """What a mechanism shows compiled policies as ``self.memory``, and the events it relays."""

    name: str
    methods: dict[str, Any]
    properties: dict[str, Any]
    views: dict[str, Handle]  # properties that are handles
    needs: dict[str, str]  # what a policy must see for a name
    events: dict[int, Event]
    typed: dict[str, Callable[[Any], Any]] = field(default_factory=dict)  # types of other names


class MemoryType(Handle):
    """``self.memory``. Constants: its surface's name, and what the policy sees."""

    shown = "self.memory"

    def __init__(self, surface: Surface, sees: str):
        self.surface, self.methods, self.properties = surface, surface.methods, surface.properties
        super().__init__(surface.name, sees)


HANDLES = (
    OrderType,
    OrdersType,
    MarksType,
    ColumnType,
    FloatColumnType,
    ListType,
    FloatListType,
    HeapType,
    DrawsType,
    ResidentType,
    SortedResidentType,
    FaultedType,
    ObservedType,
    GeometryType,
    PartType,
    PartsType,
    MemoryType,
)


def _register(kind: Any) -> None:
    def member_type(fe_type: Any, member: str) -> Any:
        if member == "handle":
            return fe_type.handle
        pointer = member in ("cursor", "left")
        return types.EphemeralPointer(types.int64) if pointer else types.int64

    class Model(models.StructModel):
        def __init__(self, manager: Any, fe_type: Any):
            super().__init__(
                manager, fe_type, [(m, member_type(fe_type, m)) for m in fe_type.members]
            )

    register_model(kind)(Model)


for _kind in (*HANDLES, OrderIterator, ItemsIterator, PartsIterator):
    _register(_kind)


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
    if isinstance(kind, types.Integer | types.Boolean):
        return types.int64
    raise TypingError(
        f"{what} takes a {'number' if fraction else 'whole number'}, not {said(kind)}"
    )


def said(kind: Any) -> str:
    """Return how messages call a type."""
    if isinstance(kind, types.Float):
        return "a fraction"
    if isinstance(kind, types.NoneType):
        return "None"
    return getattr(kind, "shown", "") or str(kind)

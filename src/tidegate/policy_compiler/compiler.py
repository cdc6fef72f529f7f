"""A policy's class → one C function ``int64 (block, event)``, compiled from the class as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
from numba import int64, types
from numba.core import cgutils
from numba.core.ccallback import CFunc
from numba.core.ir import SetAttr
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

from tidegate.compiled.intrinsics import interrupt_point
from tidegate.compiled.linking import EntryCompiler, LinkedCompiler
from tidegate.policies.interface.events import EVENT_BITS, FAILED
from tidegate.policies.interface.header import FAILURE, OWN, REQUEST_N
from tidegate.policies.structures.order import first
from tidegate.policy_compiler.bounded import NAMES, rewriting
from tidegate.policy_compiler.handles import (
    I64,
    ColumnType,
    DrawsType,
    Event,
    FloatColumnType,
    FloatListType,
    HeapType,
    ListType,
    MarksType,
    MemoryType,
    OrdersType,
    OrderType,
    PartsType,
    PartType,
    Surface,
    name_of_kind,
)
from tidegate.policy_compiler.iteration import in_order
from tidegate.policy_compiler.layout import Layout, StatePlace
from tidegate.policy_compiler.policy_type import Field, PolicyType
from tidegate.policy_compiler.source import CannotCompile, Methods, at, find_member, function_of

_NUMBERS = types.Integer | types.Boolean | types.IntEnumMember

# Numba's error model is Python's: a division by zero raises. Arrays, which tiers show, are checked.
_OPTIONS = {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "forceinline": True,
    "boundscheck": True,
    "pipeline_class": LinkedCompiler,
}


def _jit(function: Any) -> Any:
    return numba.njit(**_OPTIONS)(function)  # type: ignore[call-overload]


def compile_class(
    cls: type, layout: Layout, surface: Surface, sees: str, events: list[int], rounds: int, key: str
) -> Any:
    """Return Numba's result for the function that handles these events.

    ``key`` goes into names: of two functions of one name, from two caches, one would run.
    """
    replaced = {"_interrupt_point": interrupt_point, "sorted": in_order, **NAMES}
    methods = Methods(cls, _jit, (first,), replaced, rewriting(rounds))
    fields = {p.attribute: _field(p, layout) for p in layout.places}
    memory = MemoryType(surface, sees)
    policy = PolicyType(f"{cls.__name__} {key}", fields, layout.refused, methods, memory)
    dispatch = _dispatch(cls, policy, surface, events, key)
    dispatch.compile((types.int64, types.int64))
    guarded = _guarded(dispatch)

    def entry(block: int, event: int) -> int:
        return guarded(block, event)  # type: ignore[no-any-return]

    entry.__name__ = entry.__qualname__ = f"policy_{key}"
    cfunc: Any = CFunc(entry, normalize_signature(int64(int64, int64)), {}, {}, EntryCompiler)  # type: ignore[no-untyped-call]
    result = cfunc._compiler.compile((int64, int64), int64)
    for function in methods:
        for overload in function.overloads.values():
            _check_stores(policy, overload.type_annotation)
    return result


def _field(place: StatePlace, layout: Layout) -> Field:
    """Return an attribute's Numba type and place."""
    stride, cell = 8 * layout.row, 8 * (OWN + place.cell)
    at = 8 * (OWN + layout.cells + place.word)
    if place.kind.name.startswith("part "):
        return Field(PartType(), int(place.kind.name.removeprefix("part ")))
    kind = {
        "bool": lambda: types.boolean,
        "int": lambda: types.int64,
        "float": lambda: types.float64,
        "order": lambda: OrderType(stride),
        "orders": lambda: OrdersType(at, stride, cell),
        "marks": lambda: MarksType(at, stride, cell),
        "column": lambda: ColumnType(at, stride),
        "float column": lambda: FloatColumnType(at, stride),
        "heap": lambda: HeapType(at, stride, cell),
        "list": lambda: ListType(cell),
        "float list": lambda: FloatListType(cell),
        "draws": lambda: DrawsType(cell),
        "parts": lambda: PartsType(),
    }[place.kind.name]()
    return Field(kind, at if place.kind.name == "order" else cell)


def _dispatch(cls: type, policy: PolicyType, surface: Surface, events: list[int], key: str) -> Any:
    """Return a compiled function that calls the method that an event is for."""

    @intrinsic
    def as_policy(context: Any, block: Any) -> Any:
        return policy(types.int64), lambda context, builder, signature, args: args[0]

    space: dict[str, Any] = {"as_policy": as_policy}
    lines = ["def dispatch(block, event):", " self = as_policy(block)"]
    lines += [f" kind, number = event & {(1 << EVENT_BITS) - 1}, event >> {EVENT_BITS}"]
    for number in events:
        event = surface.events[number]
        call = f"self.{event.method}({'number' if event.takes_number else ''})"
        lines += [f" if kind == {number}:"]
        if event.answer:
            space[f"answer_{number}"] = _answer(cls, event)
            call = f"answer_{number}({call})"
            if event.convert:
                space[f"convert_{number}"] = event.convert
                call = f"convert_{number}({call})"
            lines += [f"  return {call}"]
        else:
            lines += [f"  {call}", "  return 0"]
    exec("\n".join([*lines, " return 0"]), space)
    made: Any = space["dispatch"]
    made.__name__ = made.__qualname__ = f"dispatch_{key}"
    return _jit(made)


def _answer(cls: type, event: Event) -> Any:
    """Return an intrinsic that makes a number of a method's answer, FAILED of None."""
    function = function_of(find_member(cls, event.method))

    def answer(context: Any, given: Any) -> Any:
        number = given.type if isinstance(given, types.Optional) else given
        if not isinstance(number, _NUMBERS | types.NoneType):
            where = at(function) if function else cls.__name__
            raise CannotCompile(
                f"{where}: {event.method}() must answer {event.answer}, not {name_of_kind(number)}"
            )

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if isinstance(number, types.NoneType):
                return I64(FAILED)
            if given is number:
                return context.cast(builder, args[0], number, types.int64)
            found = context.make_helper(builder, given, args[0])
            value = context.cast(builder, found.data, number, types.int64)
            return builder.select(cgutils.as_bool_bit(builder, found.valid), value, I64(FAILED))

        return types.int64(given), codegen

    return intrinsic(answer)  # type: ignore[arg-type]


def _guarded(dispatch: Any) -> Any:
    """Return an intrinsic that calls the function; if it raises, the block says so."""

    @intrinsic
    def guarded(typing: Any, block: Any, event: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            result = dispatch.overloads[types.int64, types.int64]
            context.active_code_library.add_linking_library(result.library)
            status, found = context.call_internal_no_propagate(
                builder, result.fndesc, int64(int64, int64), args
            )
            answer = cgutils.alloca_once_value(builder, found)

            def word(number: int) -> Any:
                return builder.inttoptr(builder.add(args[0], I64(8 * number)), I64.as_pointer())

            with builder.if_then(status.is_error, likely=False):
                builder.store(I64(1), word(FAILURE))
                waiting = builder.load(word(REQUEST_N), typ=I64)
                builder.store(I64(-1), builder.inttoptr(waiting, I64.as_pointer()))
                builder.store(I64(FAILED), answer)
            return builder.load(answer)

        return types.int64(types.int64, types.int64), codegen

    return guarded


def _check_stores(policy: PolicyType, typed: Any) -> None:
    """Refuse to store a fraction where a whole number was: Numba would cut it."""
    for block in typed.blocks.values():
        for step in block.body:
            if not isinstance(step, SetAttr) or typed.typemap[step.target.name] != policy:
                continue
            kind, value = policy.fields[step.attr].kind, typed.typemap[step.value.name]
            where = f"{Path(step.loc.filename).name}, line {step.loc.line}: self.{step.attr}"
            if kind in (types.int64, types.boolean) and isinstance(value, types.Float):
                raise CannotCompile(
                    f"{where} begins as a whole number and becomes a fraction; let it begin as 0.0"
                )
            if kind == types.boolean and isinstance(value, types.Integer):
                raise CannotCompile(
                    f"{where} begins as True or False and becomes a number; let it begin as 0"
                )

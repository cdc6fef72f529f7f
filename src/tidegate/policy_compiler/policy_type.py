"""The Numba type of ``self``: fields at fixed places of the block, methods compiled when used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
)

from tidegate.policy_compiler import iteration, operations  # noqa: F401 - registers
from tidegate.policy_compiler import primitives as p
from tidegate.policy_compiler.handles import (
    I64,
    Handle,
    MemoryType,
    OrderType,
    PartType,
    call_compiled,
    make_handle,
)
from tidegate.policy_compiler.source import Methods

_KINDS = {bool: types.boolean, int: types.int64, float: types.float64}


@dataclass(frozen=True)
class Field:
    """A field of ``self``: its type, and where it is in the block."""

    kind: Any
    at: int  # bytes from the block's beginning; a part's number


class PolicyType(types.Type):
    """``self`` of one class and layout."""

    def __init__(
        self,
        key: str,
        fields: dict[str, Field],
        refused: dict[str, str],
        methods: Methods,
        memory: MemoryType,
    ):
        self.fields, self.refused, self.methods, self.memory = fields, refused, methods, memory
        super().__init__(name=f"Policy({key})")

    def view(self, name: str) -> Any:
        """Return the type of ``self.memory``, ``self.observed`` or ``self.resident``."""
        return self.memory if name == "memory" else self.memory.surface.views[name]


@register_model(PolicyType)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any):
        super().__init__(manager, fe_type, I64)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = PolicyType

    def generic_resolve(self, policy: Any, name: str) -> Any:  # type: ignore[override]
        if name in policy.fields:
            return policy.fields[name].kind
        if name in policy.refused:
            raise TypingError(f"self.{name} {policy.refused[name]}")
        if name in ("memory", "observed", "resident"):
            return policy.view(name)
        if name in policy.methods.constants:
            return _KINDS[type(policy.methods.constants[name])]
        compiled = policy.methods.compiled(name)
        if compiled is None:
            raise TypingError(f"self.{name} is not set in start(); set it there")
        kind: Any = types.Dispatcher(compiled)
        if name in policy.methods.properties:
            return kind.get_call_type(self.context, (policy,), {}).return_type
        _add_method(name)
        return _bound(policy, name, kind)


def _bound(policy: PolicyType, name: str, kind: Any) -> Any:
    class Method(AbstractTemplate):
        key = (PolicyType, name)

        def generic(self, args: Any, kws: Any) -> Any:
            if any(isinstance(a, types.IteratorType) for a in args):
                raise TypingError(f"self.{name} takes an iterator; give it the order itself")
            if name in policy.methods.static:
                return kind.get_call_type(self.context, args, kws).replace(recvr=policy)
            return kind.get_call_type(self.context, (policy, *args), kws).as_method()

    return types.BoundFunction(Method, policy)


_added: set[str] = set()


def _add_method(name: str) -> None:
    """Say once for each name how a policy's method is lowered."""
    if name in _added:
        return
    _added.add(name)

    @lower_builtin((PolicyType, name), PolicyType, types.VarArg(types.Any))
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        methods = sig.args[0].methods
        if name in methods.static:
            sig, args = sig.replace(args=sig.args[1:]), args[1:]
        call = context.get_function(types.Dispatcher(methods.compiled(name)), sig)
        result = call(builder, args)
        context.add_linking_libs(getattr(call, "libs", ()))
        return result


@lower_getattr_generic(PolicyType)
def _get(context: Any, builder: Any, policy: PolicyType, block: Any, name: str) -> Any:
    if name not in policy.fields:
        methods = policy.methods
        if name in methods.constants:
            value = methods.constants[name]
            return context.get_constant(_KINDS[type(value)], value)
        if name in methods.properties:
            return call_compiled(context, builder, methods.compiled(name), [block], [policy])
        return make_handle(context, builder, policy.view(name), block)
    field = policy.fields[name]
    if isinstance(field.kind, OrderType):
        end = call_compiled(context, builder, p.regions, [block])
        return make_handle(context, builder, field.kind, block, end, I64(field.at), I64(0))
    if isinstance(field.kind, PartType):
        return make_handle(context, builder, field.kind, block, I64(field.at))
    if isinstance(field.kind, Handle):
        return make_handle(context, builder, field.kind, block)
    word = ir.DoubleType() if field.kind == types.float64 else I64
    place = builder.inttoptr(builder.add(block, I64(field.at)), word.as_pointer())
    found = builder.load(place, typ=word)
    return builder.icmp_signed("!=", found, I64(0)) if field.kind == types.boolean else found


@lower_setattr_generic(PolicyType)
def _set(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    block, value = args
    field = sig.args[0].fields.get(name)
    if field is None or isinstance(field.kind, Handle):
        raise TypingError(f"self.{name} is made in start() and cannot be replaced later")
    value = builder.zext(value, I64) if field.kind == types.boolean else value
    place = builder.add(block, I64(field.at))
    builder.store(value, builder.inttoptr(place, value.type.as_pointer()))

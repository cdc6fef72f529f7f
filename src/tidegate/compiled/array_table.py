"""Array tables: many arrays behind one pointer, for compiled code that is called often.

A compiled function that takes thirty arrays spends its time copying them. One that takes them out
of a Numba struct counts references, with an atomic instruction each time: in runs with many faults
that was more than half of all time. Here the arrays' descriptors (address, size, strides) lie in a
table that never changes. Compiled code gets the table's address, and an array read from it has no
reference count: the ArrayTable keeps the arrays alive.

    Memory(page_state=…)  ──▶  ArrayTable  ──▶  compiled: memory.page_state[page], two loads
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)


class ArrayTable:
    """The arrays of a NamedTuple, as one argument of compiled functions.

    Compiled code reads them by name; it cannot replace one array by another.
    """

    def __init__(self, arrays: Any):
        self._arrays = arrays  # keeps them alive
        self.kind = _kind_of(arrays._asdict())
        self._table = np.array([word for array in arrays for word in _descriptor(array)], np.int64)
        self.address = self._table.ctypes.data


_kinds: dict[Any, ArrayTableType] = {}  # Numba takes a millisecond for the types of a run's arrays


def _kind_of(arrays: dict[str, Any]) -> ArrayTableType:
    like = tuple(
        (name, a.dtype, a.ndim, a.flags.c_contiguous, a.flags.f_contiguous, a.flags.writeable)
        for name, a in arrays.items()
    )
    if like not in _kinds:
        _kinds[like] = ArrayTableType(tuple((name, typeof(a)) for name, a in arrays.items()))
    return _kinds[like]


def _descriptor(array: Any) -> list[int]:
    """Return Numba's form of an array: owner (none), parent, size, item size, address, shape,
    strides.
    """
    return [0, 0, array.size, array.itemsize, array.ctypes.data, *array.shape, *array.strides]


class ArrayTableType(types.Type):
    """The Numba type of an ArrayTable: names, types and offsets of its arrays."""

    def __init__(self, fields: tuple[tuple[str, Any], ...]):
        self.fields = dict(fields)
        self.offsets: dict[str, int] = {}
        words = 0
        for name, kind in fields:
            self.offsets[name] = 8 * words
            words += 5 + 2 * kind.ndim
        super().__init__(
            name=f"ArrayTable({', '.join(f'{name}: {kind}' for name, kind in fields)})"
        )


@typeof_impl.register(ArrayTable)
def _typeof(value: ArrayTable, c: Any) -> ArrayTableType:
    return value.kind


@register_model(ArrayTableType)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any):
        super().__init__(manager, kind, ir.IntType(64))


@unbox(ArrayTableType)
def _unbox(kind: ArrayTableType, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    native = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(native, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@infer_getattr
class _Fields(AttributeTemplate):
    key = ArrayTableType

    def generic_resolve(self, typ: ArrayTableType, attr: str) -> Any:  # type: ignore[override]
        return typ.fields.get(attr)


@lower_getattr_generic(ArrayTableType)
def _take(context: Any, builder: Any, kind: ArrayTableType, address: Any, name: str) -> Any:
    """Load an array's descriptor; the table never changes, so one load may serve many uses."""
    shape = context.get_value_type(kind.fields[name])
    at = builder.add(address, ir.Constant(ir.IntType(64), kind.offsets[name]))
    found = builder.load(builder.inttoptr(at, shape.as_pointer()), typ=shape)
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found

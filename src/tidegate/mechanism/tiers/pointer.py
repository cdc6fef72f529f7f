"""Tiers as compiled code sees them: one pointer, whose fields are the arrays.

Passed by value, so many arrays would cost more than the work they are passed for; a structref counts references in every
function that looks at it, with locked instructions. A pointer to a table of addresses and lengths does neither:

    table = table_of(m)               in Python; it and the arrays must be kept alive for as long as compiled code runs
    m = tiers_at(table.ctypes.data)   in compiled code; then m.where[page], m.count[HITS] …
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_untracked, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import make_array, populate_array
from numpy.typing import NDArray

from tidegate.mechanism.tiers.state import Tiers
from tidegate.trace.trace import Segment

_KINDS: dict[str, Any] = {
    "where": types.int32, "history": types.int64, "held": types.int32, "frames": types.uint8, "frame_words": types.uint64,
    "queue": types.int32, "queue_dirty": types.uint8, "done": types.float64, "waits_for": types.int64, "hand": types.int64,
    "count": types.int64, "clock": types.float64, "last": types.int64, "touched": types.int64, "reference": types.int16,
    "tree": types.int32, "place": types.int32, "pairs": types.int64, "sampling": types.int64, "uses": types.int64,
    "rules": types.int64, "costs": types.float64,
}  # fmt: skip
assert tuple(_KINDS) == Tiers._fields
# Those of a segment, behind the others: they change from one to the next.
_COLUMNS = {
    "pages": types.int32, "writes": types.uint8, "sizes": types.int32, "references": types.int16, "next_uses": types.int32,
}  # fmt: skip
_KINDS |= _COLUMNS


def table_of(m: Tiers) -> NDArray[np.int64]:
    """Address and length of every array; those with two dimensions are seen as one row. There is no segment yet."""
    return np.array([_entry(name, array) for name, array in m._asdict().items()] + [(0, 0)] * len(_COLUMNS), np.int64)


def point_at(table: NDArray[np.int64], segment: Segment, next_uses: NDArray[np.int32]) -> None:
    """Let the table name the columns of a segment, which must be kept alive like the rest."""
    columns = segment.page, segment.write, segment.bytes, segment.reference, next_uses
    table[-len(_COLUMNS) :] = [_entry(name, column) for name, column in zip(_COLUMNS, columns, strict=True)]


def _entry(name: str, array: Any) -> tuple[int, int]:
    assert array.dtype == np.dtype(str(_KINDS[name])), name
    assert array.flags.c_contiguous, name
    return array.ctypes.data, array.size


class TiersType(types.Type):
    def __init__(self) -> None:
        super().__init__("Tiers")


_TIERS = TiersType()
register_model(TiersType)(models.OpaqueModel)


@intrinsic  # type: ignore[arg-type]
def tiers_at(context: Any, address: Any = None) -> Any:
    """The tiers whose table is at this address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return _TIERS(types.int64), codegen


@infer_getattr
class _Fields(AttributeTemplate):
    key = TiersType

    def generic_resolve(self, tiers: Any, name: str) -> Any:  # type: ignore[override]
        return types.Array(_KINDS[name], 1, "C") if name in _KINDS else None


@lower_getattr_generic(TiersType)  # type: ignore[misc]
def _field(context: Any, builder: Any, tiers: Any, value: Any, name: str) -> Any:
    kind, at = types.Array(_KINDS[name], 1, "C"), 2 * list(_KINDS).index(name)
    table = builder.bitcast(value, ir.IntType(64).as_pointer())
    address, size = (builder.load(builder.gep(table, [cgutils.intp_t(i)])) for i in (at, at + 1))
    array = make_array(kind)(context, builder)
    item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(_KINDS[name])))
    populate_array(
        array, data=builder.inttoptr(address, array.data.type), shape=cgutils.pack_array(builder, [size]),
        strides=cgutils.pack_array(builder, [item]), itemsize=item, meminfo=None,
    )  # fmt: skip
    return impl_ret_untracked(context, builder, kind, array._getvalue())

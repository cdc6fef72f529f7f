"""Counting and finding bits, in 64-bit words and in 64 bytes at a time, which Numba lacks.

A processor has an instruction for each of the first, and vector instructions for the others.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_BYTE, _BYTES = ir.IntType(8), ir.VectorType(ir.IntType(8), 64)


def _popcount(typing: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), code


def _highest(typing: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero_is_undefined = ir.Constant(ir.IntType(1), 1)
        return builder.xor(
            builder.ctlz(args[0], zero_is_undefined), ir.Constant(ir.IntType(64), 63)
        )

    return types.uint64(types.uint64), code


def _lowest(typing: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), code


def _flagged(typing: Any, flags: Any, at: Any, flag: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.and_(
            builder.load(_place(context, builder, signature, args), align=1),
            _splat(builder, args[2]),
        )
        return builder.bitcast(
            builder.icmp_unsigned("!=", found, ir.Constant(_BYTES, None)), ir.IntType(64)
        )

    return types.uint64(flags, types.int64, types.uint8), code


def _unflag(typing: Any, flags: Any, at: Any, count: Any, flag: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature, args)
        numbers = ir.Constant(_BYTES, list(range(64)))
        first = builder.icmp_unsigned("<", numbers, _splat(builder, builder.trunc(args[2], _BYTE)))
        taken = builder.select(first, _splat(builder, args[3]), ir.Constant(_BYTES, None))
        builder.store(
            builder.and_(builder.load(place, align=1), builder.not_(taken)), place, align=1
        )
        return context.get_dummy_value()

    return types.void(flags, types.int64, types.int64, types.uint8), code


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.bitcast(builder.gep(array.data, [args[1]]), _BYTES.as_pointer())


def _splat(builder: Any, byte: Any) -> Any:
    """Return a vector of 64 times the same byte."""
    one = builder.insert_element(
        ir.Constant(_BYTES, ir.Undefined), byte, ir.Constant(ir.IntType(32), 0)
    )
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), 64), None))


popcount: Any = intrinsic(_popcount)  # how many bits of a word are set
highest: Any = intrinsic(_highest)  # the number of the highest set bit of a word that is not 0
lowest: Any = intrinsic(_lowest)  # the number of the lowest set bit of a word, 64 for 0
# (bytes, at, flag): which of the 64 bytes from ``at`` on have this flag, one bit each
flagged: Any = intrinsic(_flagged)  # type: ignore[arg-type]
# (bytes, at, count, flag): take the flag from the first ``count`` of the 64 bytes from ``at`` on,
# all of which must exist
unflag: Any = intrinsic(_unflag)  # type: ignore[arg-type]

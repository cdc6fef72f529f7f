"""Counting and finding bits in 64-bit words: single instructions, which Numba does not offer by itself."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _popcount(typing: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), code


def _highest(typing: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero_is_undefined = ir.Constant(ir.IntType(1), 1)
        return builder.xor(builder.ctlz(args[0], zero_is_undefined), ir.Constant(ir.IntType(64), 63))

    return types.uint64(types.uint64), code


popcount: Any = intrinsic(_popcount)  # how many bits of a word are set
highest: Any = intrinsic(_highest)  # the number of the highest set bit of a word that is not 0

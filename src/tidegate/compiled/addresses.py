"""Memory by its address: single words, and arrays over memory that belongs to others."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from tidegate.compiled.jit import jit_inner

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_F64 = ir.DoubleType()


def _loader(word: Any, numba_type: Any = types.int64, fixed: bool = False) -> Any:
    """Return an intrinsic that loads a word; shorter ones are sign-extended."""

    def load(context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            found = builder.load(builder.inttoptr(args[0], word.as_pointer()), typ=word)
            if fixed:
                found.set_metadata("invariant.load", builder.module.add_metadata([]))
            return found if word in (_I64, _F64) else builder.sext(found, _I64)

        return numba_type(types.int64), codegen

    return intrinsic(load)  # type: ignore[arg-type]


def _storer(word: Any, numba_type: Any = types.int64) -> Any:
    """Return an intrinsic that stores a word; shorter ones are cut."""

    def store(context: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = args[1] if word in (_I64, _F64) else builder.trunc(args[1], word)
            builder.store(value, builder.inttoptr(args[0], word.as_pointer()))
            return context.get_dummy_value()

        return types.void(types.int64, numba_type), codegen

    return intrinsic(store)  # type: ignore[arg-type]


load8, load16, load32, load = (_loader(word) for word in (_I8, _I16, _I32, _I64))
load_fixed = _loader(_I64, fixed=True)  # of a word that never changes while a function runs
load_float = _loader(_F64, types.float64)
store32, store = _storer(_I32), _storer(_I64)
store_float = _storer(_F64, types.float64)


def _outside(context: Any, index: Any, size: Any) -> Any:
    """Return whether ``index`` is negative or ``size`` and more, by one comparison."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.icmp_unsigned(">=", *args)

    return types.boolean(types.int64, types.int64), codegen


outside: Any = intrinsic(_outside)  # type: ignore[arg-type]


@intrinsic  # type: ignore[arg-type]
def _pointer(context: Any, address: Any, kind: Any = None) -> Any:
    """Return an address as a pointer to ``kind``."""
    signature = types.CPointer(kind.dtype)(types.int64, kind)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return signature, codegen


@jit_inner
def words_at(address: int, size: int) -> Any:
    """Return ``size`` int64 words at an address, as an array."""
    return carray(_pointer(address, types.int64), size)


@jit_inner
def grid_at(address: int, rows: int, columns: int) -> Any:
    """Return ``rows`` × ``columns`` int64 words at an address, as an array."""
    return carray(_pointer(address, types.int64), (rows, columns))


@jit_inner
def floats_at(address: int, size: int) -> Any:
    """Return ``size`` float64 words at an address, as an array."""
    return carray(_pointer(address, types.float64), size)

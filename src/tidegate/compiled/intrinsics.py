"""Operations that Numba lacks, calling a C function by its address and prefetching memory, or
compiles slowly: sorting.

Numba's first-class functions could do the first. But each of their calls checks for a Python object
and contains the code that would get its address from the interpreter, compiled at every call.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tidegate.compiled.jit import jit_bare, jit_within

_WORD, _NUMBER = ir.IntType(64), ir.IntType(32)


def _call_at(context: Any, address: Any, own: Any = None, event: Any = None) -> Any:
    """Call the C function ``int64 (own, event)`` at this address."""
    signature = types.int64(types.int64, types.int64, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(_WORD, [_WORD, _WORD]).as_pointer()
        return builder.call(builder.inttoptr(args[0], function), args[1:])

    return signature, codegen


def _fetch_ahead(context: Any, array: Any, at: Any = None) -> Any:
    """Fetch the line of ``array[at]`` into the processor's cache while other work goes on."""
    signature = types.void(array, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lines = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(lines.data, [args[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, _NUMBER, _NUMBER, _NUMBER])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        # to be written, to be kept, data
        builder.call(prefetch, [place, _NUMBER(1), _NUMBER(3), _NUMBER(1)])
        return context.get_dummy_value()

    return signature, codegen


call_at: Any = intrinsic(_call_at)  # type: ignore[arg-type]
fetch_ahead: Any = intrinsic(_fetch_ahead)  # type: ignore[arg-type]


@jit_bare
def sort(values: Any, n: int) -> None:
    """Sort the first ``n`` values: a Shell sort, which compiles a second faster than NumPy's."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


_INT, _VOID = ir.IntType(32), ir.VoidType()


def _interrupted(context: Any) -> Any:
    """Return whether Ctrl-C was pressed; Python hears of it again when compiled code returns.

    Compiled code runs in the thread that holds the interpreter's lock, as both functions need.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        occurred = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_INT, []), "PyOS_InterruptOccurred"
        )
        again = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VOID, []), "PyErr_SetInterrupt"
        )
        pressed = builder.icmp_signed("!=", builder.call(occurred, []), _INT(0))
        with builder.if_then(pressed, likely=False):
            builder.call(again, [])
        return pressed

    return types.boolean(), codegen


interrupted: Any = intrinsic(_interrupted)  # type: ignore[arg-type]


@jit_within
def interrupt_point() -> None:
    """End a loop of a compiled policy if Ctrl-C was pressed."""
    if interrupted():
        raise RuntimeError("interrupted")

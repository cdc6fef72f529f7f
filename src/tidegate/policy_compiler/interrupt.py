"""Ctrl-C in compiled loops."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tidegate.compiled.jit import jit_within

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

"""Code for the advice: what to put into a program, by kind.

torch    a module: saved-tensor hooks, streamed weights     plans by tensor
cuda     a header: prefetches and advice by launch          managed memory
openmp   a header: directives by target region              sources that were compiled
preload  a library and its plan                             CUDA programs as they are
arena    the call that makes a live Arena                   NumPy scripts
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.advice.advice import Advice
from tidegate.advice.emit.headers import emit_cuda, emit_openmp, emit_preload
from tidegate.advice.emit.torch import emit_torch
from tidegate.errors import TidegateError
from tidegate.units import show_size

EMITTERS: dict[str, Callable[[Advice], dict[str, str]]] = {
    "torch": lambda advice: {".py": emit_torch(advice)},
    "cuda": lambda advice: {".cuh": emit_cuda(advice)},
    "openmp": lambda advice: {".h": emit_openmp(advice)},
    "preload": emit_preload,
}


def emit(advice: Advice, kind: str) -> dict[str, str]:
    """Return the files of this kind of code, by the endings of their names."""
    if advice.fit.fits:
        raise TidegateError(
            f"{advice.subject.name} fits in {show_size(advice.near)}, so no code is needed; "
            "leave out --emit"
        )
    return EMITTERS[kind](advice)

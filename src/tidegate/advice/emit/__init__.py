"""Code for the advice: what to put into a program, by kind.

torch    a module: saved-tensor hooks, streamed weights     plans by tensor
cuda     a header: prefetches and advice by launch          managed memory
openmp   a header: directives by target region              sources that were compiled
arena    the call that makes a live Arena                   NumPy scripts
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.advice.advice import Advice
from tidegate.advice.emit.headers import emit_cuda, emit_openmp
from tidegate.advice.emit.torch import emit_torch
from tidegate.errors import TidegateError
from tidegate.units import show_size

EMITTERS: dict[str, tuple[str, Callable[[Advice], str]]] = {
    "torch": (".py", emit_torch),
    "cuda": (".cuh", emit_cuda),
    "openmp": (".h", emit_openmp),
}


def emit(advice: Advice, kind: str) -> tuple[str, str]:
    """Return the ending of a file's name and the code of this kind."""
    if advice.fit.fits:
        raise TidegateError(
            f"{advice.subject.name} fits in {show_size(advice.near)}, so no code is needed; "
            "leave out --emit"
        )
    suffix, write = EMITTERS[kind]
    return suffix, write(advice)

"""Code for OpenMP: a header of directives, one function per target region."""

from __future__ import annotations

from tidegate.advice.advice import Advice
from tidegate.advice.emit.requests import fastest, rehearsed
from tidegate.compiler.plan.emit import emit_openmp as emit_header
from tidegate.errors import TidegateError


def emit_openmp(advice: Advice) -> str:
    """Return a header whose functions are called before the regions they are named after."""
    program = advice.subject.code
    if program is None:
        raise TidegateError(
            f"--emit openmp needs a source, such as nn.c, got {advice.subject.name}"
        )
    if program.model.two_copies:
        raise TidegateError(
            f"'{program.model.source}' needs two copies of an object "
            f"({program.model.two_copies[0]}); unified shared memory would change its results; "
            "give --emit cuda instead"
        )
    return emit_header(rehearsed(advice, fastest(advice, "openmp"), program))

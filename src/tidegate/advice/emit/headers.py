"""Code for CUDA and OpenMP: a header with one function per launch or target region, which is called
before it: prefetches and advice for managed memory, or directives. Or a library that does it in a
CUDA program as it is.
"""

from __future__ import annotations

from tidegate.advice.advice import Advice
from tidegate.advice.emit.requests import fastest, rehearsed, schedule_of
from tidegate.compiler.plan import emit
from tidegate.compiler.plan.preload import MOST_LAUNCHES, preload_files
from tidegate.errors import TidegateError
from tidegate.workloads.modelled import Modelled


def emit_cuda(advice: Advice) -> str:
    """Return a header whose functions are called before the launches they are named after."""
    best, program = fastest(advice, "cuda"), advice.subject.code
    if program is None or best.trial.candidate.is_plan:
        return emit.emit_cuda(schedule_of(advice, best))
    return emit.emit_cuda(rehearsed(advice, best, program))


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
    return emit.emit_openmp(rehearsed(advice, fastest(advice, "openmp"), program))


def emit_preload(advice: Advice) -> dict[str, str]:
    """Return a library that carries out the best placement in a program as it is, and its plan."""
    program = advice.subject.code
    if program is None:
        raise TidegateError(
            f"--emit preload needs a CUDA source, such as program.cu, got {advice.subject.name}"
        )
    longer = Modelled(program.model, program.values, MOST_LAUNCHES)
    schedule = rehearsed(advice, fastest(advice, "preload"), longer)
    return preload_files(schedule, program.model)

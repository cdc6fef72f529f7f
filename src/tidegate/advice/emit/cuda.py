"""Code for CUDA: a header of prefetches and advice for managed memory, one function per launch."""

from __future__ import annotations

from tidegate.advice.advice import Advice
from tidegate.advice.emit.requests import fastest, rehearsed, schedule_of
from tidegate.compiler.plan.emit import emit_cuda as emit_header


def emit_cuda(advice: Advice) -> str:
    """Return a header whose functions are called before the launches they are named after."""
    best, program = fastest(advice, "cuda"), advice.subject.code
    if program is None or best.trial.candidate.is_plan:
        return emit_header(schedule_of(advice, best))
    return emit_header(rehearsed(advice, best, program))

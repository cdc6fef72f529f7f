"""Jobs: work that takes longer than a request, each in a thread, with progress and Cancel."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import TidegateError

MOST_KEPT = 100  # finished jobs


class Cancelled(Exception):
    """The job was cancelled; raised where it reports progress."""


@dataclass
class Job:
    """One job: what it does, how far it is, and what came out."""

    number: int
    kind: str
    state: str = "running"  # then done, failed or cancelled
    done: int = 0
    total: int = 0
    unit: str = ""
    touches: int = 0  # made so far, in all
    error: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)  # results so far
    result: dict[str, Any] = field(default_factory=dict)
    figure: Callable[[], str] | None = None  # SVG, made when it is asked for
    _stop: threading.Event = field(default_factory=threading.Event)

    def advance(self, touches: int = 0) -> None:
        """Count progress. Raise Cancelled if the job shall stop."""
        self.touches += touches
        if self._stop.is_set():
            raise Cancelled

    def cancel(self) -> None:
        self._stop.set()

    def to_json(self) -> dict[str, Any]:
        """Return everything that a page shows of it."""
        names = ("number", "kind", "state", "done", "total", "unit", "touches", "error", "rows")
        has_figure = self.figure is not None and self.state == "done"
        return {
            **{name: getattr(self, name) for name in names},
            "result": self.result,
            "figure": has_figure,
        }


class Jobs:
    """All jobs of this server."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._numbers = itertools.count(1)

    def start(self, kind: str, work: Callable[[Job], None]) -> Job:
        """Start a job in a thread of its own."""
        job = Job(next(self._numbers), kind)
        self._jobs[job.number] = job
        for number in [n for n, j in self._jobs.items() if j.state != "running"][:-MOST_KEPT]:
            del self._jobs[number]
        threading.Thread(target=_run, args=(job, work), daemon=True, name=f"{kind} job").start()
        return job

    def find(self, number: int) -> Job:
        if number not in self._jobs:
            raise TidegateError(f"job must be one of this server, got {number}; start it again")
        return self._jobs[number]


def _run(job: Job, work: Callable[[Job], None]) -> None:
    try:
        work(job)
        job.state = "done"
    except Cancelled:
        job.state = "cancelled"
    except TidegateError as error:
        job.error, job.state = " ".join(str(error).split()), "failed"
    except Exception as error:  # a user's class can raise anything
        job.error, job.state = f"{type(error).__name__}: {error}", "failed"

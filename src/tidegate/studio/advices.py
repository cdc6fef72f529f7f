"""Advice for the page: the same as ``tidegate advise``, as a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate import units
from tidegate.advice import Advice, Simulator, advise_on, find_subject
from tidegate.advice.advice import MACHINE
from tidegate.advice.emit import EMITTERS, emit
from tidegate.advice.page import draw_all
from tidegate.advice.subject import is_model
from tidegate.advice.words import tables, to_data
from tidegate.display.figures import svg_text
from tidegate.display.tables import ShareBar, Table
from tidegate.errors import TidegateError
from tidegate.machine.machine import load_machine
from tidegate.studio.jobs import Job
from tidegate.studio.library import Allowed


def check_advice(asked: Mapping[str, Any], allowed: Allowed) -> None:
    """Refuse files that were not given on the command line."""
    program = str(asked.get("program") or "")
    if not program:
        raise TidegateError("program must be given, such as step.parquet or gpt-124m, got none")
    allowed.check(None if is_model(program) else program, asked.get("machine"))


def advise(job: Job, asked: Mapping[str, Any], workers: int | None = None) -> None:
    """Advise on a program: words, tables, pictures and code."""
    program = str(asked["program"]).strip()
    machine = load_machine(str(asked.get("machine") or MACHINE))
    near = units.size(str(asked["near"])) if asked.get("near") else machine.near.bytes
    job.unit = "launches"
    subject = find_subject(program, near, machine, {}, job.advance)

    def begin(what: str, trials: int) -> None:
        job.unit, job.done, job.total = f"runs ({what})", 0, trials
        job.advance()

    def progress() -> None:
        job.done += 1
        job.advance()

    advice = advise_on(subject, machine, near, Simulator(workers, progress=progress), begin)
    job.advance()
    job.result = {
        **to_data(advice),
        "tables": [_plain(table) for table in tables(advice)],
        "pictures": [svg_text(figure) for figure in draw_all(advice)],
        "code": {} if advice.fit.fits else _code(advice),
    }


def _plain(table: Table) -> dict[str, Any]:
    """Return a table as data; a bar is a number."""
    rows = [
        [cell.share if isinstance(cell, ShareBar) else cell for cell in row] for row in table.rows
    ]
    return {"title": table.title, "columns": list(table.columns), "rows": rows, "left": table.left}


def _code(advice: Advice) -> dict[str, str]:
    """Return the code of each kind that there is for this program."""
    found: dict[str, str] = {}
    for kind in EMITTERS:
        try:
            files = emit(advice, kind)
        except TidegateError:
            continue  # not for such a program
        found |= {kind if len(files) == 1 else kind + end: text for end, text in files.items()}
    return found

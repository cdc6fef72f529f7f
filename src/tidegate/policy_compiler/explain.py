"""Why a class cannot be compiled: one line, with the line of its source and a remedy."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tidegate.policy_compiler.source import CannotCompile

# what Numba says, and what it means here
_MEANINGS = (
    ("NRT required", "it makes a list, set or text; a loop or a generator expression will do"),
    ("exception_match", "compiled code knows 'except Exception' alone; test before you act"),
    ("make_function", "functions within methods cannot be compiled; use a method"),
    ("re-entrant", "it calls itself; use a loop"),
    ("getiter with parameters (ResidentType", "iterate over sorted(self.resident)"),
    ("getiter with parameters (MarksType", "Marks have no order to iterate in; keep an Order too"),
    ("Cannot unify", "a variable has values of two kinds here; give it one kind"),
    ("Untyped global name", "compiled code cannot use {name}; make structures in start()"),
)
_NOISE = re.compile(
    r"$|Failed in|During:|File |Resolution failure|There are|raised from|>>>|def |Of which|With "
    r"argument|Rejected as|No match|None$|\^|Intrinsic in|Overload|<source|- |Known signatures|\["
)
_FRAMEWORK = ("numba/", "policy_compiler/", "<string>", "<intrinsic>")


def explain(error: BaseException, cls: type) -> str:
    """Return what Numba says first, with the line at which it gave up; other files are named."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    reason = text if isinstance(error, CannotCompile) else _place(text) + _reason(text, error)
    try:
        own = Path(inspect.getfile(cls)).name
    except (TypeError, OSError):
        own = ""
    return reason.removeprefix(f"{own}, ")


def _place(text: str) -> str:
    for file, line in re.findall(r'File "([^"]+)", line (\d+)', text):
        if line != "0" and not any(part in file for part in _FRAMEWORK):
            return f"{Path(file).name}, line {line}: "
    return ""


def _reason(text: str, error: BaseException) -> str:
    said = [line.strip() for line in text.splitlines()]
    useful = [re.sub(r"^\w*Error: ", "", line) for line in said if not _NOISE.match(line)]
    specific = [line for line in useful if not line.startswith("No implementation")]
    reason = [*specific, *useful, type(error).__name__][0]
    name = re.search(r"Untyped global name '(\w+)'", text)
    meaning = next((meant for known, meant in _MEANINGS if known in text), reason)
    return meaning.replace("{name}", name[1]) if name else meaning

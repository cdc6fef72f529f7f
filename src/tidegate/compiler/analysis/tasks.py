"""Regions launched with `nowait`: clang puts each into a task, which the runtime calls later."""

from __future__ import annotations

import re

from tidegate.compiler.analysis.launches import region_name
from tidegate.compiler.ir.entry_points import ALLOCATES_TASK
from tidegate.compiler.ir.module import Module, parse
from tidegate.compiler.model import Note

_FUNCTION = re.compile(r"^define .*?^}", re.M | re.S)
_MADE = re.compile(
    r"%([\w.$-]+) = [^\n]*@__kmpc_omp_(?:target_)?task_alloc\([^\n]*ptr[^,\n]* @([\w.$]+)[,)]"
)
_GIVEN = re.compile(
    r"call i32 @__kmpc_omp_task(?:_with_deps)?"
    r"\(ptr [^,]+, i32 ([^,]+), ptr (?:[a-z]+ )*%([\w.$-]+)[^\n]*?\)"
)
_REGION = re.compile(r"@\.?(__omp_offloading_\w+?)\.region_id")


def run_tasks_at_once(module: Module, name: str) -> tuple[Module, list[Note]]:
    """Return the module with every task's body called where the task is passed to the runtime, and
    a note for each.
    """
    text = str(module)
    if not any(alloc in text for alloc in ALLOCATES_TASK):
        return module, []
    notes: list[Note] = []

    def rewritten(function: re.Match[str]) -> str:
        bodies = dict(_MADE.findall(function[0]))

        def call(given: re.Match[str]) -> str:
            if given[2] not in bodies:
                return given[0]
            body = bodies[given[2]]
            why = "is launched in a task (nowait); it is taken to run where the task is made"
            notes.append(Note(_region(body, text), why))
            return f"call i32 @{body}(i32 {given[1]}, ptr %{given[2]})"

        return _GIVEN.sub(call, function[0])

    return parse(_FUNCTION.sub(rewritten, text), name), notes


def _region(function: str, text: str) -> str:
    """Return the region that a task's body launches, or the body's own name if it shows none."""
    bodies = (found[0] for found in _FUNCTION.finditer(text))
    body = next((b for b in bodies if f"@{function}(" in b.split("\n", 1)[0]), "")
    region = _REGION.search(body)
    return region_name(region[1]) if region else function

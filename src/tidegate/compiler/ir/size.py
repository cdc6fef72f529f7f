"""A bound on the length of `main` with everything inlined.

A few functions of a large program may make it a thousand times longer, such as constructors of
tables. Those that launch nothing are left out: they become declarations.
"""

from __future__ import annotations

import re

from tidegate.compiler.ir.entry_points import ENTRY_POINTS
from tidegate.compiler.ir.inline import CALL, call_graph, callers, relevant_functions
from tidegate.compiler.ir.loops import in_cycles
from tidegate.compiler.ir.module import Module, Printed, parse
from tidegate.compiler.model import Note

_MOST_LINES = 100_000  # of main with all inlined: beyond, its analysis would take minutes
_FASTER = 1.5  # times as many are left out in each round: thousands of short ones may add up
_LINKAGE = (
    r"(?:(?:internal|private|linkonce|linkonce_odr|weak|weak_odr|available_externally|dso_local"
    r"|hidden|protected|default) )*"
)


def leave_out_large(module: Module, name: str) -> tuple[Module, list[Note]]:
    """Return the module with a `main` of bearable length, and what was left out."""
    printed = Printed(module)
    calls = call_graph(printed)
    relevant = relevant_functions(printed, calls) - {"main"} - in_cycles(calls)
    large = _too_large(printed, relevant)
    if not large:
        return module, []
    text = printed.rewritten(lambda name, text: _declared(text) if name in large else text)
    what = "is too large to be followed; what it allocates is left out"
    return parse(text, name), [Note(function, what) for function in sorted(large)]


def _declared(definition: str) -> str:
    """Return the declaration of a function.

    >>> _declared("define linkonce_odr dso_local noundef ptr @f(ptr %x) #1 comdat {")
    'declare noundef ptr @f(ptr %x)'
    """
    head = definition.split("\n", 1)[0]
    opened = head.index("(", head.index("@"))
    depth, end = 0, opened
    for end in range(opened, len(head)):
        depth += (head[end] == "(") - (head[end] == ")")
        if depth == 0:
            break
    return re.sub(rf"^define {_LINKAGE}", "declare ", head[: end + 1])


def _too_large(printed: Printed, relevant: set[str]) -> set[str]:
    """Return functions that launch nothing and would make main too long: the longest first, until
    the others fit.
    """
    calls = {n: [a or b for a, b in CALL.findall(text)] for n, text in printed.functions.items()}
    own = {name: text.count("\n") for name, text in printed.functions.items()}
    launch = {name for name, called in calls.items() if ENTRY_POINTS.keys() & set(called)}
    launching = callers(launch, calls)
    left: set[str] = set()
    at_once = 1.0
    while True:
        lines = _lines_inlined(own, calls, relevant - left)
        long = [n for n in relevant - left - launching if n in lines]
        if lines.get("main", 0) <= _MOST_LINES or not long:
            return left
        longest = sorted(long, key=lambda name: (-lines[name], name))
        left.update(longest[: int(at_once)])
        at_once *= _FASTER


def _lines_inlined(
    own: dict[str, int], calls: dict[str, list[str]], relevant: set[str]
) -> dict[str, int]:
    """Return how many lines each function that main reaches has with those it calls inlined."""
    lines: dict[str, int] = {}
    stack = [("main", iter(calls.get("main", ())))]
    while stack:
        name, rest = stack[-1]
        after = next((c for c in rest if c in relevant and c not in lines), None)
        if after is not None:
            stack.append((after, iter(calls[after])))
            continue
        stack.pop()
        inner = sum(lines.get(c, 0) for c in calls.get(name, ()) if c in relevant)
        lines[name] = own.get(name, 0) + inner
    return lines

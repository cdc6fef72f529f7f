"""Inlining into `main`, so that each allocation and launch has its whole calling context.

A few functions of a large program may make `main` a thousand times longer, such as constructors of
tables. So its length has a bound: functions that launch nothing are left out as declarations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tidegate.compiler.ir.calls import ALLOCATORS, LAUNCHING
from tidegate.compiler.ir.loops import in_cycles
from tidegate.compiler.ir.module import Module, Printed, parse, run_passes
from tidegate.compiler.model import Note

KERNEL = "__omp_offloading_"
"""Prefix of the names of kernels. The host's IR has them as the fallback if there is no device."""

# the first name that is followed by arguments is the function that is called
CALL = re.compile(r'\b(?:call|invoke) [^\n]*?@(?:"([^"\n]+)"|([\w.$-]+))\(')
# pointers that are loaded, stored or returned
_PASSES = re.compile(r"= load (?:volatile )?ptr,|^  store (?:volatile )?ptr|^  ret ptr", re.M)


def inline_into_main(module: Module) -> list[Note]:
    """Inline, in place, every function that allocates, launches or passes pointers on; then
    simplify.

    LLVM does both. Functions that call themselves are not inlined, and the notes name them.
    """
    printed = Printed(module)
    calls = call_graph(printed)
    relevant = relevant_functions(printed, calls) - {"main"}
    recursive = in_cycles(calls)
    _forget_unused(module, {name for name in calls if LAUNCHING & calls[name]})
    notes = []
    for function in module.functions:
        name = function.name
        if name not in relevant or name.startswith(KERNEL):
            continue
        if name in recursive:
            notes.append(Note(name, "calls itself; what it allocates or launches is left out"))
        else:
            function.add_function_attribute("alwaysinline")
    simplify(module)
    return notes


def _forget_unused(module: Module, launching: set[str]) -> None:
    """Let functions go once they are inlined everywhere, except those that launch: of those it is
    to be said if nothing calls them. Large C++ programs have thousands of the others.
    """
    for function in module.functions:
        if not function.is_declaration and function.name not in {"main", *launching}:
            function.linkage = "internal"


def call_graph(printed: Printed) -> dict[str, set[str]]:
    """Return the functions that each function with a body calls by name."""
    return {
        name: {a or b for a, b in CALL.findall(text)} for name, text in printed.functions.items()
    }


def relevant_functions(printed: Printed, calls: dict[str, set[str]]) -> set[str]:
    """Return the functions that reach an allocation or a launch, or that pass pointers on."""
    known = ALLOCATORS.keys() | LAUNCHING
    found = {n for n, text in printed.functions.items() if known & calls[n] or _PASSES.search(text)}
    return callers(found, calls) & printed.functions.keys()


def callers(found: set[str], calls: Mapping[str, Iterable[str]]) -> set[str]:
    """Return functions and all that call them, directly or not."""
    by: dict[str, set[str]] = {}
    for name, called in calls.items():
        for other in called:
            by.setdefault(other, set()).add(name)
    pending, reached = list(found), set(found)
    while pending:
        new = by.get(pending.pop(), set()) - reached
        reached |= new
        pending.extend(new)
    return reached


def simplify(module: Module) -> None:
    """Inline what is marked, put variables into registers, and test loops at their end.

    Instruction combining would help, too. But it moves arithmetic into the branches that choose an
    operand and keeps the operand's name for the result, so that sizes would be wrong.
    """
    unused = "global_dead_code_eliminate"
    first = (unused, "always_inliner", unused, "sroa")
    run_passes(module, *first, "loop_rotate", "instruction_namer")


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
    launch = {name for name, called in calls.items() if LAUNCHING & set(called)}
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

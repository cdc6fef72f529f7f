"""Inlining into `main`, so that each allocation and launch has its whole calling context."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.compiler.ir.allocators import ALLOCATORS
from tidegate.compiler.ir.entry_points import ENTRY_POINTS
from tidegate.compiler.ir.loops import reachable
from tidegate.compiler.ir.module import Body, Module, run_passes
from tidegate.compiler.model import Note

KERNEL = "__omp_offloading_"
"""Prefix of the names of kernels. The host's IR has them as the fallback if there is no device."""


def inline_into_main(module: Module) -> list[Note]:
    """Inline, in place, every function that allocates, launches or passes pointers on; then
    simplify.

    LLVM does both. Functions that call themselves are not inlined, and the notes name them.
    """
    bodies = {f.name: Body(f) for f in module.functions if not f.is_declaration}
    calls = {name: set(_callees(body)) & bodies.keys() for name, body in bodies.items()}
    relevant = _relevant(bodies, calls) - {"main"}
    notes = []
    for function in module.functions:
        name = function.name
        if name not in relevant or name.startswith(KERNEL):
            continue
        if name in reachable(name, calls):
            notes.append(Note(name, "calls itself; what it allocates or launches is left out"))
        else:
            function.add_function_attribute("alwaysinline")
    simplify(module)
    return notes


def _callees(body: Body) -> Iterator[str]:
    return (i.callee for i in body if i.callee)


def _relevant(bodies: dict[str, Body], calls: dict[str, set[str]]) -> set[str]:
    """Return the functions that reach an allocation or a launch, or that pass pointers on."""
    known = ALLOCATORS.keys() | ENTRY_POINTS.keys()
    direct = {n for n, body in bodies.items() if known & set(_callees(body)) or _passes(body)}
    return direct | {n for n in bodies if direct & reachable(n, calls)}


def _passes(body: Body) -> bool:
    """Return whether a function loads, stores or returns pointers."""
    loaded = [i.ref for i in body if i.opcode == "load"]
    given = [i.operands[0] for i in body if i.opcode in ("store", "ret") and i.operands]
    return any(value.type.is_pointer for value in loaded + given)


def simplify(module: Module) -> None:
    """Inline what is marked, put variables into registers, and test loops at their end.

    Instruction combining would help, too. But it moves arithmetic into the branches that choose an
    operand and keeps the operand's name for the result, so that sizes would be wrong.
    """
    run_passes(module, "always_inliner", "sroa", "loop_rotate", "instruction_namer")

"""Everything that matters brought into `main`, so that an allocation or a launch is known by its
whole context.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.compiler.ir.allocators import ALLOCATORS
from tidegate.compiler.ir.entry_points import ENTRY_POINTS
from tidegate.compiler.ir.module import Body, Module, run_passes
from tidegate.compiler.model import Note

KERNEL = "__omp_offloading_"
"""How the names of regions' bodies begin; in the host's IR they are the fallback for when there is
no device.
"""


def inline_into_main(module: Module) -> list[Note]:
    """Inline, in place, every function that allocates, launches or hands pointers on, and simplify
    what comes of it.

    LLVM does both. Functions that call themselves stay calls, and are named in the notes.
    """
    bodies = {f.name: Body(f) for f in module.functions if not f.is_declaration}
    calls = {name: set(_callees(body)) & bodies.keys() for name, body in bodies.items()}
    matters = _matters(bodies, calls)
    notes = []
    for function in module.functions:
        if (
            function.name not in matters
            or function.name == "main"
            or function.name.startswith(KERNEL)
        ):
            continue
        if function.name in _reach(function.name, calls):
            notes.append(
                Note(function.name, "calls itself; what it allocates or launches is left out")
            )
        else:
            function.add_function_attribute("alwaysinline")
    simplify(module)
    return notes


def _callees(body: Body) -> Iterator[str]:
    return (i.callee for i in body if i.callee)


def _matters(bodies: dict[str, Body], calls: dict[str, set[str]]) -> set[str]:
    """Functions that reach an allocation or a launch, or through which pointers pass."""
    known = ALLOCATORS.keys() | ENTRY_POINTS.keys()
    direct = {
        n for n, body in bodies.items() if known & set(_callees(body)) or _moves_pointers(body)
    }
    return direct | {n for n in bodies if direct & _reach(n, calls)}


def _moves_pointers(body: Body) -> bool:
    for i in body:
        moved = (
            i.operands[0]
            if i.opcode in ("store", "ret") and i.operands
            else i.ref
            if i.opcode == "load"
            else None
        )
        if moved is not None and moved.type.is_pointer:
            return True
    return False


def _reach(name: str, calls: dict[str, set[str]]) -> set[str]:
    """Functions called by `name`, at any depth; `name` itself only if it is called again."""
    seen: set[str] = set()
    ahead = [name]
    while ahead:
        for callee in calls.get(ahead.pop(), ()):
            if callee not in seen:
                seen.add(callee)
                ahead.append(callee)
    return seen


def simplify(module: Module) -> None:
    """Inline what is marked; then one shape for all: variables in registers, loops tested at their
    end.

    Instruction combining would help too, but it moves arithmetic into the branches that choose an
    operand and goes on calling the result by the operand's name, so that sizes would come out
    wrong.
    """
    run_passes(module, "always_inliner", "sroa", "loop_rotate", "instruction_namer")

"""What every pointer in a function may point to: field-sensitive, flow-insensitive, from the
allocation sites on.

A place is a thing that was allocated (`Origin`) and an offset in it, or None for anywhere in it.
Values hold sets of places; places hold sets of places. Both only grow, so the rules are applied
until nothing changes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import llvmlite.binding as llvm

from tidegate.compiler.ir.allocators import ALLOCATORS
from tidegate.compiler.ir.entry_points import ALLOCATES_TASK
from tidegate.compiler.ir.layout import Structs, gep_offset
from tidegate.compiler.ir.module import Body, Instruction, Value, key


@dataclass(frozen=True)
class Origin:
    """Where memory comes from."""

    kind: str  # heap, stack, global, task (what a task holds), parameter, or unknown
    name: str  # the value that allocates it, the global's name, or why it is unknown
    function: str = ""  # whose value that is


Place = tuple[Origin, int | None]

_HANDS_ON = {"phi", "select", "freeze", "bitcast", "addrspacecast", "ptrtoint", "inttoptr"}
_CONSTANT = re.compile(r"getelementptr [a-z ]*\((.*)\)$")
_MOST_OFFSETS = 64  # of one value; more fields than that are not told apart
_DEEPEST = 3  # structures in structures that a kernel's pointers are followed through
_SYMBOL = re.compile(r'@"?([\w.$-]+)"?')


class PointsTo:
    """The solution for one function; ask it with `of` and `at`.

    `parameters` says where the function's own parameters point; without it, to something unknown.
    `caller` is the solution for the function that calls it, in whose variables it may be handed
    pointers.
    """

    def __init__(
        self,
        body: Body,
        parameters: Mapping[str, set[Place]] | None = None,
        caller: PointsTo | None = None,
    ):
        self._function = body.name
        self._structs = body.structs
        self._values: dict[int, set[Place]] = defaultdict(set)
        self._memory: dict[Origin, dict[int | None, set[Place]]] = defaultdict(
            lambda: defaultdict(set)
        )
        for origin, kept in caller._memory.items() if caller is not None else ():
            self._memory[origin].update({offset: set(places) for offset, places in kept.items()})
        self._written: dict[Place, list[Value]] = defaultdict(list)
        self._changed = True
        for parameter in body.parameters:
            unknown: set[Place] = {(Origin("unknown", f"parameter {parameter.name}"), None)}
            self._values[key(parameter)] = (
                unknown if parameters is None else set(parameters.get(parameter.name, ()))
            )
        relevant = [i for i in body if i.opcode in _RULES or i.opcode in _HANDS_ON]
        while self._changed:
            self._changed = False
            for instruction in relevant:
                _RULES.get(instruction.opcode, PointsTo._hand_on)(self, instruction)
        self._note_writes(relevant)

    def of(self, value: Value) -> set[Place]:
        """Where a value may point."""
        kind = value.value_kind
        if kind == llvm.ValueKind.global_variable:
            return {(Origin("global", value.name), 0)}
        if kind == llvm.ValueKind.constant_expr:
            return _of_constant(str(value), self._structs)
        return self._values.get(key(value), set())

    def at(self, place: Place) -> set[Place]:
        """Where the pointers kept at a place may point."""
        origin, offset = place
        kept = self._memory.get(origin, {})
        offsets = kept.keys() if offset is None else kept.keys() & {offset, None}
        return {p for o in offsets for p in kept[o]}

    def written(self, place: Place) -> list[Value]:
        """Every value stored at exactly this place."""
        return self._written.get(place, [])

    def _grow(self, known: set[Place], more: set[Place]) -> None:
        if not more <= known:
            known |= more
            self._changed = True

    def _hand_on(self, i: Instruction) -> None:
        operands = i.operands[1:] if i.opcode == "select" else i.operands
        for operand in operands:
            self._grow(self._values[i.key], self.of(operand))

    def _alloca(self, i: Instruction) -> None:
        self._grow(self._values[i.key], {(Origin("stack", i.ref.name, self._function), 0)})

    def _offset(self, i: Instruction) -> None:
        # a pointer stepped in a loop would have ever more offsets
        by = gep_offset(i.text, self._structs) if len(self._values[i.key]) < _MOST_OFFSETS else None
        moved = {
            (o, None if by is None or at is None else at + by) for o, at in self.of(i.operands[0])
        }
        self._grow(self._values[i.key], moved)

    def _load(self, i: Instruction) -> None:
        for place in tuple(self.of(i.operands[0])):
            if place[0].kind == "parameter" and i.ref.type.is_pointer:
                self._grow(self._values[i.key], {_read_from(place)})
            elif place[0].kind != "unknown":
                self._grow(self._values[i.key], self.at(place))
            elif i.ref.type.is_pointer:
                self._grow(self._values[i.key], {place})  # as unknown as what it was read through

    def _store(self, i: Instruction) -> None:
        held = self.of(i.operands[0])
        for origin, offset in self.of(i.operands[1]):
            self._grow(self._memory[origin][offset], held)

    def _call(self, i: Instruction) -> None:
        allocator = ALLOCATORS.get(i.callee)
        if allocator is not None:
            made: Place = (Origin("heap", i.ref.name, self._function), 0)
            if allocator.result is None:
                self._grow(self._values[i.key], {made})
            else:
                for origin, offset in self.of(i.arguments[allocator.result]):
                    self._grow(self._memory[origin][offset], {made})
        elif i.callee in ALLOCATES_TASK:
            shared: Place = (Origin("task", f"{i.ref.name} shared", self._function), 0)
            task = Origin("task", i.ref.name, self._function)
            self._grow(self._values[i.key], {(task, 0)})
            # the runtime makes room for what the task shares, and says where
            self._grow(self._memory[task][0], {shared})
        elif i.callee.startswith(("llvm.memcpy", "llvm.memmove")):
            self._copy(i.arguments[0], i.arguments[1])
        elif i.ref.type.is_pointer and not i.callee.startswith("llvm."):
            what = f"what {i.callee or 'a function called through a pointer'} returns"
            self._grow(self._values[i.key], {(Origin("unknown", what), None)})

    def _copy(self, to: Value, source: Value) -> None:
        for origin, at in self.of(source):
            for offset, held in tuple(self._memory.get(origin, {}).items()):
                for into, base in self.of(to):
                    known = None not in (at, offset, base)
                    self._grow(self._memory[into][offset - at + base if known else None], set(held))  # type: ignore[operator]

    def _note_writes(self, instructions: list[Instruction]) -> None:
        for i in instructions:
            if i.opcode == "store":
                for place in self.of(i.operands[1]):
                    self._written[place].append(i.operands[0])


_RULES = {
    "alloca": PointsTo._alloca,
    "getelementptr": PointsTo._offset,
    "load": PointsTo._load,
    "store": PointsTo._store,
    "call": PointsTo._call,
    "invoke": PointsTo._call,
}


def _read_from(place: Place) -> Place:
    """A pointer that a kernel reads from a structure it is passed: known by its place there; a long
    chain ends in itself.
    """
    origin, offset = place
    if origin.name.count("+") == _DEEPEST:
        return place
    return Origin("parameter", f"{origin.name}+{offset}"), 0


def _of_constant(text: str, structs: Structs) -> set[Place]:
    """A constant expression: a place in the global it names; anywhere in them, if it names several
    or is no GEP.
    """
    names = _SYMBOL.findall(text)
    stepped = _CONSTANT.search(text.strip())
    offset = (
        gep_offset(f"getelementptr {stepped[1]}", structs) if stepped and len(names) == 1 else None
    )
    return {(Origin("global", name), offset) for name in names}

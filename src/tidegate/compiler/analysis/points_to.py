"""Points-to analysis of one function: field-sensitive, flow-insensitive, from the allocation sites
on.

A location is allocated memory (`Origin`) and an offset in it, or None for anywhere in it. Values
hold sets of locations, and so do locations. Both only grow: the rules are applied until nothing
changes.
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

    kind: str  # heap, stack, global, task (memory of a task), parameter, or unknown
    name: str  # the value that allocates it, the global's name, or why it is unknown
    function: str = ""  # that has the value


Location = tuple[Origin, int | None]
_Fields = dict[int | None, set[Location]]  # by offset

_HANDS_ON = {"phi", "select", "freeze", "bitcast", "addrspacecast", "ptrtoint", "inttoptr"}
_CONSTANT = re.compile(r"getelementptr [a-z ]*\((.*)\)$")
_MOST_OFFSETS = 64  # of one value; further fields are not distinguished
_DEEPEST = 3  # nested structures that a kernel's pointers are followed through
_SYMBOL = re.compile(r'@"?([\w.$-]+)"?')


class PointsTo:
    """The solution for one function, given by `of` and `at`.

    `parameters`: where the function's own parameters point; unknown by default. `caller`: the
    solution for the calling function, in whose variables it may be passed pointers.
    """

    def __init__(
        self,
        body: Body,
        parameters: Mapping[str, set[Location]] | None = None,
        caller: PointsTo | None = None,
    ):
        self._function = body.name
        self._structs = body.structs
        self._values: dict[int, set[Location]] = defaultdict(set)
        self._memory: dict[Origin, _Fields] = defaultdict(lambda: defaultdict(set))
        for origin, fields in caller._memory.items() if caller is not None else ():
            self._memory[origin].update({offset: set(held) for offset, held in fields.items()})
        self._written: dict[Location, list[Value]] = defaultdict(list)
        self._changed = True
        for parameter in body.parameters:
            name = parameter.name
            unknown: set[Location] = {(Origin("unknown", f"parameter {name}"), None)}
            given = unknown if parameters is None else set(parameters.get(name, ()))
            self._values[key(parameter)] = given
        relevant = [i for i in body if i.opcode in _RULES or i.opcode in _HANDS_ON]
        while self._changed:
            self._changed = False
            for instruction in relevant:
                _RULES.get(instruction.opcode, PointsTo._hand_on)(self, instruction)
        self._note_writes(relevant)

    def of(self, value: Value) -> set[Location]:
        """Return where a value may point."""
        kind = value.value_kind
        if kind == llvm.ValueKind.global_variable:
            return {(Origin("global", value.name), 0)}
        if kind == llvm.ValueKind.constant_expr:
            return _of_constant(str(value), self._structs)
        return self._values.get(key(value), set())

    def at(self, location: Location) -> set[Location]:
        """Return where the pointers at a location may point."""
        origin, offset = location
        fields = self._memory.get(origin, {})
        offsets = fields.keys() if offset is None else fields.keys() & {offset, None}
        return {p for o in offsets for p in fields[o]}

    def written(self, location: Location) -> list[Value]:
        """Return every value stored at exactly this location."""
        return self._written.get(location, [])

    def _grow(self, known: set[Location], more: set[Location]) -> None:
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
        # a pointer stepped in a loop would get more and more offsets
        by = gep_offset(i.text, self._structs) if len(self._values[i.key]) < _MOST_OFFSETS else None
        for origin, at in tuple(self.of(i.operands[0])):
            moved = None if by is None or at is None else at + by
            self._grow(self._values[i.key], {(origin, moved)})

    def _load(self, i: Instruction) -> None:
        held = self._values[i.key]
        for location in tuple(self.of(i.operands[0])):
            if location[0].kind == "parameter" and i.ref.type.is_pointer:
                self._grow(held, {_read_from(location)})
            elif location[0].kind != "unknown":
                self._grow(held, self.at(location))
            elif i.ref.type.is_pointer:
                self._grow(held, {location})  # as unknown as the pointer it was read through

    def _store(self, i: Instruction) -> None:
        held = self.of(i.operands[0])
        for origin, offset in self.of(i.operands[1]):
            self._grow(self._memory[origin][offset], held)

    def _call(self, i: Instruction) -> None:
        allocator = ALLOCATORS.get(i.callee)
        if allocator is not None:
            made: Location = (Origin("heap", i.ref.name, self._function), 0)
            if allocator.result is None:
                self._grow(self._values[i.key], {made})
            else:
                for origin, offset in self.of(i.arguments[allocator.result]):
                    self._grow(self._memory[origin][offset], {made})
        elif i.callee in ALLOCATES_TASK:
            shared: Location = (Origin("task", f"{i.ref.name} shared", self._function), 0)
            task = Origin("task", i.ref.name, self._function)
            self._grow(self._values[i.key], {(task, 0)})
            # the runtime allocates the task's shared memory and stores its address here
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
                    known = at is not None and offset is not None and base is not None
                    moved = offset - at + base if known else None  # type: ignore[operator]
                    self._grow(self._memory[into][moved], set(held))

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


def _read_from(location: Location) -> Location:
    """Return where a pointer points that a kernel reads from a structure it is passed: an origin
    named by its offset there. A long chain ends in itself.
    """
    origin, offset = location
    if origin.name.count("+") == _DEEPEST:
        return location
    return Origin("parameter", f"{origin.name}+{offset}"), 0


def _of_constant(text: str, structs: Structs) -> set[Location]:
    """Return where a constant expression points: into the global it names; anywhere in them, if it
    names several or is no GEP.
    """
    names = _SYMBOL.findall(text)
    stepped = _CONSTANT.search(text.strip()) if len(names) == 1 else None
    offset = gep_offset(f"getelementptr {stepped[1]}", structs) if stepped else None
    return {(Origin("global", name), offset) for name in names}

"""Points-to analysis of one function: field-sensitive, flow-insensitive, from the allocation sites
on (Andersen's inclusion constraints).

A location is allocated memory (`Origin`) and an offset in it, or None for anywhere in it. Nodes
hold sets of locations: a value has a node, and so has each cell of memory at which a pointer is
stored. A set is a bit mask. What a node newly holds is passed on along its edges, and each of its
rules (an instruction that dereferences or moves the pointer) is applied to it.

Offsets are told apart up to a bound: pointers stepped in a loop, and pointers moved within one
object, would otherwise get more and more of them. Memory beyond the bound is collapsed: its cells
become one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

import llvmlite.binding as llvm

from tidegate.compiler.analysis.inclusion import Copying, InclusionGraph, Location, Origin
from tidegate.compiler.ir.calls import ALLOCATES_TASK, ALLOCATORS, POINTER_CALLS, PointerCall
from tidegate.compiler.ir.layout import Structs, gep_offset
from tidegate.compiler.ir.module import Body, Instruction, Value, constant_int, key

_HANDS_ON = {"phi", "select", "freeze", "bitcast", "addrspacecast", "ptrtoint", "inttoptr"}
_HANDS_ON |= {"insertvalue", "extractvalue"}  # functions return two pointers as one value
_COMPUTES = {"add", "sub", "and", "or"}
_ADDRESS = "i64"
_CONSTANT = re.compile(r"getelementptr [a-z ]*\((.*)\)$")
_MOST_OFFSETS = 64  # of one value; further fields are not distinguished
_DEEPEST = 3  # nested structures that a kernel's pointers are followed through
# a global pointer, or an array of pointers, all of them to something
_TABLE = re.compile(
    r'^@(?:([\w.$-]+)|"([^"\n]+)") = [^\n]*?(?:global|constant) (?:\[\d+ x ptr\] \[)?'
    r"((?:ptr @[^\s,\]]+(?:, )?)+)",
    re.M,
)
_ENTRY = re.compile(r'ptr @(?:([\w.$-]+)|"([^"\n]+)")')
_SYMBOL = re.compile(r'@"?([\w.$-]+)"?')
_COPIES = ("llvm.memcpy", "llvm.memmove")
_COPY_CALLS = {"memcpy", "memmove", "omp_target_memcpy", "cudaMemcpy", "cudaMemcpyAsync"}
_COPY_CALLS |= {"hipMemcpy", "hipMemcpyAsync"}
_COPY_CALLS |= {"cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync", "hipMemcpyToSymbol"}


class PointsTo:
    """The solution for one function, given by `targets` and `at`.

    `parameters`: where the function's own parameters point; unknown by default. `caller`: the
    solution for the calling function, in whose variables it may be passed pointers.
    """

    def __init__(
        self,
        body: Body,
        parameters: Mapping[str, set[Location]] | None = None,
        caller: PointsTo | None = None,
    ):
        self._function, self._of_kernel = body.name, parameters is not None
        self._structs = body.structs
        self._graph = InclusionGraph()
        self._nodes: dict[int, int] = {}  # key of a value → its node
        self._moves: list[tuple[int, int, int | None]] = []  # nodes before, after; bytes
        self._written: dict[Location, list[Value]] = defaultdict(list)
        if caller is not None:
            self._graph.take_memory(caller._graph)
        for place, symbol in _first_pointers(body) if parameters is None else ():
            self._graph.add(self._graph.cell(place), symbol)
        for parameter in body.parameters:
            name = parameter.name
            unknown: set[Location] = {(Origin("unknown", f"parameter {name}"), None)}
            self._hold(parameter, unknown if parameters is None else parameters.get(name, set()))
        for instruction in body:
            if rule := _RULES.get(instruction.opcode):
                rule(self, instruction)
            elif instruction.opcode in _HANDS_ON:
                self._hand_on(instruction)
            elif instruction.opcode in _COMPUTES:
                self._compute(instruction)
        self._apply_moves()
        self._graph.solve()
        self._note_writes(body)

    def targets(self, value: Value) -> set[Location]:
        """Return where a value may point."""
        constant = self._of_constant(value)
        if constant is not None:
            return constant
        node = self._nodes.get(key(value))
        return set() if node is None else set(self._graph.held(node))

    def at(self, location: Location) -> set[Location]:
        """Return where the pointers at a location may point."""
        return self._graph.at(location)

    def written(self, location: Location) -> list[Value]:
        """Return every value stored at exactly this location."""
        return self._written.get(location, [])

    def offsets_held(self, origin: Origin) -> list[int]:
        """Return the offsets in an object at which something was stored."""
        places = {at for held, at in self._written if held == origin and at is not None}
        return sorted(places | self._graph.offsets(origin))

    @property
    def collapsed(self) -> set[Origin]:
        """The objects whose pointers are not told apart by their offsets."""
        return self._graph.collapsed

    def _of_constant(self, value: Value) -> set[Location] | None:
        """Return where a constant points; None for anything else."""
        kind = value.value_kind
        if kind == llvm.ValueKind.global_variable:
            return {(Origin("global", value.name), 0)}
        if kind == llvm.ValueKind.function:
            return {(Origin("function", value.name), 0)}
        if kind == llvm.ValueKind.constant_expr:
            return _of_expression(str(value), self._structs)
        return None

    def _node(self, value: Value) -> int:
        found = self._nodes.get(key(value))
        if found is None:
            found = self._nodes[key(value)] = self._graph.new_node()
            for location in self._of_constant(value) or ():
                self._graph.add(found, location)
        return found

    def _hold(self, value: Value, locations: set[Location]) -> None:
        for location in locations:
            self._graph.add(self._node(value), location)

    def _hand_on(self, i: Instruction) -> None:
        for operand in i.operands[1:] if i.opcode == "select" else i.operands:
            self._graph.link(self._node(operand), self._node(i.ref))

    def _compute(self, i: Instruction) -> None:
        """Follow a pointer that is aligned or stepped as a number. A difference of two is none."""
        if str(i.ref.type).strip() != _ADDRESS:
            return
        if i.opcode == "sub" and constant_int(i.operands[1]) is None:
            return
        graph, held = self._graph, self._node(i.ref)
        for operand in i.operands:
            if constant_int(operand) is None:
                graph.on_new(self._node(operand), lambda place: graph.add(held, (place[0], None)))

    def _alloca(self, i: Instruction) -> None:
        self._hold(i.ref, {(Origin("stack", i.ref.name, self._function), 0)})

    def _offset(self, i: Instruction) -> None:
        by = gep_offset(i.text, self._structs)
        self._moves.append((self._node(i.operands[0]), self._node(i.ref), by))

    def _apply_moves(self) -> None:
        """Add the rules of pointers that are moved. One that is moved again in each turn of a loop
        gets no offsets: it would get as many as are told apart, and then be anywhere.
        """
        component = self._graph.components_with((a, b) for a, b, _ in self._moves)
        for base, moved, by in self._moves:
            self._move(base, moved, None if component[base] == component[moved] else by)

    def _move(self, base: int, moved: int, by: int | None) -> None:
        graph = self._graph

        def step(location: Location) -> None:
            origin, at = location
            crowded = graph.count(moved) >= _MOST_OFFSETS
            graph.add(moved, (origin, None if by is None or at is None or crowded else at + by))

        graph.on_new(base, step)

    def _load(self, i: Instruction) -> None:
        graph, held, is_pointer = self._graph, self._node(i.ref), i.ref.type.is_pointer

        def read(location: Location) -> None:
            if location[0].kind == "parameter" and is_pointer:
                graph.add(held, _read_from(location))
            elif location[0].kind == "global" and is_pointer and self._of_kernel:
                graph.add(held, (global_in_kernel(*location), 0))
                graph.read(location, held)
            elif location[0].kind != "unknown":
                graph.read(location, held)
            elif is_pointer:
                graph.add(held, location)  # as unknown as the pointer it was read through

        graph.on_new(self._node(i.operands[0]), read)

    def _store(self, i: Instruction) -> None:
        value, pointer = i.operands
        known = value.type.is_pointer or key(value) in self._nodes
        if not known and not _may_hold_pointer(value):
            return
        held = self._node(value)
        self._graph.on_new(self._node(pointer), lambda at: self._graph.write(held, at))

    def _call(self, i: Instruction) -> None:
        allocator = ALLOCATORS.get(i.callee)
        graph = self._graph
        if allocator is not None:
            made: Location = (Origin("heap", i.ref.name, self._function), 0)
            if allocator.result is None:
                self._hold(i.ref, {made})
            else:
                pointer = self._node(i.arguments[allocator.result])
                graph.on_new(pointer, lambda at: graph.add(graph.cell(at), made))
            if i.callee == "realloc":
                self._copy(i.ref, i.arguments[0], None)
        elif i.callee in ALLOCATES_TASK:
            shared: Location = (Origin("task", f"{i.ref.name} shared", self._function), 0)
            task = Origin("task", i.ref.name, self._function)
            self._hold(i.ref, {(task, 0)})
            # the runtime allocates the task's shared memory and stores its address here
            graph.add(graph.cell((task, 0)), shared)
        elif i.callee.startswith(_COPIES) or i.callee in _COPY_CALLS:
            to, source, length = i.arguments[:3]
            self._copy(to, source, constant_int(length))
            if i.ref.type.is_pointer:  # memcpy returns where it copied to
                graph.link(self._node(to), self._node(i.ref))
        elif i.callee in POINTER_CALLS:
            self._pass_on(i, POINTER_CALLS[i.callee])
        elif i.ref.type.is_pointer and not i.callee.startswith("llvm."):
            what = f"what {i.callee or 'a function called through a pointer'} returns"
            self._hold(i.ref, {(Origin("unknown", what), None)})

    def _pass_on(self, i: Instruction, call: PointerCall) -> None:
        """Store the pointer that a call is given, or that it finds in a structure."""
        graph, found = self._graph, self._node(i.arguments[call.pointer])
        if call.at is not None:
            held = graph.new_node()
            by = call.at

            def read(place: Location) -> None:
                graph.read((place[0], None if place[1] is None else place[1] + by), held)

            graph.on_new(found, read)
            found = held
        to = self._node(i.arguments[call.to])
        graph.on_new(to, lambda place: graph.write(found, place))

    def _copy(self, to: Value, source: Value, length: int | None) -> None:
        copying = Copying(self._graph, length)
        self._graph.on_new(self._node(source), copying.begins_at)
        self._graph.on_new(self._node(to), copying.ends_at)

    def _note_writes(self, body: Body) -> None:
        for i in body:
            if i.opcode == "store":
                for place in self.targets(i.operands[1]):
                    self._written[place].append(i.operands[0])


_RULES = {
    "alloca": PointsTo._alloca,
    "getelementptr": PointsTo._offset,
    "load": PointsTo._load,
    "store": PointsTo._store,
    "call": PointsTo._call,
    "invoke": PointsTo._call,
}


def _first_pointers(body: Body) -> Iterator[tuple[Location, Location]]:
    """Yield the pointers that globals begin with, as in tables of functions: place and target."""
    functions = body.printed.functions
    for name, quoted, inside in _TABLE.findall(body.printed.text):
        for n, (a, b) in enumerate(_ENTRY.findall(inside)):
            kind = "function" if (a or b) in functions else "global"
            yield (Origin("global", name or quoted), 8 * n), (Origin(kind, a or b), 0)


def _may_hold_pointer(value: Value) -> bool:
    """Return whether a value that is no pointer may hold one: a whole 64-bit word or a structure
    that is computed, not a constant.
    """
    computed = value.value_kind in (llvm.ValueKind.instruction, llvm.ValueKind.argument)
    return computed and str(value.type).strip() not in ("i1", "i8", "i16", "i32", "float", "double")


def _read_from(location: Location) -> Location:
    """Return where a pointer points that a kernel reads from a structure it is passed: an origin
    named by its offset there. A long chain ends in itself.
    """
    origin, offset = location
    if origin.name.count("+") == _DEEPEST:
        return location
    return Origin("parameter", f"{origin.name}+{offset}"), 0


def global_in_kernel(origin: Origin, offset: int | None) -> Origin:
    """Return the origin of what a pointer in a global of the device points to."""
    return Origin("parameter", f"@{origin.name}+{offset}")


def _of_expression(text: str, structs: Structs) -> set[Location]:
    """Return where a constant expression points: into the global it names; anywhere in them, if it
    names several or is no GEP.
    """
    names = _SYMBOL.findall(text)
    stepped = _CONSTANT.search(text.strip()) if len(names) == 1 else None
    offset = gep_offset(f"getelementptr {stepped[1]}", structs) if stepped else None
    return {(Origin("global", name), offset) for name in names}

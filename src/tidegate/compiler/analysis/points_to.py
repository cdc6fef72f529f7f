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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import llvmlite.binding as llvm

from tidegate.compiler.ir.allocators import ALLOCATORS
from tidegate.compiler.ir.entry_points import ALLOCATES_TASK
from tidegate.compiler.ir.layout import Structs, gep_offset
from tidegate.compiler.ir.module import Body, Instruction, Value, constant_int, key


@dataclass(frozen=True)
class Origin:
    """Where memory comes from."""

    kind: str  # heap, stack, global, task (memory of a task), parameter, or unknown
    name: str  # the value that allocates it, the global's name, or why it is unknown
    function: str = ""  # that has the value


Location = tuple[Origin, int | None]
_Rule = Callable[[Location], None]

_HANDS_ON = {"phi", "select", "freeze", "bitcast", "addrspacecast", "ptrtoint", "inttoptr"}
_HANDS_ON |= {"insertvalue", "extractvalue"}  # functions return two pointers as one value
_CONSTANT = re.compile(r"getelementptr [a-z ]*\((.*)\)$")
_MOST_OFFSETS = 64  # of one value; further fields are not distinguished
_MOST_CELLS = 1024  # of one object: a launch's arrays have one for each argument
_MOST_PAIRS = 64  # of one copy: a source and a target
_MOST_STEPS = 200_000  # after which the cells of all but the stack are collapsed
_DEEPEST = 3  # nested structures that a kernel's pointers are followed through
_SYMBOL = re.compile(r'@"?([\w.$-]+)"?')
_COPIES = ("llvm.memcpy", "llvm.memmove")
_COPY_CALLS = {"memcpy", "memmove", "omp_target_memcpy", "cudaMemcpy", "cudaMemcpyAsync"}
_COPY_CALLS |= {"hipMemcpy", "hipMemcpyAsync"}


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
        self._graph = _Graph()
        self._nodes: dict[int, int] = {}  # key of a value → its node
        self._written: dict[Location, list[Value]] = defaultdict(list)
        if caller is not None:
            self._graph.take_memory(caller._graph)
        for parameter in body.parameters:
            name = parameter.name
            unknown: set[Location] = {(Origin("unknown", f"parameter {name}"), None)}
            self._hold(parameter, unknown if parameters is None else parameters.get(name, set()))
        for instruction in body:
            if rule := _RULES.get(instruction.opcode):
                rule(self, instruction)
            elif instruction.opcode in _HANDS_ON:
                self._hand_on(instruction)
        self._graph.solve()
        self._note_writes(body)

    def of(self, value: Value) -> set[Location]:
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

    def _alloca(self, i: Instruction) -> None:
        self._hold(i.ref, {(Origin("stack", i.ref.name, self._function), 0)})

    def _offset(self, i: Instruction) -> None:
        by = gep_offset(i.text, self._structs)
        graph, held = self._graph, self._node(i.ref)

        def step(location: Location) -> None:
            origin, at = location
            crowded = graph.count(held) >= _MOST_OFFSETS
            graph.add(held, (origin, None if by is None or at is None or crowded else at + by))

        graph.on_new(self._node(i.operands[0]), step)

    def _load(self, i: Instruction) -> None:
        graph, held, is_pointer = self._graph, self._node(i.ref), i.ref.type.is_pointer

        def read(location: Location) -> None:
            if location[0].kind == "parameter" and is_pointer:
                graph.add(held, _read_from(location))
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
        elif i.ref.type.is_pointer and not i.callee.startswith("llvm."):
            what = f"what {i.callee or 'a function called through a pointer'} returns"
            self._hold(i.ref, {(Origin("unknown", what), None)})

    def _copy(self, to: Value, source: Value, length: int | None) -> None:
        copying = _Copying(self._graph, length)
        self._graph.on_new(self._node(source), copying.begins_at)
        self._graph.on_new(self._node(to), copying.ends_at)

    def _note_writes(self, body: Body) -> None:
        for i in body:
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


class _Graph:
    """Nodes, the locations each holds, and what is done with those that are new."""

    def __init__(self) -> None:
        self._number: dict[Location, int] = {}  # of the bit in a mask
        self._locations: list[Location] = []
        self._held: list[int] = []
        self._new: list[int] = []  # not passed on yet
        self._onward: list[set[int]] = []
        self._rules: list[list[_Rule]] = []
        self._queue: list[int] = []
        self._cells: dict[Origin, dict[int | None, int]] = {}
        self._all: dict[Origin, int] = {}  # the node of everything an object's cells hold
        self._copies: dict[Origin, set[tuple[int | None, Location, int | None]]] = {}
        self._uncopied: list[Location] = []  # new cells of objects that are copied
        self.collapsed: set[Origin] = set()
        self._steps = 0

    def new_node(self) -> int:
        for column in (self._held, self._new):
            column.append(0)
        self._onward.append(set())
        self._rules.append([])
        return len(self._held) - 1

    def solve(self) -> None:
        """Pass new locations on until there are none."""
        while self._queue or self._uncopied:
            while self._uncopied:
                origin, offset = self._uncopied.pop()
                for begin, end, length in tuple(self._copies[origin]):
                    self._copy_cell(origin, offset, begin, end, length)
            if not self._queue:
                break
            self._steps += 1
            if self._steps == _MOST_STEPS:
                for origin in [o for o in self._cells if o.kind != "stack"]:
                    self._collapse(origin)
            node = self._queue.pop()
            new, self._new[node] = self._new[node], 0
            for target in tuple(self._onward[node]):
                self._add(target, new)
            if rules := self._rules[node]:
                for location in self._each(new):
                    for rule in tuple(rules):
                        rule(location)

    def held(self, node: int) -> Iterator[Location]:
        return self._each(self._held[node])

    def count(self, node: int) -> int:
        return self._held[node].bit_count()

    def add(self, node: int, location: Location) -> None:
        number = self._number.get(location)
        if number is None:
            number = self._number[location] = len(self._locations)
            self._locations.append(location)
        self._add(node, 1 << number)

    def link(self, source: int, target: int) -> None:
        """Let a node hold whatever another holds."""
        if source != target and target not in self._onward[source]:
            self._onward[source].add(target)
            self._add(target, self._held[source])

    def on_new(self, node: int, rule: _Rule) -> None:
        """Apply a rule to all that a node holds, now and later."""
        waiting = self._new[node]
        self._rules[node].append(rule)
        for location in tuple(self._each(self._held[node] & ~waiting)):
            rule(location)

    def read(self, location: Location, into: int) -> None:
        """Let a node hold what is at a location: at its offset, or anywhere."""
        origin, offset = location
        if offset is None:
            self.link(self._everything(origin), into)
        else:
            self.link(self.cell(location), into)
            self.link(self.cell((origin, None)), into)

    def write(self, source: int, location: Location) -> None:
        self.link(source, self.cell(location))

    def cell(self, location: Location) -> int:
        """Return the node of a location's memory."""
        origin, offset = location
        cells = self._cells.setdefault(origin, {})
        if origin in self.collapsed:
            offset = None
        found = cells.get(offset)
        if found is not None:
            return found
        if offset is not None and (len(cells) >= _MOST_CELLS or self._is_late(origin)):
            self._collapse(origin)
            return self.cell((origin, None))
        found = cells[offset] = self.new_node()
        self.link(found, self._everything(origin))
        if origin in self._copies:
            self._uncopied.append((origin, offset))  # not at once: copies make further cells
        return found

    def copy(self, begin: Location, end: Location, length: int | None) -> None:
        """Copy the cells from one location on to another, those that are made later, too."""
        origin, first = begin
        if begin == end:
            return
        if origin == end[0] and not _apart(first, end[1], length):
            self._collapse(origin)  # or each copy would make cells that are copied again
            return
        copies = self._copies.setdefault(origin, set())
        if (first, end, length) in copies:
            return
        copies.add((first, end, length))
        for offset in tuple(self._cells.get(origin, ())):
            self._copy_cell(origin, offset, first, end, length)

    def at(self, location: Location) -> set[Location]:
        origin, offset = location
        cells = self._cells.get(origin, {})
        if offset is None or origin in self.collapsed:
            nodes = list(cells.values())
        else:
            nodes = [cells[o] for o in (offset, None) if o in cells]
        return {location for node in nodes for location in self.held(node)}

    def offsets(self, origin: Origin) -> set[int]:
        cells = self._cells.get(origin, {})
        return {at for at, node in cells.items() if at is not None and self._held[node]}

    def take_memory(self, other: _Graph) -> None:
        """Start with the memory of a solved graph."""
        self.collapsed |= other.collapsed
        for origin, cells in other._cells.items():
            for offset, node in cells.items():
                mine = self.cell((origin, offset))
                for location in other.held(node):
                    self.add(mine, location)

    def _is_late(self, origin: Origin) -> bool:
        return self._steps > _MOST_STEPS and origin.kind != "stack"

    def _everything(self, origin: Origin) -> int:
        if origin not in self._all:
            self._all[origin] = self.new_node()
        return self._all[origin]

    def _collapse(self, origin: Origin) -> None:
        if origin in self.collapsed:
            return
        cells = self._cells.setdefault(origin, {})
        whole = self.cell((origin, None))
        self.collapsed.add(origin)
        for node in tuple(cells.values()):
            self.link(node, whole)

    def _copy_cell(
        self,
        origin: Origin,
        offset: int | None,
        first: int | None,
        end: Location,
        length: int | None,
    ) -> None:
        into, base = end
        if first is None or offset is None or base is None:
            moved = None
        elif offset < first or (length is not None and offset >= first + length):
            return
        else:
            moved = offset - first + base
        self.link(self._cells[origin][offset], self.cell((into, moved)))

    def _add(self, node: int, mask: int) -> None:
        new = mask & ~self._held[node]
        if not new:
            return
        self._held[node] |= new
        if not self._new[node]:
            self._queue.append(node)
        self._new[node] |= new

    def _each(self, mask: int) -> Iterator[Location]:
        while mask:
            lowest = mask & -mask
            yield self._locations[lowest.bit_length() - 1]
            mask ^= lowest


class _Copying:
    """One instruction that copies memory: from every place it may read to every place it may write.

    If those are many pairs, what all sources hold goes anywhere into all targets.
    """

    def __init__(self, graph: _Graph, length: int | None):
        self._graph, self._length = graph, length
        self._begins: list[Location] = []
        self._ends: list[Location] = []
        self._pool: int | None = None

    def begins_at(self, begin: Location) -> None:
        self._begins.append(begin)
        if self._pool is not None or self._crowded():
            self._graph.read((begin[0], None), self._pooled())
        else:
            for end in self._ends:
                self._graph.copy(begin, end, self._length)

    def ends_at(self, end: Location) -> None:
        self._ends.append(end)
        if self._pool is not None or self._crowded():
            self._graph.write(self._pooled(), (end[0], None))
        else:
            for begin in self._begins:
                self._graph.copy(begin, end, self._length)

    def _crowded(self) -> bool:
        return len(self._begins) * len(self._ends) > _MOST_PAIRS

    def _pooled(self) -> int:
        if self._pool is None:
            self._pool = self._graph.new_node()
            for origin, _ in self._begins:
                self._graph.read((origin, None), self._pool)
            for origin, _ in self._ends:
                self._graph.write(self._pool, (origin, None))
        return self._pool


def _apart(a: int | None, b: int | None, length: int | None) -> bool:
    return None not in (a, b, length) and abs(a - b) >= length  # type: ignore[operator]


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


def _of_expression(text: str, structs: Structs) -> set[Location]:
    """Return where a constant expression points: into the global it names; anywhere in them, if it
    names several or is no GEP.
    """
    names = _SYMBOL.findall(text)
    stepped = _CONSTANT.search(text.strip()) if len(names) == 1 else None
    offset = gep_offset(f"getelementptr {stepped[1]}", structs) if stepped else None
    return {(Origin("global", name), offset) for name in names}

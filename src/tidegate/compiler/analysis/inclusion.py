"""The solver of points-to analysis: nodes that hold sets of locations, edges along which they are
passed on, and the cells of memory (Andersen's inclusion constraints).

Nodes are taken in the order of the edges, so that most are taken once all that leads to them is
known. Nodes on a cycle of edges hold the same: they become one. Edges are found on the way, so
order and cycles are determined again after as many steps as there are nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tidegate.compiler.ir.loops import components

_MOST_CELLS = 1024  # of one object: a launch's arrays have one for each argument
_MOST_PAIRS = 64  # of one copy: a source and a target
_MOST_STEPS = 200_000  # after which the cells of all but the stack are collapsed


@dataclass(frozen=True)
class Origin:
    """Where memory comes from."""

    kind: str  # heap, stack, global, task (memory of a task), parameter, or unknown
    name: str  # the value that allocates it, the global's name, or why it is unknown
    function: str = ""  # that has the value


Location = tuple[Origin, int | None]
Rule = Callable[[Location], None]


class InclusionGraph:
    """Nodes, the locations each holds, and what is done with those that are new."""

    def __init__(self) -> None:
        self._number: dict[Location, int] = {}  # of the bit in a mask
        self._locations: list[Location] = []
        self._held: list[int] = []
        self._new: list[int] = []  # not passed on yet
        self._onward: list[set[int]] = []
        self._rules: list[list[Rule]] = []
        self._same: list[int] = []  # the node that it has become one with, or itself
        self._rank: list[int] = []  # along the edges, as far as they were known
        self._queue: list[tuple[int, int]] = []  # ranks and nodes, the least rank first
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
        number = len(self._same)
        self._same.append(number)
        self._rank.append(number)
        return number

    def solve(self) -> None:
        """Pass new locations on until there are none."""
        next_order = 0
        while self._queue or self._uncopied:
            while self._uncopied:
                origin, offset = self._uncopied.pop()
                for begin, end, length in tuple(self._copies[origin]):
                    self._copy_cell(origin, offset, begin, end, length)
            if self._steps >= next_order:
                self._put_in_order()
                next_order = self._steps + len(self._same)
            if not self._queue:
                break
            self._step(heapq.heappop(self._queue)[1])

    def components_with(self, further: Iterable[tuple[int, int]]) -> dict[int, int]:
        """Return a number for each node: the same for those on a cycle of edges, the `further` ones
        among them.
        """
        onward = {node: set(targets) for node, targets in enumerate(self._onward)}
        for source, target in further:
            onward[source].add(target)
        return {node: n for n, found in enumerate(components(onward)) for node in found}

    def _step(self, node: int) -> None:
        new, self._new[node] = self._new[node], 0
        if not new:
            return  # the node has become one with another
        self._steps += 1
        if self._steps == _MOST_STEPS:
            for origin in [o for o in self._cells if o.kind != "stack"]:
                self._collapse(origin)
        for target in tuple(self._onward[node]):
            self._add(target, new)
        if rules := self._rules[node]:
            for location in self._each(new):
                for rule in tuple(rules):
                    rule(location)

    def _put_in_order(self) -> None:
        """Make cycles one node each, and rank the nodes along the edges."""
        onward = {n: self._edges(n) for n, same in enumerate(self._same) if n == same}
        cycles = list(components(onward))
        for rank, cycle in enumerate(reversed(cycles)):
            self._rank[cycle[0]] = rank
            if len(cycle) > 1:
                self._unite(cycle)
        self._queue = [(self._rank[n], n) for n in onward if self._same[n] == n and self._new[n]]
        heapq.heapify(self._queue)

    def _edges(self, node: int) -> set[int]:
        """Return the nodes that a node's locations are passed on to, each by its present number."""
        found = {self._find(target) for target in self._onward[node]} - {node}
        self._onward[node] = found
        return found

    def _unite(self, nodes: list[int]) -> None:
        """Make nodes one. What not all of them have passed on is passed on again."""
        first = nodes[0]
        passed = -1
        for node in nodes:
            passed &= self._held[node] & ~self._new[node]
        for node in nodes[1:]:
            self._same[node] = first
            self._held[first] |= self._held[node]
            self._onward[first] |= self._onward[node]
            self._rules[first] += self._rules[node]
            self._held[node] = self._new[node] = 0
            self._onward[node], self._rules[node] = set(), []
        self._new[first] = self._held[first] & ~passed
        self._onward[first] -= set(nodes)

    def _find(self, node: int) -> int:
        """Return the node that a node has become one with."""
        same = self._same
        while same[node] != node:
            same[node] = node = same[same[node]]
        return node

    def held(self, node: int) -> Iterator[Location]:
        return self._each(self._held[self._find(node)])

    def count(self, node: int) -> int:
        return self._held[self._find(node)].bit_count()

    def add(self, node: int, location: Location) -> None:
        number = self._number.get(location)
        if number is None:
            number = self._number[location] = len(self._locations)
            self._locations.append(location)
        self._add(node, 1 << number)

    def link(self, source: int, target: int) -> None:
        """Let a node hold whatever another holds."""
        source, target = self._find(source), self._find(target)
        if source != target and target not in self._onward[source]:
            self._onward[source].add(target)
            self._add(target, self._held[source])

    def on_new(self, node: int, rule: Rule) -> None:
        """Apply a rule to all that a node holds, now and later."""
        node = self._find(node)
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
        return {at for at, node in cells.items() if at is not None and self.count(node)}

    def take_memory(self, other: InclusionGraph) -> None:
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
        if self._same[node] != node:
            node = self._find(node)
        new = mask & ~self._held[node]
        if not new:
            return
        self._held[node] |= new
        if not self._new[node]:
            heapq.heappush(self._queue, (self._rank[node], node))
        self._new[node] |= new

    def _each(self, mask: int) -> Iterator[Location]:
        while mask:
            lowest = mask & -mask
            yield self._locations[lowest.bit_length() - 1]
            mask ^= lowest


class Copying:
    """One instruction that copies memory: from every place it may read to every place it may write.

    If those are many pairs, what all sources hold goes anywhere into all targets.
    """

    def __init__(self, graph: InclusionGraph, length: int | None):
        self._graph, self._length = graph, length
        self._begins: dict[Location, None] = {}  # in their order
        self._ends: dict[Location, None] = {}
        self._pool: int | None = None

    def begins_at(self, begin: Location) -> None:
        if begin in self._begins:
            return
        self._begins[begin] = None
        if self._pool is not None or self._crowded():
            self._graph.read((begin[0], None), self._pooled())
        else:
            for end in self._ends:
                self._graph.copy(begin, end, self._length)

    def ends_at(self, end: Location) -> None:
        if end in self._ends:
            return
        self._ends[end] = None
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

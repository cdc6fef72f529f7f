"""Where in a policy's block each of its attributes is, and how they get there and back.

    header │ cells: numbers, options, sizes │ rows: some words for each region │ lists, heaps, draws

State is whatever the policy's attributes hold when ``start`` has returned. Rows behind the last
region's are the ends of orders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.policies.interface.header import HEAP_ROOM, OWN
from tidegate.policies.interface.policy import Policy
from tidegate.policies.structures.column import Column, Marks
from tidegate.policies.structures.draws import Draws
from tidegate.policies.structures.heap import Heap
from tidegate.policies.structures.order import Order, Orders

Words = NDArray[np.int64]

_NOT_STATE = {"memory", "name", "parts", "sees", "in_driver", "given_options", "most_rounds"}
_REMEDIES: dict[type, str] = {
    set: "Marks() is a set of regions",
    dict: "Column(default) holds a number for each region",
    list: "a list must hold numbers when start() returns, as many as it will ever have",
    type(None): "use -1 for none",
    str: "use a number",
}


class StateBlock:
    """The words of a block behind its header, during packing and unpacking."""

    def __init__(self, words: Words, layout: Layout, regions: int):
        self.words, self.regions = words, regions
        rows = regions + 2 * layout.orders
        self.rows = words[layout.cells : layout.cells + rows * layout.row].reshape(rows, layout.row)
        self.free = layout.cells + self.rows.size  # where the next list begins

    def take(self, count: int) -> int:
        """Return where ``count`` further words begin."""
        self.free += count
        return self.free - count


@dataclass(frozen=True)
class StateKind:
    """How a value is kept: in so many cells and row words, and how it is packed and unpacked."""

    name: str
    cells: int
    words: int
    pack: Callable[[Any, StatePlace, StateBlock], None]
    unpack: Callable[[Any, StatePlace, StateBlock], Any]  # returns the value
    extra: Callable[[Any, int], int] = lambda value, regions: 0


@dataclass(frozen=True)
class StatePlace:
    """An attribute and the numbers of its first cell and of its first word in each row."""

    attribute: str
    kind: StateKind
    cell: int
    word: int


class Layout:
    """The places of a policy's attributes; ``refused`` says why the others have none.

    The first ``reserved`` words of each row are the mechanism's.
    """

    def __init__(self, policy: Policy, reserved: int = 0):
        self.places: list[StatePlace] = []
        self.refused: dict[str, str] = {}
        self.cells, self.row = 0, reserved
        seen: dict[int, str] = {}
        for name, value in sorted(vars(policy).items()):
            kind = None if name in _NOT_STATE else _kind(policy, value)
            if kind is None:
                if name not in _NOT_STATE:
                    self.refused[name] = _refusal(value)
            elif kind.words and id(value) in seen:
                self.refused[name] = f"is the same object as self.{seen[id(value)]}"
            else:
                seen[id(value)] = name
                self.places.append(StatePlace(name, kind, self.cells, self.row))
                self.cells += kind.cells
                self.row += kind.words
        self.row = max(1, self.row)
        self.cells += self.cells % 2  # rows of two words each lie within one line of the cache
        self.orders = max((_ends(vars(policy)[p.attribute]) for p in self.places), default=0)

    @property
    def signature(self) -> str:
        """Everything about the layout that compiled code depends on."""
        return repr(
            [(p.attribute, p.kind.name) for p in self.places] + sorted(self.refused.items())
        )

    def pack(self, policy: Policy, regions: int) -> Words:
        """Return the words of a policy as it is now."""
        return self.make_block(policy, regions)[OWN:]

    def make_block(self, policy: Policy, regions: int) -> Words:
        """Return the same behind a header that is empty."""
        values = [vars(policy)[place.attribute] for place in self.places]
        extra = sum(p.kind.extra(v, regions) for p, v in zip(self.places, values, strict=True))
        rows = regions + 2 * self.orders
        words = np.zeros(OWN + self.cells + rows * self.row + extra, np.int64)
        block = StateBlock(words[OWN:], self, regions)
        for place, value in zip(self.places, values, strict=True):
            place.kind.pack(value, place, block)
        return words

    def rows(self, block: Words, regions: int) -> Words:
        """Return the rows of all regions, a view of the block."""
        return StateBlock(block[OWN:], self, regions).rows[:regions]

    def unpack(self, policy: Policy, words: Words, regions: int) -> None:
        """Give the policy's attributes the values that its words hold."""
        block = StateBlock(words, self, regions)
        for place in self.places:
            value = vars(policy)[place.attribute]
            vars(policy)[place.attribute] = place.kind.unpack(value, place, block)


def _ends(value: Any) -> int:
    """Return how many orders a value consists of."""
    return len(value) if isinstance(value, Orders) else int(isinstance(value, Order))


def _refusal(value: Any) -> str:
    remedy = next((r for of, r in _REMEDIES.items() if isinstance(value, of)), "")
    what = "None" if value is None else f"a {type(value).__name__}"
    return f"is {what}, which compiled code cannot keep" + (f"; {remedy}" if remedy else "")


def _kind(policy: Policy, value: Any) -> StateKind | None:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int | np.integer):
        return INT if -(1 << 63) <= value < 1 << 63 else None
    if isinstance(value, float):
        return FLOAT
    if isinstance(value, Column):
        return FLOAT_COLUMN if isinstance(value.default, float) else COLUMN
    if isinstance(value, Policy):
        numbers = [i for i, part in enumerate(policy.parts) if part is value]
        return part_kind(numbers[0]) if numbers else None
    for of, kind in (
        (Orders, ORDERS),
        (Order, ORDER),
        (Marks, MARKS),
        (Heap, HEAP),
        (Draws, DRAWS),
    ):
        if type(value) is of:
            return kind
    if isinstance(value, list) and value:
        if value is policy.parts:
            return PARTS
        kinds = {type(item) for item in value}
        return {frozenset({int}): LIST, frozenset({float}): FLOAT_LIST}.get(frozenset(kinds))
    return None


# Numbers


def _set_cell(value: Any, place: StatePlace, block: StateBlock) -> None:
    block.words[place.cell] = value


def _set_float(value: Any, place: StatePlace, block: StateBlock) -> None:
    block.words[place.cell : place.cell + 1].view(np.float64)[0] = value


BOOL = StateKind("bool", 1, 0, _set_cell, lambda v, p, b: bool(b.words[p.cell]))
INT = StateKind("int", 1, 0, _set_cell, lambda v, p, b: int(b.words[p.cell]))
FLOAT = StateKind(
    "float",
    1,
    0,
    _set_float,
    lambda v, p, b: float(b.words[p.cell : p.cell + 1].view(np.float64)[0]),
)


# Orders: see primitives.py for the links


def _halves(column: Words) -> NDArray[np.int32]:
    return np.ascontiguousarray(column).view(np.int32).reshape(-1, 2)


def _link(order: Order, end: int, halves: NDArray[np.int32]) -> None:
    """Write an order's links; its end is row ``end``, its length is in the row behind."""
    if order:
        chain = np.array([end, *order, end])
        halves[chain[:-1], 0] = chain[1:] + 1
        halves[chain[1:], 1] = chain[:-1] + 1
    halves[end + 1, 0] = len(order)


def _pack_orders(orders: list[Order], place: StatePlace, block: StateBlock) -> None:
    halves = _halves(block.rows[:, place.word])
    for number, order in enumerate(orders):
        end = block.regions + 2 * number
        _link(order, end, halves)
        if place.kind is ORDERS:
            block.rows[list(order), place.word + 1] = end
    block.rows[:, place.word] = halves.reshape(-1).view(np.int64)
    if place.kind is ORDERS:
        block.words[place.cell] = len(orders)


def _unpack_orders(orders: list[Order], place: StatePlace, block: StateBlock) -> None:
    after = (_halves(block.rows[:, place.word])[:, 0] - 1).tolist()
    for number, order in enumerate(orders):
        end = block.regions + 2 * number
        order.clear()
        region = after[end]
        while region not in (end, -1):
            order[region] = None
            region = after[region]


def _unpack_order(order: Order, place: StatePlace, block: StateBlock) -> Order:
    _unpack_orders([order], place, block)
    return order


def _unpack_all(orders: Orders, place: StatePlace, block: StateBlock) -> Orders:
    _unpack_orders(orders, place, block)
    return orders


ORDER = StateKind("order", 0, 1, lambda v, p, b: _pack_orders([v], p, b), _unpack_order)
ORDERS = StateKind("orders", 1, 2, _pack_orders, _unpack_all)


# Marks, columns, heaps


def _pack_marks(marks: Marks, place: StatePlace, block: StateBlock) -> None:
    block.words[place.cell], block.words[place.cell + 1] = 1, len(marks)
    block.rows[list(marks), place.word] = 1


def _unpack_marks(marks: Marks, place: StatePlace, block: StateBlock) -> Marks:
    marks.clear()
    column = block.rows[: block.regions, place.word]
    marks.update(np.flatnonzero(column == block.words[place.cell]).tolist())
    return marks


def _numbers(column: Column[Any], place: StatePlace, block: StateBlock) -> NDArray[Any]:
    words = block.rows[: block.regions, place.word]
    return words.view(np.float64) if place.kind is FLOAT_COLUMN else words


def _pack_column(column: Column[Any], place: StatePlace, block: StateBlock) -> None:
    numbers = _numbers(column, place, block)
    if column.default:
        numbers[:] = column.default
    for region, number in column.items():
        numbers[region] = number


def _unpack_column(column: Column[Any], place: StatePlace, block: StateBlock) -> Column[Any]:
    column.replace(_numbers(column, place, block))
    return column


def _pack_heap(heap: Heap, place: StatePlace, block: StateBlock) -> None:
    shift = block.regions.bit_length()
    if any(number < 0 or number >> (62 - shift) for number in heap.values()):
        raise OverflowError("a heap's numbers must be 0 or more, and fit 64 bits with their region")
    first = block.take(HEAP_ROOM * block.regions)
    for region, number in heap.items():
        block.rows[region, place.word] = number + 1
    entries = sorted(number << shift | region for region, number in heap.items())
    block.words[first : first + len(entries)] = entries
    limit = len(entries)  # the first entry finds out at how many the heap is made anew
    cells = (8 * (OWN + first), limit, len(entries), len(entries), shift)
    block.words[place.cell : place.cell + 5] = cells


def _unpack_heap(heap: Heap, place: StatePlace, block: StateBlock) -> Heap:
    column = block.rows[: block.regions, place.word]
    regions = np.flatnonzero(column)
    heap.replace(dict(zip(regions.tolist(), (column[regions] - 1).tolist(), strict=True)))
    return heap


MARKS = StateKind("marks", 2, 1, _pack_marks, _unpack_marks)
COLUMN = StateKind("column", 0, 1, _pack_column, _unpack_column)
FLOAT_COLUMN = StateKind("float column", 0, 1, _pack_column, _unpack_column)
HEAP = StateKind("heap", 5, 1, _pack_heap, _unpack_heap, lambda v, regions: HEAP_ROOM * regions)


# Lists and draws, behind the rows


def _pack_list(items: list[Any], place: StatePlace, block: StateBlock) -> None:
    first = block.take(len(items))
    block.words[place.cell : place.cell + 2] = 8 * (OWN + first), len(items)
    kept = block.words[first : first + len(items)]
    (kept.view(np.float64) if place.kind is FLOAT_LIST else kept)[:] = items


def _unpack_list(items: list[Any], place: StatePlace, block: StateBlock) -> list[Any]:
    first = int(block.words[place.cell]) // 8 - OWN
    kept = block.words[first : first + len(items)]
    items[:] = (kept.view(np.float64) if place.kind is FLOAT_LIST else kept).tolist()
    return items


def _pack_draws(draws: Draws, place: StatePlace, block: StateBlock) -> None:
    state = draws.getstate()[1]
    first = block.take(len(state))
    block.words[place.cell] = 8 * (OWN + first)
    block.words[first : first + len(state)] = state


def _unpack_draws(draws: Draws, place: StatePlace, block: StateBlock) -> Draws:
    version, state, gauss = draws.getstate()
    first = int(block.words[place.cell]) // 8 - OWN
    draws.setstate((version, tuple(block.words[first : first + len(state)].tolist()), gauss))
    return draws


LIST = StateKind("list", 2, 0, _pack_list, _unpack_list, lambda v, regions: len(v))
FLOAT_LIST = StateKind("float list", 2, 0, _pack_list, _unpack_list, lambda v, regions: len(v))
DRAWS = StateKind("draws", 1, 0, _pack_draws, _unpack_draws, lambda v, regions: 625)
PARTS = StateKind("parts", 0, 0, lambda v, p, b: None, lambda v, p, b: v)


def part_kind(number: int) -> StateKind:
    """Return the kind of an attribute that is part ``number``."""
    return StateKind(f"part {number}", 0, 0, lambda v, p, b: None, lambda v, p, b: v)

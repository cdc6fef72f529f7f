"""Operations on a block's words: orders, marks, columns, lists, heaps, draws and parts.

All work on whole numbers, so that one compilation, cached, serves every policy. ``at``, ``stride``
and ``cell`` are distances in bytes from the block's beginning; they become constants where an
operation is inlined. An index that is out of range raises: it would be written anywhere.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from tidegate.compiled.addresses import (
    load,
    load32,
    load_fixed,
    load_float,
    outside,
    store,
    store32,
    store_float,
)
from tidegate.compiled.intrinsics import call_at
from tidegate.compiled.jit import jit_within as primitive
from tidegate.policies.interface import header as h
from tidegate.policies.interface.events import EVENT_BITS, FAILED, OBSERVE, VICTIM


@primitive
def regions(block):
    return load_fixed(block + 8 * h.REGIONS)


@primitive
def row(block, at, stride, region):
    """Return where this region's word is."""
    if outside(region, load_fixed(block + 8 * h.REGIONS)):
        raise IndexError("no such region")
    return block + at + stride * region


# Orders: the links of a region are two half words, each one higher than it is, so that 0 means "in
# no order". Row ``end`` holds the two ends of an order, the row behind it its length. In a family
# (Orders), a region's next word says in which order it is.


@primitive
def order_len(block, end, at, family, stride):
    return load(block + at + stride * (end + 1))


@primitive
def order_has(block, end, at, family, stride, region):
    if outside(region, load_fixed(block + 8 * h.REGIONS)):
        return False
    here = block + at + stride * region
    return load32(here) != 0 and (not family or load(here + 8) == end)


@primitive
def _unlink(block, at, stride, here, after):
    before = load32(here + 4)
    store32(block + at + stride * (before - 1), after)
    store32(block + at + stride * (after - 1) + 4, before)


@primitive
def order_remove(block, end, at, family, stride, region):
    here = row(block, at, stride, region)
    after = load32(here)
    if after == 0 or (family and load(here + 8) != end):
        raise KeyError("the region is not in the order")
    _unlink(block, at, stride, here, after)
    store32(here, 0)
    count = block + at + stride * (end + 1)
    store(count, load(count) - 1)


@primitive
def _enter(block, end, at, family, stride, region):
    """Take a region out of its place in this order, if it has one; return its row."""
    here = row(block, at, stride, region)
    after = load32(here)
    if after:
        if family and load(here + 8) != end:
            raise KeyError("the region is in another of these orders")
        _unlink(block, at, stride, here, after)
    else:
        count = block + at + stride * (end + 1)
        store(count, load(count) + 1)
        if family:
            store(here + 8, end)
    return here


@primitive
def order_to_tail(block, end, at, family, stride, region):
    here, ends = _enter(block, end, at, family, stride, region), block + at + stride * end
    last = load32(ends + 4) or end + 1
    store32(block + at + stride * (last - 1), region + 1)
    store32(here + 4, last)
    store32(here, end + 1)
    store32(ends + 4, region + 1)


@primitive
def order_to_head(block, end, at, family, stride, region):
    here, ends = _enter(block, end, at, family, stride, region), block + at + stride * end
    first = load32(ends) or end + 1
    store32(block + at + stride * (first - 1) + 4, region + 1)
    store32(here, first)
    store32(here + 4, end + 1)
    store32(ends, region + 1)


@primitive
def order_next(block, end, at, stride, back, cursor):
    """Return the region after this one (``back`` = 4: before it), -1 behind the last.

    The cursor of a new iteration is ``end``.
    """
    found = load32(block + at + stride * cursor + back) - 1
    return -1 if found == end else found


@primitive
def order_changed():
    """Refuse an iteration of more steps than there are regions."""
    raise RuntimeError("the order was changed while it was iterated over")


@primitive
def check_slice(begin, end):
    if begin < 0 or end < 0:
        raise ValueError("islice takes 0 or more")


@primitive
def order_head(block, end, at, family, stride):
    found = order_next(block, end, at, stride, 0, end)
    if found < 0:
        raise StopIteration("the order is empty")
    return found


@primitive
def order_tail(block, end, at, family, stride):
    found = order_next(block, end, at, stride, 4, end)
    if found < 0:
        raise StopIteration("the order is empty")
    return found


@primitive
def orders_end(block, at, stride, cell, number):
    """Return the row at which an order of a family ends."""
    if outside(number, load_fixed(block + cell)):
        raise IndexError("no such order")
    return load_fixed(block + 8 * h.REGIONS) + 2 * number


@primitive
def orders_len(block, at, stride, cell):
    return load_fixed(block + cell)


# Marks: the word of a marked region is the number of the current clearing, in the first of two
# cells; the second counts the marked regions.


@primitive
def marks_has(block, at, stride, cell, region):
    if outside(region, load_fixed(block + 8 * h.REGIONS)):
        return False
    return load(block + at + stride * region) == load(block + cell)


@primitive
def marks_add(block, at, stride, cell, region):
    here, now = row(block, at, stride, region), load(block + cell)
    if load(here) != now:
        store(here, now)
        store(block + cell + 8, load(block + cell + 8) + 1)


@primitive
def marks_discard(block, at, stride, cell, region):
    if marks_has(block, at, stride, cell, region):
        store(block + at + stride * region, 0)
        store(block + cell + 8, load(block + cell + 8) - 1)


@primitive
def marks_remove(block, at, stride, cell, region):
    if not marks_has(block, at, stride, cell, region):
        raise KeyError("the region is not marked")
    marks_discard(block, at, stride, cell, region)


@primitive
def marks_clear(block, at, stride, cell):
    store(block + cell, load(block + cell) + 1)
    store(block + cell + 8, 0)


@primitive
def marks_len(block, at, stride, cell):
    return load(block + cell + 8)


# Columns


@primitive
def column_get(block, at, stride, region):
    return load(row(block, at, stride, region))


@primitive
def column_set(block, at, stride, region, value):
    store(row(block, at, stride, region), value)


@primitive
def float_column_get(block, at, stride, region):
    return load_float(row(block, at, stride, region))


@primitive
def float_column_set(block, at, stride, region, value):
    store_float(row(block, at, stride, region), value)


# Lists whose length does not change: two cells say where the items are, and how many


@primitive
def _item(block, cell, index):
    size = load_fixed(block + cell + 8)
    if outside(index, size):
        index += size  # from the end, perhaps
        if outside(index, size):
            raise IndexError("list index out of range")
    return block + load_fixed(block + cell) + 8 * index


@primitive
def list_get(block, cell, index):
    return load(_item(block, cell, index))


@primitive
def list_set(block, cell, index, value):
    store(_item(block, cell, index), value)


@primitive
def float_list_get(block, cell, index):
    return load_float(_item(block, cell, index))


@primitive
def float_list_set(block, cell, index, value):
    store_float(_item(block, cell, index), value)


@primitive
def list_len(block, cell):
    return load_fixed(block + cell + 8)


@primitive
def list_bisect_right(block, cell, value):
    low, high = 0, load_fixed(block + cell + 8)
    items = block + load_fixed(block + cell)
    while low < high:
        middle = (low + high) // 2
        if value < load(items + 8 * middle):
            high = middle
        else:
            low = middle + 1
    return low


# Heaps: a region's word is its number plus one; 0 means "not in the heap". Five cells:
# where the entries are, at how many the heap is made anew, how many there are, how many regions are
# in the heap, and the shift. An entry is number << shift | region, so that entries compare like
# (number, region). Entries of earlier numbers are dropped when they come up, or when the heap is
# made anew: while they are few, entries stay within the cache.


@primitive
def _sift_up(entries, place, entry):
    while place > 0 and load(entries + 8 * ((place - 1) >> 1)) > entry:
        store(entries + 8 * place, load(entries + 8 * ((place - 1) >> 1)))
        place = (place - 1) >> 1
    store(entries + 8 * place, entry)


@primitive
def _sift_down(entries, size, entry):
    """Put an entry in the place of the first one."""
    place, child = 0, 1
    while child < size:
        if child + 1 < size and load(entries + 8 * child + 8) < load(entries + 8 * child):
            child += 1
        if load(entries + 8 * child) >= entry:
            break
        store(entries + 8 * place, load(entries + 8 * child))
        place, child = child, 2 * child + 1
    store(entries + 8 * place, entry)


@primitive
def _drop_first(block, cell, entries):
    size = load(block + cell + 16) - 1
    store(block + cell + 16, size)
    _sift_down(entries, size, load(entries + 8 * size))


@primitive
def _make_anew(block, at, stride, cell, entries, shift):
    """Make the heap from the regions' present numbers."""
    count, size = load_fixed(block + 8 * h.REGIONS), 0
    for region in range(count):
        number = load(block + at + stride * region)
        if number:
            _sift_up(entries, size, (number - 1) << shift | region)
            size += 1
    store(block + cell + 16, size)
    # this took a look at all regions, which must pay when it is done next
    store(block + cell + 8, min(h.HEAP_ROOM * count, max(4 * size, size + count // 4)))


@primitive
def heap_set(block, at, stride, cell, region, number):
    here, shift = row(block, at, stride, region), load_fixed(block + cell + 32)
    if number < 0 or number >> (62 - shift):
        raise OverflowError("the number is negative or too large for a compiled heap")
    entries, entry = block + load_fixed(block + cell), number << shift | region
    known = load(here)
    if known == number + 1:
        return
    store(here, number + 1)
    if not known:
        store(block + cell + 24, load(block + cell + 24) + 1)
    elif load(entries) == ((known - 1) << shift | region):
        _sift_down(entries, load(block + cell + 16), entry)
        return
    size = load(block + cell + 16)
    if size >= load(block + cell + 8):
        _make_anew(block, at, stride, cell, entries, shift)
    else:
        _sift_up(entries, size, entry)
        store(block + cell + 16, size + 1)


@primitive
def heap_get(block, at, stride, cell, region):
    number = load(row(block, at, stride, region))
    if number == 0:
        raise KeyError("the region is not in the heap")
    return number - 1


@primitive
def heap_has(block, at, stride, cell, region):
    if outside(region, load_fixed(block + 8 * h.REGIONS)):
        return False
    return load(block + at + stride * region) != 0


@primitive
def heap_remove(block, at, stride, cell, region):
    here = row(block, at, stride, region)
    if load(here) == 0:
        raise KeyError("the region is not in the heap")
    store(here, 0)
    store(block + cell + 24, load(block + cell + 24) - 1)


@primitive
def heap_lowest(block, at, stride, cell):
    if load(block + cell + 24) == 0:
        raise IndexError("the heap is empty")
    entries, shift = block + load_fixed(block + cell), load_fixed(block + cell + 32)
    while True:
        entry = load(entries)
        region = entry & ((1 << shift) - 1)
        if load(block + at + stride * region) == (entry >> shift) + 1:
            return region
        _drop_first(block, cell, entries)


@primitive
def heap_len(block, at, stride, cell):
    return load(block + cell + 24)


# Draws: a cell says where the 624 words of a Mersenne Twister and its position are, as in CPython's
# random module (Matsumoto and Nishimura 1998)

_WORDS, _MIDDLE, _UPPER, _LOWER = 624, 397, 0x80000000, 0x7FFFFFFF


@primitive
def _twist(state):
    for i in range(_WORDS):
        y = load(state + 8 * i) & _UPPER | load(state + 8 * ((i + 1) % _WORDS)) & _LOWER
        new = load(state + 8 * ((i + _MIDDLE) % _WORDS)) ^ (y >> 1)
        store(state + 8 * i, new ^ 0x9908B0DF if y & 1 else new)


@primitive
def draws_below(block, cell, limit):
    if limit < 1 or limit >> 31:
        raise ValueError("a draw's limit must be 1 or more, and less than 2**31")
    state, bits = block + load_fixed(block + cell), 0
    while limit >> bits:
        bits += 1
    while True:
        place = load(state + 8 * _WORDS)
        if place == _WORDS:
            _twist(state)
            place = 0
        store(state + 8 * _WORDS, place + 1)
        y = load(state + 8 * place)
        y ^= y >> 11
        y ^= (y << 7) & 0x9D2C5680
        y ^= (y << 15) & 0xEFC60000
        y ^= y >> 18
        if y >> (32 - bits) < limit:
            return y >> (32 - bits)


# Parts: policies that a policy is made of. They may ask for requests or fail, as it may itself


@primitive
def parts_len(block):
    return load_fixed(block + 8 * h.PARTS_N)


@primitive
def _call(block, part, event):
    """Relay an event to a part and return its answer; FAILED if it does not handle the event."""
    if outside(part, load_fixed(block + 8 * h.PARTS_N)):
        raise IndexError("no such part")
    here = load_fixed(block + 8 * h.PARTS) + 8 * h.PART_WORDS * part
    if not load_fixed(here + 16) >> (event & ((1 << EVENT_BITS) - 1)) & 1:
        return FAILED
    found = call_at(load_fixed(here), load_fixed(here + 8), event)
    if load(load_fixed(block + 8 * h.REQUEST_N)) < 0:
        raise RuntimeError("a part failed")
    return found


@primitive
def part_relay(block, part, kind, number):
    _call(block, part, kind | number << EVENT_BITS)


@primitive
def part_victim(block, part):
    return _call(block, part, VICTIM)


@primitive
def part_observe(block, part):
    found = _call(block, part, OBSERVE)
    return None if found < 0 else found

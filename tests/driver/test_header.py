"""policy.h, compiled for this machine: its structures and arithmetic equal Python's."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.driver.emit import shipped
from tidegate.policies.structures.draws import Draws
from tidegate.policies.structures.heap import Heap
from tidegate.policies.structures.order import Order

REGIONS = 50
_SEED = 7

_WRAPPED = """
#define REGIONS 50
#define SLOTS 64
#define ROUNDS 1000
#define PAGES 32
#include "policy.h"
ORDERS(order, 2)
HEAP(heap)
MARKS(marks)
COLUMN(column, -3)
s64 list[5] = {{ 1, 3, 3, 7, 9 }};
LIST(list, 5)
struct {{ u32 at, ready, word[624]; }} draws = {{
	.at = {at}, .ready = {ready}, .word = {{ {words} }}
}};
DRAWS(draws)
s64 order_at_head(s64 l) {{ return order_len(l) ? order_head(l) : NONE; }}
s64 order_at_tail(s64 l) {{ return order_len(l) ? order_tail(l) : NONE; }}
s64 order_next(s64 region) {{ return (s64)order.next[region + 1] - 1; }}
s64 heap_least(void) {{ return heap_lowest(); }}
s64 heap_of(s64 region) {{ return heap_get(region); }}
s64 heap_length(void) {{ return heap.len; }}
s64 rest(s64 a, s64 b) {{ return remainder(a, b); }}
s64 list_of(s64 i) {{ return list_get(i); }}
s64 column_of(s64 r) {{ return column_get(r); }}
s64 column_put(s64 r, s64 n) {{ return column_set(r, n); }}
s64 mark(s64 r) {{ return marks_add(r); }}
s64 unmark(s64 r) {{ return marks_discard(r); }}
s64 unmark_all(void) {{ return marks_clear(); }}
s64 is_marked(s64 r) {{ return marks_has(r); }}
s64 marked(void) {{ return marks.len; }}
"""
# the kernel's iterator, over its 8 bytes
_ITERATOR = """
struct numbers { int at, end; };
static int now;
int bpf_iter_num_new(struct numbers *it, int start, int end)
{
	it->at = start;
	it->end = end;
	return 0;
}
int *bpf_iter_num_next(struct numbers *it)
{
	if (it->at >= it->end)
		return (int *)0;
	now = it->at++;
	return &now;
}
void bpf_iter_num_destroy(struct numbers *it)
{
	(void)it;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("header")
    (folder / "policy.h").write_text(shipped("policy.h"))
    *words, at = Draws(_SEED).getstate()[1]
    text = _WRAPPED.format(at=at % 624, ready=624 - at, words=", ".join(f"{w}u" for w in words))
    (folder / "wrapped.c").write_text(text)
    (folder / "iterator.c").write_text(_ITERATOR)
    built = folder / "wrapped.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-fwrapv", "-w", "wrapped.c", "iterator.c"]
    subprocess.run([*command, "-o", built], cwd=folder, check=True)
    return built


_copies = iter(range(1 << 30))


@pytest.fixture
def fresh(built: Path, tmp_path: Path) -> Any:
    """The library with empty structures: a copy is loaded anew."""

    def load() -> Any:
        copy = tmp_path / f"copy{next(_copies)}.so"
        shutil.copy(built, copy)
        return _Library(copy)

    return load


class _Library:
    """Functions of 64-bit numbers."""

    def __init__(self, path: Path):
        self._library = ctypes.CDLL(str(path))

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)
        function.restype = ctypes.c_int64

        def call(*given: int) -> int:
            return function(*map(ctypes.c_int64, given))  # type: ignore[no-any-return]

        return call

    @property
    def failed(self) -> int:
        return ctypes.c_int64.in_dll(self._library, "failed").value


numbers = st.integers(-(1 << 40), 1 << 40)


@pytest.mark.oracle
def test_division_rounds_down_as_pythons(fresh: Any) -> None:
    library = fresh()

    @given(numbers, numbers.filter(bool))
    def check(a: int, b: int) -> None:
        assert library.floor_divide(a, b) == a // b
        assert library.rest(a, b) == a % b

    check()
    assert library.failed == 0
    library.floor_divide(1, 0)
    assert library.failed


@pytest.mark.oracle
def test_shares_are_rounded_as_products_of_doubles(fresh: Any) -> None:
    library = fresh()

    @given(st.floats(0, 1e6), st.integers(-(1 << 31), 1 << 31))
    def check(share: float, number: int) -> None:
        top, bottom = share.as_integer_ratio()
        shift = bottom.bit_length() - 1
        if shift > 1000:
            return
        product = share * number
        down = product.__floor__()
        assert library.times_fraction(number, top, shift, 0) == down
        assert library.times_fraction(number, top, shift, 1) == product.__ceil__()
        assert library.times_fraction(number, top, shift, number < 0) == int(product)

    check()
    # exactly 0.7 · 10 is less than 7, the product of the doubles is 7
    top, bottom = (0.7).as_integer_ratio()
    assert library.times_fraction(10, top, bottom.bit_length() - 1, 0) == 7
    assert library.failed == 0


@pytest.mark.oracle
def test_draws_are_pythons(fresh: Any) -> None:
    library, draws, limits = fresh(), Draws(_SEED), random.Random(1)
    for _ in range(3000):
        limit = limits.choice((1, 2, 3, 10, 1000, 1 << 20, (1 << 31) + 5))
        assert library.draws_below(limit) == draws.below(limit)
    assert library.failed == 0


@pytest.mark.oracle
def test_orders(fresh: Any) -> None:
    @given(st.lists(st.tuples(st.sampled_from("htr"), st.integers(0, REGIONS - 1)), max_size=60))
    def check(steps: list[tuple[str, int]]) -> None:
        library, order = fresh(), Order()
        for what, region in steps:
            if what == "r":
                if region in order:
                    order.remove(region)
                    library.order_remove(0, region)
            elif what == "h":
                order.move_to_head(region)
                library.order_move_to_head(0, region)
            else:
                order.move_to_tail(region)
                library.order_move_to_tail(0, region)
        found, region = [], library.order_at_head(0)
        while region >= 0:
            found.append(region)
            region = library.order_next(region)
        assert found == list(order)
        assert library.order_at_tail(0) == (order.tail if order else -1)
        assert library.failed == 0

    check()


def test_an_order_says_what_python_refuses(fresh: Any) -> None:
    for wrong in (
        lambda library: library.order_remove(0, 3),  # not in it
        lambda library: library.order_move_to_tail(0, REGIONS),  # no such region
        lambda library: library.order_move_to_tail(0, -1),
        lambda library: (library.order_move_to_tail(1, 3), library.order_move_to_tail(0, 3)),
        lambda library: library.heap_remove(3),
        lambda library: library.heap_set(3, -1),
        lambda library: library.draws_below(0),
        lambda library: library.list_of(5),
        lambda library: library.column_of(REGIONS),
    ):
        library = fresh()
        wrong(library)
        assert library.failed


@pytest.mark.oracle
def test_heaps(fresh: Any) -> None:
    steps = st.lists(
        st.tuples(st.booleans(), st.integers(0, REGIONS - 1), st.integers(0, 9)), max_size=80
    )

    @given(steps)
    def check(steps: list[tuple[bool, int, int]]) -> None:
        library, heap = fresh(), Heap()
        for put, region, number in steps:
            if put:
                heap[region] = number
                library.heap_set(region, number)
            elif region in heap:
                heap.remove(region)
                library.heap_remove(region)
            assert library.heap_length() == len(heap)
            if heap:
                assert library.heap_least() == heap.lowest
                assert library.heap_of(heap.lowest) == heap[heap.lowest]
        assert library.failed == 0

    check()


def test_columns_marks_and_lists(fresh: Any) -> None:
    library = fresh()
    assert library.column_of(4) == -3
    library.column_put(4, 10)
    assert (library.column_of(4), library.column_of(5)) == (10, -3)
    for region in (1, 2, 2):
        library.mark(region)
    assert (library.marked(), library.is_marked(2), library.is_marked(3)) == (2, 1, 0)
    library.unmark(2)
    library.unmark(2)
    assert (library.marked(), library.is_marked(2)) == (1, 0)
    library.unmark_all()
    assert (library.marked(), library.is_marked(1)) == (0, 0)
    assert [library.list_bisect_right(n) for n in (0, 1, 3, 8, 10)] == [0, 1, 3, 4, 5]
    assert (library.list_of(-1), library.list_of(0)) == (9, 1)
    assert library.failed == 0

"""A pager may die between any two of its steps, while the program writes: no byte is wrong."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from live.crash_model import PAGES_PER_REGION, SMALL_PER_PAGE, Kernel, Program, patched

pytestmark = pytest.mark.live

System = tuple[str, str, int, bool, bool]
SOAK = bool(os.environ.get("TIDEGATE_SOAK"))
STEP = SMALL_PER_PAGE * PAGES_PER_REGION  # small pages of a region
FILE = 6 * STEP  # the first small page of the file
# eviction, prefetch, bytes of the middle tier, whether large moves are made by threads, huge pages
SYSTEMS = [
    ("lru", "none", 0, False, False),
    ("lru", "region", 0, True, False),
    ("mhpe", "region", 0, False, False),
    ("mhpe", "pattern", 0, True, False),
    ("tournament", "tree", 0, False, False),
    ("lru", "none", 5 * 8192, False, False),
    ("lrm", "region", 0, True, True),
    ("mru", "tree", 0, True, True),
    ("lru", "region", 0, True, True),
    ("tournament", "fdp+rgp", 0, True, True),
]


@pytest.fixture(autouse=True)
def pagers_are_collected() -> Iterator[None]:
    """They hold descriptors, and some died in the middle of something."""
    yield
    gc.collect()


@contextlib.contextmanager
def program(
    eviction: str, prefetch: str, middle: int, in_threads: bool, huge: bool
) -> Iterator[tuple[Kernel, Program]]:
    kernel = Kernel(huge)
    with patched(kernel, in_threads):
        one = Program(kernel, eviction, prefetch, middle)
        try:
            yield kernel, one
        finally:
            one.close()


def play(one: Program) -> None:
    """Write, sample, evict, restore and flush."""
    value = 1
    for small in (
        0,
        1,
        STEP,
        2 * STEP,
        3,
        FILE,
        FILE + 2,
        FILE + STEP,
        0,
        1,
        STEP + 3,
        5,
        FILE + 1,
    ):
        value += 1
        one.write(small, value)
        one.check((small + 2) % FILE)
    one.verb("flush")
    for small in (FILE, FILE + 1, 0, 2 * STEP, FILE + STEP):
        value += 1
        one.write(small, value)
    one.verb("far", 0)
    one.write(2, 99)
    one.verb("not-far", 0)
    one.verb("pin", STEP)
    one.write(STEP + 1, 98)
    one.verb("unpin", STEP)
    one.verb("prefetch", 3 * STEP)
    for small in (4 * STEP, 4 * STEP + 3):
        one.write(small, 97)
    one.discard(4 * STEP)
    one.check(4 * STEP)
    for small in range(3 * STEP, 5 * STEP):  # in order: the pager lets more through than one page
        one.write(small, 96)
    one.check_all()


def let_a_second_thread_write(one: Program, kernel: Kernel) -> None:
    """It writes to every page that it can, in front of every step."""

    def between() -> None:
        for small in (0, 1, 2, 3, STEP + 1, 2 * STEP, FILE, FILE + 1, FILE + STEP):
            one.write_if_possible(small, kernel.steps % 251)

    kernel.between = between


@pytest.mark.slow
@pytest.mark.parametrize("with_writer", [False, True])
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: "-".join(map(str, s)))
def test_a_pager_may_die_at_any_step(system: System, with_writer: bool) -> None:
    """At any of some 600 steps; the short form takes every 29th of them."""
    die_at, most = -1, 1
    while die_at < most:
        with program(*system) as (kernel, one):
            if with_writer:
                let_a_second_thread_write(one, kernel)
            kernel.die_at = die_at
            play(one)
            most = max(most, kernel.steps)
        die_at += 1 if SOAK else 29
    assert most > 200


ACTIONS = st.tuples(
    st.sampled_from(
        ["write"] * 6 + ["check"] * 4 + ["flush", "far", "not-far", "prefetch", "settle"]
    ),
    st.integers(0, 94),
    st.integers(1, 250),
)


@pytest.mark.slow
@settings(
    max_examples=2000 if SOAK else 60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    system=st.sampled_from(SYSTEMS),
    actions=st.lists(ACTIONS, min_size=5, max_size=60),
    deaths=st.lists(st.integers(1, 150), max_size=5),
    other=st.lists(st.integers(0, 94), max_size=4),
)
def test_any_history_with_any_deaths(
    system: System, actions: list[tuple[str, int, int]], deaths: list[int], other: list[int]
) -> None:
    with program(*system) as (kernel, one):
        to_die = list(deaths)

        def between() -> None:
            if to_die and kernel.steps > kernel.die_at:
                kernel.die_at = kernel.steps + to_die.pop()
            for number in other:
                one.write_if_possible(one.small[number % len(one.small)], kernel.steps % 251)

        kernel.between, kernel.die_at = between, 0
        for name, number, value in actions:
            small = one.small[number % len(one.small)]
            if name == "write":
                one.write(small, value)
            elif name == "check":
                one.check(small)
            else:
                one.verb(name, small)
        one.check_all()

"""Functions that are compiled into their callers."""

from __future__ import annotations

import subprocess
import sys

import numba
import pytest

from tidegate.compiled.jit import jit, jit_apart, jit_bare, jit_inner
from tidegate.compiled.linking import LinkedLibrary

NUMBER = 7


@jit_bare
def lowest(x):
    return x // NUMBER


@jit_inner
def lower(x):
    return lowest(x) + 1


@jit_inner
def failing(x):
    if x < 0:
        raise ValueError("x is negative")
    return lower(x) + lowest(x + NUMBER)


@jit
def entry(x):
    return failing(x) * 2


@jit
def entry_of_entries(x):
    return entry(x) + lowest(x)


@numba.njit
def outsider(x):  # a caller that Numba compiles by itself
    return lower(x)


def by_hand(x):
    return (x // 7 + 1 + (x + 7) // 7) * 2


@pytest.mark.parametrize("x", [0, 6, 7, 1000])
def test_results_are_those_of_python(x):
    assert entry(x) == by_hand(x)
    assert entry_of_entries(x) == by_hand(x) + x // 7
    assert outsider(x) == x // 7 + 1


def test_a_linked_function_can_raise():
    with pytest.raises(ValueError, match="x is negative"):
        entry(-1)


def test_linked_functions_have_no_machine_code_of_their_own():
    entry(1)
    for function in (lowest, lower, failing):
        for overload in function.overloads.values():
            assert isinstance(overload.library, LinkedLibrary)
            assert overload.library.get_pointer_to_function("anything") == 0


@pytest.mark.slow
def test_an_entry_point_from_the_cache_needs_no_linked_function(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from tidegate.compiled.jit import jit, jit_inner\n"
        "@jit_inner\ndef inner(x):\n"
        "    if x < 0:\n        raise ValueError('no')\n    return x + 1\n"
        "@jit\ndef outer(x):\n    return inner(x)\n"
        "assert outer(1) == 2\n"
        "try:\n    outer(-1)\nexcept ValueError as error:\n    assert str(error) == 'no'\n"
        "print(sum(outer.stats.cache_hits.values()), len(inner.overloads))\n"
    )
    command = [sys.executable, str(tmp_path / "mine.py")]
    said = [subprocess.run(command, capture_output=True, text=True, cwd=tmp_path) for _ in "ab"]
    assert [s.stdout.split() for s in said] == [["0", "1"], ["1", "0"]], said[0].stderr


def test_constants_share_one_code():
    @jit_bare
    def plus(x, more, twice):
        return x + more + more if twice else x + more

    @jit
    def sums(x):
        return plus(x, 1, True), plus(x, 2, False), plus(x, x, x > 0)

    assert sums(5) == (7, 7, 15)
    assert len(plus.overloads) == 1


def test_only_what_asks_for_it_is_inlined():
    """Numba would hand the wish on to all that a function calls."""

    @jit_apart
    def called(x):
        return x * 3

    @jit_inner
    def inlined(x):
        return called(x) + 1

    @jit
    def entry(x):
        return inlined(x)

    assert entry(2) == 7
    for function, forced in ((called, False), (inlined, True)):
        (overload,) = function.overloads.values()
        assert ("alwaysinline" in overload.library.get_llvm_str()) == forced

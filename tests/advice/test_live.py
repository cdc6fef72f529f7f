"""Advice on NumPy scripts."""

from __future__ import annotations

import os

import pytest

import tidegate
from tidegate.advice.live import EVICTIONS, LiveAdvice, advise_live
from tidegate.live.transfer.userfault import Userfault

MIB = 1 << 20

LOOP = """
import numpy as np
a = np.ones((24, 1 << 18))  # 48 MiB
for _ in range(4):
    for row in a:
        row += 1
print("done")
"""


def advice(**moved: int) -> LiveAdvice:
    """Advice at 32 MiB where policies move so many MiB; with twice the RAM nothing moves."""
    here = {name: size * MIB for name, size in moved.items()}
    return LiveAdvice(
        "mine.py", 32 * MIB, 48 * MIB, {32 * MIB: here, 64 * MIB: dict.fromkeys(here, MIB)}
    )


def test_the_policy_that_moves_least_is_taken():
    assert advice(lru=200, mru=100, loop=150).best == "mru"


def test_the_default_is_kept_where_it_is_as_good():
    assert advice(lru=200, mru=100, loop=104).best == "loop"


def test_enough_ram_is_where_more_saves_little():
    assert advice(lru=200, mru=100).enough == 64 * MIB
    assert advice(lru=1, mru=1).enough == 32 * MIB


def test_the_code_is_python_and_says_the_advice():
    code = advice(lru=200, mru=100).code()
    compile(code, "arena.py", "exec")
    assert 'tidegate.Arena(near="32MiB", eviction="mru"' in code


@pytest.mark.slow
@pytest.mark.live
def test_a_loop_over_too_much_is_no_task_for_lru(tmp_path, monkeypatch, capfd):
    """48 MiB, four times, in 32 MiB: LRU reads everything again, MRU a part of it."""
    try:
        os.close(Userfault.open()[0].fd)
    except tidegate.TidegateError as error:
        pytest.skip(f"live memory does not work here: {error}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(LOOP)
    found = advise_live("mine.py", 32 * MIB, cache=False)
    here = found.moved[32 * MIB]
    assert set(here) == set(EVICTIONS)
    assert here["mru"] < here["lru"]
    assert found.best != "lru"
    assert "done" in capfd.readouterr().err  # the script's own output

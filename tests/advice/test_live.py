"""Advice on NumPy scripts."""

from __future__ import annotations

import os

import pytest

import tidegate
from tidegate.advice.live import EVICTIONS, RUNS, LiveAdvice, Measured, advise_live
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


def advice(more: int = 1, **moved: int | None) -> LiveAdvice:
    """Advice at 32 MiB where policies move so many MiB, or were stopped; and with twice the RAM."""
    runs = {n: None if m is None else Measured(m * MIB, 1.0, 9) for n, m in moved.items()}
    return LiveAdvice("mine.py", 32 * MIB, runs, Measured(more * MIB, 1.0, 9))


def test_the_policy_that_moves_least_is_taken():
    assert advice(lru=200, mru=100, loop=150).best == "mru"


def test_the_default_is_kept_where_it_is_as_good():
    assert advice(lru=200, mru=100, loop=104).best == "loop"


def test_a_policy_that_was_stopped_is_not_taken():
    found = advice(lru=200, loop=None)
    assert found.best == "lru"
    assert found.table().rows[1][:2] == ["loop", "stopped"]
    assert found.to_data()["runs"]["loop"] is None


def test_more_ram_is_named_where_it_moves_less():
    assert "With 64.0 MiB it moved 1.00 MiB" in " ".join(advice(lru=200).sentences())
    assert "64.0 MiB move no less" in " ".join(advice(lru=200, more=199).sentences())


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
    steps = []
    found = advise_live("mine.py", 32 * MIB, lambda: steps.append(1))
    assert set(found.runs) == set(EVICTIONS)
    assert len(steps) == RUNS
    lru, mru = found.runs["lru"], found.runs["mru"]
    assert lru is not None
    assert mru is not None
    assert mru.moved < lru.moved
    assert found.best not in ("lru", "lrm")
    assert found.more.moved < found.measured.moved  # all fits in 64 MiB
    assert "done" in capfd.readouterr().err  # the script's own output

"""Cached compiled code."""

from __future__ import annotations

import os
import shutil
import time

from tidegate.compiled import jit

DAY = 24 * 3600


def test_old_states_go_and_those_in_use_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path))
    ages = {
        "now": 0,
        "an hour ago": 3600,
        "this morning": DAY / 2,
        "this noon": DAY / 3,
        "last week": 7 * DAY,
        "long ago": 99 * DAY,
    }
    for name, age in ages.items():
        (tmp_path / "compiled" / name).mkdir(parents=True)
        os.utime(tmp_path / "compiled" / name, (time.time() - age,) * 2)
    mine = jit.compiled_folder.__wrapped__()
    assert {f.name for f in (tmp_path / "compiled").iterdir()} - {mine.rpartition("/")[2]} == {
        "now",
        "an hour ago",
        "this morning",
        "this noon",
    }


def test_a_state_that_is_used_again_is_young_again(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path))
    mine = jit.compiled_folder.__wrapped__()
    os.utime(mine, (0, 0))
    assert jit.compiled_folder.__wrapped__() == mine
    assert os.stat(mine).st_mtime > time.time() - 60


def test_code_that_cannot_be_kept_runs_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "compiled_folder", lambda: str(tmp_path / "kept"))
    function = jit.jit(lambda x: x + 1)
    shutil.rmtree(tmp_path / "kept")
    (tmp_path / "kept").write_text("in the way")
    assert function(1) == 2

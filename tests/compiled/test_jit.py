"""Cached compiled code."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

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


NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
# what others could do to the cache
HOSTILE = {
    "a folder that all can write": lambda folder: folder.chmod(0o777),
    "a folder that a group can write": lambda folder: folder.chmod(0o770),
    "a cache that all can write": lambda folder: folder.parents[1].chmod(0o777),
    "a folder between that all can write": lambda folder: folder.parent.chmod(0o777),
}
FOREIGN = {
    "a folder of another user": lambda folder: os.chown(folder, NOBODY, NOBODY),
    "a cache of another user": lambda folder: os.chown(folder.parents[1], NOBODY, NOBODY),
    "a file of another user": lambda folder: os.chown(folder / "inner" / "code", NOBODY, NOBODY),
}
# compiles and runs a function whose cached code could be replaced
RUN = """
import warnings
warnings.simplefilter("always")
from tidegate.compiled import jit
print(jit.compiled_folder())
def double(n): return 2 * n
print(jit.jit(double)(21))
"""


def with_code(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of compiled code with a file in it."""
    monkeypatch.setenv("TIDEGATE_CACHE", str(cache))
    folder = Path(jit.compiled_folder.__wrapped__())
    (folder / "inner").mkdir()
    (folder / "inner" / "code").write_bytes(b"")
    return folder


def check_refused(folder: Path) -> None:
    with pytest.warns(jit.UntrustedCache, match="others own it or can write there"):
        assert jit.compiled_folder.__wrapped__() is None
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "None\n42\n"), done.stderr
    assert done.stderr.count("UntrustedCache") == 1
    assert [f.name for f in folder.iterdir()] == ["inner"]


@pytest.mark.slow
@pytest.mark.parametrize("harm", HOSTILE.values(), ids=HOSTILE)
def test_code_is_not_taken_from_where_others_can_write(harm, tmp_path, monkeypatch):
    folder = with_code(tmp_path / "cache", monkeypatch)
    assert jit.compiled_folder.__wrapped__() == str(folder)
    harm(folder)
    check_refused(folder)


@pytest.mark.slow
@as_root
@pytest.mark.parametrize("harm", FOREIGN.values(), ids=FOREIGN)
def test_code_of_another_user_is_not_taken(harm, tmp_path, monkeypatch):
    folder = with_code(tmp_path / "cache", monkeypatch)
    folder.chmod(0o755)
    assert jit.compiled_folder.__wrapped__() == str(folder)
    harm(folder)
    check_refused(folder)


def test_the_folder_is_private_whatever_the_umask(tmp_path, monkeypatch):
    before = os.umask(0o002)
    try:
        folder = with_code(tmp_path / "cache", monkeypatch)
        assert jit.compiled_folder.__wrapped__() == str(folder)
        for one in (folder, folder.parent, tmp_path / "cache"):
            assert stat.S_IMODE(one.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_a_cache_in_a_shared_temporary_folder(tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o1777)  # where nobody can take away what others made
    folder = with_code(tmp_path / "cache", monkeypatch)
    assert jit.compiled_folder.__wrapped__() == str(folder)

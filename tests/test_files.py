"""Files appear whole or not at all."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from tidegate.errors import TidegateError
from tidegate.files import cache_folder, write_atomically


@pytest.mark.parametrize("content", ["é\n", "é\n".encode(), lambda path: path.write_text("é\n")])
def test_text_bytes_and_functions_are_written(tmp_path, content):
    for _ in range(2):  # the second time in place of the first
        write_atomically(tmp_path / "file", content)
        assert [p.name for p in tmp_path.iterdir()] == ["file"]
        assert (tmp_path / "file").read_text(encoding="utf-8") == "é\n"


@pytest.mark.parametrize("error", [ValueError("odd"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("old", [None, "old"])
def test_whatever_is_raised_the_old_file_stays(tmp_path, error, old):
    path = tmp_path / "file"
    if old is not None:
        path.write_text(old)

    def breaks(partial: Path) -> None:
        partial.write_text("half")
        raise error

    with pytest.raises(type(error)) as raised:
        write_atomically(path, breaks)
    assert raised.value is error
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == ({"file": old} if old else {})


def test_permissions_are_those_of_open(tmp_path):
    (tmp_path / "plain").write_text("")
    write_atomically(tmp_path / "file", "")
    modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert len(modes) == 1


@pytest.mark.parametrize("where", ["nowhere/file", "folder"])
def test_where_it_cannot_be_written(tmp_path, where):
    (tmp_path / "folder").mkdir()
    with pytest.raises(TidegateError, match=f"cannot write .*{where}: "):
        write_atomically(tmp_path / where, "text")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TidegateError, match=r"cannot write .*file: No space left on device"):
        write_atomically(tmp_path / "file", "text")
    assert not any(tmp_path.iterdir())


def test_the_cache_folder_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("TIDEGATE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "tidegate"


def test_links_in_place_of_half_written_files_are_not_followed(tmp_path, monkeypatch):
    """In a folder that others can write they may guess a name: then nothing is written at all."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    public = tmp_path / "public"
    public.mkdir()
    monkeypatch.setattr("secrets.token_hex", lambda n: "guessed")
    (public / ".t.parquet.guessed.part").symlink_to(precious)
    with pytest.raises(TidegateError, match="cannot write"):
        write_atomically(public / "t.parquet", "new")
    assert precious.read_text() == "mine"
    assert not (public / "t.parquet").exists()


def test_half_written_files_have_names_that_nobody_can_foresee(tmp_path):
    names = []
    for _ in range(2):
        write_atomically(
            tmp_path / "t", lambda path: names.append(path.name) or path.write_text("")
        )
    assert all(re.fullmatch(r"\.t\.[0-9a-f]{16}\.part", name) for name in names)
    assert len(set(names)) == 2
    assert [f.name for f in tmp_path.iterdir()] == ["t"]

"""tidegate doctor: what is here and what is missing, as this machine has it."""

from __future__ import annotations

import shutil
import sys

import pytest

from tidegate.live.transfer.userfault import Userfault


def found(works) -> dict[str, dict]:
    return {f["what"]: f for f in works("doctor", "--json").json}


def test_it_says_what_is_here(works):
    here = found(works)
    assert here["Python"]["found"] == ".".join(map(str, sys.version_info[:3]))
    clang = here["clang, for compile and plan"]
    assert clang["here"] == (shutil.which("clang-19") is not None) or clang["found"]
    assert here["torch, to record PyTorch programs"]["here"] == ("torch" in here_packages())
    assert "to get it" in works("doctor").out


def here_packages() -> set[str]:
    from importlib.metadata import distributions

    return {d.name for d in distributions()}


@pytest.mark.parametrize("missing", ["clang", "userfaultfd", "cache"])
def test_it_says_how_to_get_what_is_missing(works, monkeypatch, tmp_path, missing):
    if missing == "clang":
        monkeypatch.setattr("tidegate.compiler.ir.clang.find_clang", lambda: None)
        what, remedy = "clang, for compile and plan", "apt-get install clang-19"
    elif missing == "userfaultfd":

        def refuse() -> None:
            raise PermissionError("Operation not permitted")

        monkeypatch.setattr(Userfault, "open", refuse)
        what, remedy = "live memory (userfaultfd)", "vm.unprivileged_userfaultfd=1"
    else:
        (tmp_path / "file").touch()
        monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "file" / "cache"))
        what, remedy = "cache", "set TIDEGATE_CACHE"
    one = found(works)[what]
    assert not one["here"]
    assert remedy in one["remedy"]
    assert remedy.split()[0] in works("doctor").out

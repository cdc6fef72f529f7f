"""A user at the command line: in this process, in an empty folder of their own."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli import invoke

SCRIPT = Path(sysconfig.get_path("scripts")) / "tidegate"
SMALL = "cyclic(bytes=16MiB, passes=2)"  # eight regions: a run takes milliseconds


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def csv(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.out)))


Command = Callable[..., Answer]


@pytest.fixture
def small() -> str:
    return SMALL


@pytest.fixture
def tidegate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Command:
    """``tidegate("run", "matmul")`` types that command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def type_in(*words: str) -> Answer:
        capsys.readouterr()
        code = invoke(list(words))
        return Answer(code, *capsys.readouterr())

    return type_in


@pytest.fixture
def works(tidegate: Command) -> Command:
    """The same, for commands that must do what they say, without a word on standard error."""

    def type_in(*words: str) -> Answer:
        answer = tidegate(*words)
        assert (answer.code, answer.err) == (0, "")
        return answer

    return type_in


@pytest.fixture
def refused(tidegate: Command, tmp_path: Path) -> Callable[..., str]:
    """The same, for commands that cannot be carried out: answers the one line they give.

    One line on standard error, exit code 2, nothing on standard output, and every file as it was.
    """

    def type_in(*words: str) -> str:
        before = _files(tmp_path)
        answer = tidegate(*words)
        assert answer.code == 2, answer
        assert answer.out == ""
        assert answer.err.count("\n") == 1, answer.err
        assert answer.err.startswith("tidegate: ")
        assert "Traceback" not in answer.err
        assert _files(tmp_path) == before
        return answer.err

    return type_in


@pytest.fixture
def process(tmp_path: Path) -> Command:
    """The same, as a process of its own."""

    def type_in(*words: str, **how: Any) -> Answer:
        ran = subprocess.run(
            [SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, **how
        )
        return Answer(ran.returncode, ran.stdout, ran.stderr)

    return type_in


def _files(folder: Path) -> dict[Path, bytes]:
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path: path.read_bytes() if path.is_file() else b"" for path in found}

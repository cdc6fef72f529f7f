"""Models are written and read back whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from offloaded import NAMES
from tidegate.compiler import ProgramModel
from tidegate.compiler.ir import clang
from tidegate.compiler.model_file import load, save
from tidegate.compiler.project import model_of_files
from tidegate.errors import TidegateError


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_there_and_back(name: str, model: Callable[[str], ProgramModel], tmp_path: Path) -> None:
    save(model(name), tmp_path / "model.json")
    assert load(tmp_path / "model.json") == model(name)
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "{}",
        '{"tidegate program model": 2}',
        '{"tidegate program model": 2, "source": 2}',
    ],
)
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(
        TidegateError, match="is not a program model; give a file that tidegate compile --out wrote"
    ):
        load(tmp_path / "x.json")


def test_other_versions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"tidegate program model": 999}')
    with pytest.raises(TidegateError, match="of another version"):
        load(tmp_path / "x.json")


def test_nowhere(model: Callable[[str], ProgramModel], tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match="cannot write"):
        save(model("nn"), tmp_path / "no" / "where.json")
    with pytest.raises(TidegateError, match="cannot read"):
        load(tmp_path / "nothing.json")


@pytest.mark.slow
def test_ir_files_in_any_order(model: Callable[[str], ProgramModel], tmp_path: Path) -> None:
    from offloaded import EXAMPLES

    host, device = clang.compile_ir(EXAMPLES / "bfs.c")
    (tmp_path / "one.ll").write_text(device)
    (tmp_path / "two.ll").write_text(host)
    found = model_of_files([tmp_path / "one.ll", tmp_path / "two.ll"])
    assert found.launches == model("bfs").launches


@pytest.mark.parametrize(
    ("name", "expected"),
    [("x.rs", "neither source nor IR"), ("x.ll", "no file"), ("x.c", "no file")],
)
def test_files_that_will_not_do(name: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match=expected):
        model_of_files([tmp_path / name])

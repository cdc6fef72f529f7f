"""tidegate compile, as a person types it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offloaded import EXAMPLES, clang_19
from tidegate.cli.compile import whole_percentages
from tidegate.compiler.model_file import from_data, load


def test_tables_and_graph(works):
    clang_19()
    out = works("compile", str(EXAMPLES / "cfd.c"), "--out", "cfd.json").out
    assert re.search(r"variables .* 20\*side\*side +1100", out)
    assert re.search(r"compute_flux:\d+ → time_step:\d+ 100 %", out)
    assert "saved to cfd.json" in out


def test_json_is_the_saved_file(works):
    clang_19()
    answer = works("compile", str(EXAMPLES / "hotspot.c"), "--out", "model.json", "--json")
    assert from_data(answer.json) == load(Path("model.json"))


def test_options_reach_clang(works):
    clang_19()
    answer = works("compile", str(EXAMPLES / "cfd.c"), "--clang=-DITERATIONS=7", "--json")
    assert {round(launch["frequency"]) for launch in answer.json["launches"]} == {1, 7, 21}


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=9))
def test_percentages_add_up(shares: list[float]) -> None:
    whole = whole_percentages(shares)
    assert sum(whole) == 100
    assert all(
        abs(percent - 100 * share / sum(shares)) < 1
        for percent, share in zip(whole, shares, strict=True)
    )


def test_bad_input(refused):
    assert "'nothing.rs' is neither source nor IR; give files that end in" in refused(
        "compile", "nothing.rs"
    )
    assert "no file: 'nothing.ll'" in refused("compile", "nothing.ll", "--out", "x.json")


@pytest.mark.parametrize("verb", ["compile", "plan"])
def test_what_is_no_program(verb: str, refused, tmp_path: Path) -> None:
    clang_19()
    (tmp_path / "folder.c").mkdir()
    assert "'folder.c' has neither compile_commands.json nor a Makefile" in refused(
        verb, "folder.c"
    )
    (tmp_path / "empty.c").touch()
    assert "'empty.c' has no main; give all files of a program" in refused(verb, "empty.c")
    (tmp_path / "empty.ll").touch()
    assert "'empty.ll' has no main" in refused(verb, "empty.ll")
    (tmp_path / "bad.ll").write_text("garbage")
    assert "'bad.ll' is not LLVM IR" in refused(verb, "bad.ll")
    assert "(line 1:1: error: expected top-level entity)" in refused(verb, "bad.ll")
    (tmp_path / "none.c").write_text("int main(void) { return 0; }")
    assert "'none.c' launches no target region" in refused(verb, "none.c")
    (tmp_path / "wrong.c").write_text("int main(void) { return 0 }")
    assert "'wrong.c' does not compile: wrong.c:1:26: error: expected ';'" in refused(
        verb, "wrong.c"
    )

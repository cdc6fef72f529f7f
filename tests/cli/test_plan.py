"""tidegate plan: its structure, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from offloaded import EXAMPLES, clang_19
from tidegate.cli import invoke

CFD = str(EXAMPLES / "cfd.c")


def test_json_holds_places_actions_and_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    clang_19()
    assert invoke(["plan", CFD, "--near", "64MiB", "--set", "side=900", "--emit", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [p["name"] for p in data["places"]] == [
        "initialize_variables", "copy", "compute_step_factor", "compute_flux", "time_step"
    ]  # fmt: skip
    assert {a["verb"] for p in data["places"] for v in p["visits"] for a in v} <= {"prefetch", "evict", "far", "anywhere"}
    times = {name: run.get("time_ns") for name, run in data["predicted"].items()}
    assert times["explicit"] is None
    assert times["rdm"] < times["um"]


@pytest.mark.parametrize(
    ("form", "call"), [("cuda", "TIDEGATE_PREFETCH((char *)variables"), ("openmp", "enter data map(to : var")]
)
def test_code_asks_at_the_right_launches(form: str, call: str, tmp_path: Path) -> None:
    clang_19()
    header = tmp_path / "plan.h"
    assert invoke(["plan", CFD, "--near", "64MiB", "--set", "side=900", "--emit", form, "--out", str(header)]) == 0
    first, *_ = header.read_text().split("tidegate_before_copy")
    assert call in first  # variables come before the launch that uses them first
    source = tmp_path / ("main.cu" if form == "cuda" else "main.c")
    source.write_text('#include "plan.h"\nint main(void) { return 0; }\n')
    compiler = [shutil.which("nvcc"), "-c"] if form == "cuda" else [clang_19(), "-fopenmp", "-fsyntax-only"]
    if compiler[0] is None:
        pytest.skip("nvcc is not installed")
    done = subprocess.run([*compiler, source.name], cwd=tmp_path, capture_output=True, text=True, check=False)  # type: ignore[list-item]
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("arguments", "said"), [
    (["--set", "side=none"], "whole number"), (["--set", "sides=9"], "sides"),
    (["--near", "1KiB"], "cannot hold one region"),
    (["--placement", "um"], "nothing to plan"), (["--out", "/nowhere/plan.h"], "no folder"),
    (["--emit", "fortran"], "fortran"),
])  # fmt: skip
def test_bad_input_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    clang_19()
    out = tmp_path / "plan.h"
    extra = [] if "--out" in arguments else ["--out", str(out)]
    assert invoke(["plan", CFD, *arguments, *extra]) == 2
    told = capsys.readouterr().err.strip()
    assert said in told
    assert len(told.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_region_graph_is_drawn(tmp_path: Path) -> None:
    clang_19()
    assert invoke(["compile", CFD, "--plot", str(tmp_path / "cfd.svg")]) == 0
    assert "<svg" in (tmp_path / "cfd.svg").read_text()

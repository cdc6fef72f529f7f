"""tidegate advise, as a person types it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from advice.programs import decode
from offloaded import EXAMPLES, clang_19
from tidegate.advice.emit import EMITTERS
from tidegate.cli.advise import KINDS
from tidegate.trace.ops import save_ops


@pytest.fixture
def recording(works) -> Path:
    """A small recording in the folder of the user."""
    return save_ops(decode(layers=6, tokens=2), "step.parquet")


def test_words_then_tables(works, recording):
    out = works("advise", "step.parquet", "--near", "16MiB", "--workers", "1").out
    assert out.startswith("It does not fit. It needs ")
    assert "Take " in out
    for title in ("what memory is worth", "how sure it is", "what costs most"):
        assert title in out


def test_json_has_an_advice_for_each_machine(works, recording):
    found = works(
        "advise",
        "step.parquet",
        "--near",
        "16MiB",
        "--machine",
        "rtx3090-pcie4,gh200",
        "--workers",
        "1",
        "--json",
    ).json
    assert [advice["machine"] for advice in found] == ["rtx3090-pcie4", "gh200"]
    assert all(advice["whole"] for advice in found)


@pytest.mark.slow
def test_a_page_and_code_beside_it(works, recording):
    works(
        "advise",
        "step.parquet",
        "--near",
        "16MiB",
        "--emit",
        "torch,cuda",
        "--out",
        "advice.html",
        "--workers",
        "1",
    )
    assert "<svg" in Path("advice.html").read_text()
    compile(Path("advice.py").read_text(), "advice.py", "exec")
    header = Path("advice.cuh").read_text()
    assert "cudaMemPrefetchAsync" in header
    assert "never run on a GPU" in header
    if nvcc := shutil.which("nvcc"):
        Path("all.cu").write_text('#include "advice.cuh"\nint main() { return 0; }\n')
        done = subprocess.run(
            [nvcc, "-c", "all.cu"], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr


def test_a_source_gets_directives(works):
    clang_19()
    header = works(
        "advise", str(EXAMPLES / "nn.c"), "--near", "16MiB", "--emit", "openmp", "--workers", "1"
    ).out
    assert "#pragma omp requires unified_shared_memory" in header


def test_kinds_of_code_are_listed_once():
    assert [*EMITTERS, "arena"] == list(KINDS)


def test_openmp_needs_no_library(works, refused):
    clang_19()
    said = refused("plan", str(EXAMPLES / "nn.c"), "--near", "16MiB", "--emit", "preload")
    assert "needs a CUDA source whose kernels use memory of cudaMalloc" in said
    assert not list(Path().glob("nn*"))


def test_what_fits_is_said_to_fit(works, recording):
    out = works("advise", "step.parquet", "--near", "1GiB").out
    assert out.startswith("It fits.")
    assert "nothing to do" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.parquet"], "nowhere.parquet"),
        (["step.parquet", "--near", "1KiB"], "near memory must hold at least one region"),
        (["step.parquet", "--near", "lots"], "lots"),
        (["step.parquet", "--machine", "abacus"], "abacus"),
        (["step.parquet", "--emit", "cobol"], "cobol"),
        (["step.parquet", "--emit", "torch,cuda"], "needs --out"),
        (["step.parquet", "--emit", "arena"], "--live"),
        (["step.parquet", "--near", "16MiB", "--emit", "preload"], "needs a CUDA source"),
        (["step.parquet", "--emit", "preload", "--json"], "needs --out"),
        (["step.parquet", "--near", "1GiB", "--emit", "torch"], "so no code is needed"),
        (["step.parquet", "--out", "advice.pdf"], "must end in .html"),
        (["step.parquet", "--set", "n=3"], "--set is for sources"),
        (["step.parquet", "--live"], "step.parquet"),
        pytest.param(["gpt-9000b"], "gpt-9000b", marks=pytest.mark.extra),
    ],
)
def test_mistakes_are_one_line(refused, recording, words, said):
    assert said in refused("advise", *words)
    assert not Path("advice.html").exists()

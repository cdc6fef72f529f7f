"""Emitted CUDA code: prefetches, advice and discards by launch; it compiles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tidegate
from advice.programs import MIB, subject_of, train
from offloaded import clang_19
from tidegate.advice import Simulator, advise_on
from tidegate.advice.emit.headers import emit_cuda
from tidegate.advice.emit.requests import discards
from tidegate.trace.geometry import Geometry
from tidegate.trace.ops import OpTrace

MACHINE = tidegate.load_machine("rtx3090-pcie4")


@pytest.fixture(scope="module")
def header() -> str:
    program = subject_of(train(layers=4))
    return emit_cuda(advise_on(program, MACHINE, 12 * MIB, Simulator(workers=1, cache=False)))


@pytest.mark.closed_form
def test_each_activation_is_discarded_before_the_launch_after_its_last_use():
    found = discards(OpTrace(train(layers=3), Geometry()))
    # three launches forward, three backward: each of those frees the activation it began with
    assert [[a.object for a in actions] for actions in found] == [
        [],
        [],
        [],
        [],
        ["layers.2/mm"],
        ["layers.1/mm"],
        ["layers.0/mm"],
    ]
    assert all(a.whole for actions in found for a in actions)


def test_the_header_discards_what_died(header):
    assert "TIDEGATE_DISCARD((char *)layers_" in header
    assert header.index("TIDEGATE_DISCARDS") < header.index("cudaMemDiscardBatchAsync")


@pytest.mark.extra
@pytest.mark.parametrize("wheel", ["nvidia/cuda_runtime", "triton/backends/nvidia"])
@pytest.mark.parametrize("stream", ["", "-DTIDEGATE_STREAM=beside"])
def test_it_compiles_with_the_headers_of_cuda_12_and_13(header, wheel, stream, tmp_path):
    headers = cuda_headers(wheel)
    (tmp_path / "advice.h").write_text(header)
    beside = "#include <cuda_runtime.h>\nstatic cudaStream_t beside;\n"
    (tmp_path / "all.c").write_text(beside + '#include "advice.h"\n')
    words = [clang_19(), "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", *headers, "all.c"]
    if stream:
        words.append(stream)
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr


def cuda_headers(wheel: str) -> list[str]:
    """Return the options for the headers of a wheel, or skip the test."""
    folders = (Path(place, wheel, "include") for place in sys.path)
    found = next((f for f in folders if (f / "cuda_runtime_api.h").is_file()), None)
    if found is None:
        pytest.skip(f"the headers of {wheel} are not installed: make extras")
    return [f"-I{found}", f"-I{found.parents[1] / 'cuda_nvcc' / 'include'}"]

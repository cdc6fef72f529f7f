"""Triton kernels in the interpreter: touches by formula."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tidegate.cli import invoke
from tidegate.trace import TraceFile

pytest.importorskip("torch", reason="PyTorch is not installed; `make torch` installs it")
pytest.importorskip("triton", reason="Triton is not installed; `make extras` installs it")

SCRIPT = """
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        inside = at < n
        found = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
        tl.store(out + at, found, mask=inside)

    n = 1 << 17
    x, y = torch.ones(n), torch.ones(n)
    out = torch.zeros(n)
    add[(n // 1024,)](x, y, out, n, size=1024)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


def touches(path):
    trace = TraceFile(path)
    (launch,) = trace.launches()
    (segment,) = launch.segments
    return trace, launch.name, segment


@pytest.mark.closed_form
def test_every_program_reads_its_parts_and_writes_one(script, tmp_path):
    out = tmp_path / "k.parquet"
    assert invoke(["record", "triton", str(script), "-o", str(out)]) == 0
    trace, name, segment = touches(out)
    assert name == "add"
    assert segment.blocks == 128
    assert segment.bytes.sum() == 3 * 4 << 17
    assert segment.bytes[segment.write == 1].sum() == 4 << 17
    named = [o for o in trace.objects if o.name.startswith("tensor ")]
    assert len(named) == 3
    per_object = [
        segment.bytes[
            (segment.page >= o.first_page) & (segment.page < o.first_page + o.pages)
        ].sum()
        for o in named
    ]
    assert np.array_equal(per_object, [4 << 17] * 3)


def test_a_script_without_kernels_is_one_line(tmp_path, capsys):
    path = tmp_path / "empty.py"
    path.write_text("x = 1")
    assert invoke(["record", "triton", str(path), "-o", str(tmp_path / "k.parquet")]) == 2
    assert "launched no Triton kernel" in capsys.readouterr().err
    assert not (tmp_path / "k.parquet").exists()

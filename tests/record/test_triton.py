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
    """The trace, its launch's name and blocks, and its pages, writes and bytes."""
    trace, found = TraceFile(path), []
    for launch in trace.launches():
        found += [(launch.name, s) for s in launch.segments]
    columns = [
        np.concatenate([getattr(s, c) for _, s in found]) for c in ("page", "write", "bytes")
    ]
    return trace, {name for name, _ in found}, sum(s.blocks for _, s in found), *columns


@pytest.mark.closed_form
def test_every_program_reads_its_parts_and_writes_one(script, tmp_path):
    out = tmp_path / "k.parquet"
    assert invoke(["record", "triton", str(script), "-o", str(out)]) == 0
    trace, names, blocks, page, write, size = touches(out)
    assert (names, blocks) == ({"add"}, 128)
    assert size.sum() == 3 * 4 << 17
    assert size[write == 1].sum() == 4 << 17
    named = [o for o in trace.objects if o.name.startswith("tensor ")]
    assert len(named) == 3
    per_object = [
        size[(page >= o.first_page) & (page < o.first_page + o.pages)].sum() for o in named
    ]
    assert np.array_equal(per_object, [4 << 17] * 3)


def test_a_script_without_kernels_is_one_line(tmp_path, capsys):
    path = tmp_path / "empty.py"
    path.write_text("x = 1")
    assert invoke(["record", "triton", str(path), "-o", str(tmp_path / "k.parquet")]) == 2
    assert "launched no Triton kernel" in capsys.readouterr().err
    assert not (tmp_path / "k.parquet").exists()

"""Triton kernels in the interpreter: touches by formula."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tidegate.cli import invoke
from tidegate.trace import TraceFile

pytestmark = pytest.mark.extra
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


GRIDS = """
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def tile(x, out, rows, columns, size: tl.constexpr):
        row = tl.program_id(1)
        at = tl.program_id(0) * size + tl.arange(0, size)
        inside = at < columns
        tl.store(out + row * columns + at, tl.load(x + at, mask=inside), mask=inside)

    @triton.jit
    def gather(index, x, out, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        tl.store(out + at, tl.load(x + tl.load(index + at)))

    columns, rows, n = 1000, 9, 2048
    x, out = torch.ones(columns), torch.zeros(rows * columns)
    tile[(triton.cdiv(columns, 64), rows)](x, out, rows, columns, size=64)
    torch.manual_seed(0)
    y, copy = torch.arange(n) * 1.0, torch.zeros(n)
    gather[(n // 16,)](torch.randperm(n), y, copy, size=16)
    assert sorted(copy.tolist()) == y.tolist(), "all programs must have run once"
"""


@pytest.mark.oracle
def test_a_sampled_grid_has_the_touches_of_the_whole_one(tmp_path, capsys):
    path = tmp_path / "grids.py"
    path.write_text(textwrap.dedent(GRIDS))
    recorded = {}
    for most in (20, 10_000):
        out = tmp_path / f"{most}.parquet"
        words = ["record", "triton", str(path), "-o", str(out), "--most-programs", str(most)]
        assert invoke(words) == 0
        recorded[most] = touches(out)[1:]
        said = capsys.readouterr().out.replace("\n", " ")
        assert ("of kernel tile" in said) == ("gather has grids" in said) == (most == 20)
    some, all_of_them = recorded.values()
    assert some[:2] == all_of_them[:2]
    for computed, exact in zip(some[2:], all_of_them[2:], strict=True):
        assert np.array_equal(computed, exact)


def test_few_programs_of_a_large_grid_run(tmp_path):
    """A counter in the script's own memory tells how many did."""
    path = tmp_path / "large.py"
    path.write_text(
        textwrap.dedent(SCRIPT).replace("1 << 17", "1 << 22")
        + "assert 0 < out.sum().item() / 2 / 1024 <= 64, out.sum()\n"
    )
    out = tmp_path / "k.parquet"
    assert invoke(["record", "triton", str(path), "-o", str(out)]) == 0
    _, _, blocks, _, write, size = touches(out)
    assert blocks == 4096
    assert size[write == 1].sum() == 4 << 22

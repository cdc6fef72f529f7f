"""Pinned arrays of read-only files: nothing counts as written, and nothing ends the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from live.test_reliable import SMALL
from live.weights.test_weights import safetensors
from live.writers import kill_pager
from tidegate.live import Arena, load_safetensors

pytestmark = pytest.mark.live


def test_a_read_only_file_can_be_pinned(tmp_path: Path) -> None:
    path, values = tmp_path / "data.bin", np.arange(1 << 19)
    values.tofile(path)
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        a = arena.open(path, "i8")
        with arena.pin(a[:1000]) as part:
            assert (a == values).all()  # others come and go meanwhile
            kill_pager(arena._supervisor.pid)
            assert (part == values[:1000]).all()
        assert (a == values).all()
        arena.flush()
        assert arena.stats()["bytes_out"] == 0
    assert (np.fromfile(path, "i8") == values).all()


def test_weights_can_be_pinned(tmp_path: Path) -> None:
    path, values = tmp_path / "w.safetensors", np.arange(1 << 20, dtype="f4")
    path.write_bytes(safetensors({"w": values}))
    with load_safetensors(path, near="4MiB", span="1GiB", geometry="64KiB/512KiB") as weights:
        with weights.arena.pin(weights["w"][:100000]):
            pass
        assert (weights["w"] == values).all()

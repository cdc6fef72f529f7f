"""The example decoder: the same tokens, whatever memory its weights have."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate.live import load_safetensors

pytestmark = pytest.mark.live

EXAMPLE = Path(__file__).parents[3] / "examples" / "decoder.py"


@pytest.fixture
def decoder() -> Any:
    found = importlib.util.spec_from_file_location("decoder", EXAMPLE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("eviction", ["loop", "lru"])
def test_tokens_do_not_depend_on_memory(decoder: Any, tmp_path: Path, eviction: str) -> None:
    path = tmp_path / "weights.safetensors"
    decoder.make_weights(path, layers=4, width=64)
    with load_safetensors(path, "256KiB", geometry="16KiB/64KiB", eviction=eviction) as weights:
        plain = {name: np.array(array) for name, array in weights.items()}
        read = weights.arena.stats()["bytes_in"]
        tokens = decoder.decode(weights, 6)
        stats = weights.arena.stats()
    assert tokens == decoder.decode(plain, 6)
    assert len(set(tokens)) > 1
    assert stats["evictions"] > 0
    assert stats["bytes_out"] == 0
    size = path.stat().st_size
    assert 0 < stats["bytes_in"] - read <= 7 * size

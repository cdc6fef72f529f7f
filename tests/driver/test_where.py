"""The table of docs/driver.md is what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def script() -> Any:
    spec = importlib.util.spec_from_file_location("table", ROOT / "scripts" / "driver_table.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.slow
def test_the_page_has_the_present_table() -> None:
    made = script()
    page = (ROOT / "docs" / "driver.md").read_text()
    assert made.with_table(page) == page

"""Live memory needs userfaultfd; where there is none, its tests are skipped and say why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.errors import TidegateError
from tidegate.live.userfault import Userfault


def _why_not() -> str:
    try:
        userfault, _ = Userfault.open()
    except TidegateError as error:
        return str(error)
    os.close(userfault.fd)
    return ""


WHY_NOT = _why_not()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if WHY_NOT and Path(__file__).parent in item.path.parents and item.path.name != "test_engine.py":
            item.add_marker(pytest.mark.skip(reason=WHY_NOT))


def _children() -> set[int]:
    """Processes that this one has started and not waited for; other tests may have some, such as pools of workers."""
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Every test ends with no descriptor and no process of its own left."""
    before, had = len(os.listdir("/proc/self/fd")), _children()
    yield
    assert len(os.listdir("/proc/self/fd")) <= before
    assert _children() <= had

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


@pytest.fixture(autouse=True)
def nothing_is_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test ends with no descriptor and no process of its own left."""
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) <= before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)

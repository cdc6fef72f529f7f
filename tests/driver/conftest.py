"""A kernel that takes BPF programs; where there is none, the tests that need it say why."""

from __future__ import annotations

import pytest

from tidegate.driver.kernel import missing


@pytest.fixture(scope="session")
def kernel() -> None:
    """Skip where policies cannot be played to the kernel."""
    if why := missing():
        pytest.skip(why)

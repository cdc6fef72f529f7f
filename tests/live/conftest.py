"""Live memory needs userfaultfd; where there is none, its tests are skipped and say why."""

from __future__ import annotations

import contextlib
import faulthandler
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.errors import TidegateError
from tidegate.live.transfer.userfault import Userfault


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
        if (
            WHY_NOT
            and Path(__file__).parent in item.path.parents
            and item.path.name != "test_engine.py"
        ):
            item.add_marker(pytest.mark.skip(reason=WHY_NOT))


# seconds for a test, however busy the machine; make soak takes a minute for some of its steps
PATIENCE = 300
SOAK = bool(os.environ.get("TIDEGATE_SOAK"))


def _descriptors() -> list[str]:
    """Return open descriptors of the kinds that arenas open."""
    ours = ("userfaultfd", "pidfd", "memfd:tidegate", "pipe:", ".tidegate", "scratch", "/#")
    links = []
    for fd in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own
            links.append(os.readlink(fd))
    return sorted(link for link in links if any(kind in link for kind in ours))


def _children() -> set[int]:
    """Return processes that this one has started and not waited for."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        # a thread that ends meanwhile leaves its children to the others
        with contextlib.suppress(FileNotFoundError):
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


@pytest.fixture(scope="session", autouse=True)
def simulators_are_compiled() -> None:
    """Where nothing is cached that takes longer than any test may."""
    from live.sequences import simulate
    from live.test_middle import simulate as simulate_tiers
    from traces import machine, one_block, reads, run_of

    simulate([0], [1], 2, eviction_spec="lrm")
    simulate_tiers([0], "fifo", "tier-order", 1)
    run_of(one_block(reads([0]), [1]), machine(), 4, eviction="lrm")


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Every test ends, and with no descriptor and no process of its own left.

    A thread that waits for a page runs no Python, so faulthandler's own thread ends a test that
    hangs and prints where it was; its arenas' processes end then, too.
    """
    before, had = _descriptors(), _children()
    faulthandler.dump_traceback_later(PATIENCE * (10 if SOAK else 1), exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    assert _descriptors() == before
    assert _children() <= had

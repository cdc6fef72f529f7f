"""For all tests: hypothesis sets no deadlines, which on a busy machine say nothing of the code.

Ctrl-C is heard: a shell that starts tests in the background has them, and all that they start,
ignore it. A test that hangs fails, so that the others are heard of. Stored runs of an earlier
session are not found: only compiled code is shared. And the collector does not walk through
thousands of collected tests again and again. A failed test runs a second time only if it is marked
``second_try``, with the reason.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from tidegate.compiled.own_process import mark_own_process

PATIENCE = 900  # seconds: the longest test takes 20 on quiet cores

# on CI the same examples every time: what was tried before a landing is what lands
settings.register_profile("tidegate", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("tidegate")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)


mark_own_process()  # what tests compile takes a tenth less

if "TIDEGATE_CACHE" not in os.environ:  # worker processes inherit the folder of their parent
    from tidegate.files import cache_folder

    compiled = cache_folder() / "compiled"
    compiled.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix="tidegate-tests-"))
    (own / "compiled").symlink_to(compiled)
    os.environ["TIDEGATE_CACHE"] = str(own)
    atexit.register(shutil.rmtree, own, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Have one worker more than cores: tests wait for processes a third of their time."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fail a test that hangs."""

    def give_up(number: int, frame: object) -> None:
        pytest.fail(f"it hangs: no end after {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class SecondTry:
    """Run a test marked ``second_try`` again if it fails, and warn: the summary names it."""

    @staticmethod
    def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        mark = item.get_closest_marker("second_try")
        if mark is None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if any(report.failed for report in reports):
            item.warn(pytest.PytestWarning(f"second try of {item.name}: {mark.kwargs['reason']}"))
            item._initrequest()  # type: ignore[attr-defined]  # its fixtures are made anew
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SecondTry())


def pytest_collection_finish() -> None:
    """Keep what collection made out of the collector's walks: all of it lives until the end."""
    gc.collect()
    gc.freeze()

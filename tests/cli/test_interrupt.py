"""Ctrl-C that lands where Python would lose it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tidegate.interrupts import AGAIN, raising_interrupts


class Lost:
    """A Ctrl-C arrives while this is being taken away."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_one_that_is_lost_in_a_del_is_raised_again(capfd: pytest.CaptureFixture[str]) -> None:
    @raising_interrupts()
    def work() -> None:
        lost = Lost()
        del lost
        time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert capfd.readouterr().err == ""


def test_one_that_is_lost_on_the_way_out_does_not_come_twice() -> None:
    class LostAgain:
        def __del__(self) -> None:
            raise ValueError  # whatever a half-done thing says when it is taken away

    @raising_interrupts()
    def work() -> None:
        half_done = LostAgain()
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            del half_done

    with pytest.raises(KeyboardInterrupt):
        work()
    time.sleep(4 * AGAIN)  # no other arrives
    assert not any(isinstance(t, threading.Timer) for t in threading.enumerate())


def test_one_that_comes_out_as_another_error_is_still_one() -> None:
    @raising_interrupts()
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise TypeError("missing 1 required positional argument") from None

    with pytest.raises(KeyboardInterrupt):
        work()


def test_other_errors_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __del__(self) -> None:
            raise ValueError

    @raising_interrupts()
    def work() -> None:
        broken = Broken()
        del broken
        raise TypeError

    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: seen.append(lost.exc_type))
    with pytest.raises(TypeError):
        work()
    assert seen == [ValueError]


def test_everything_is_put_back() -> None:
    before = sys.unraisablehook, signal.getsignal(signal.SIGINT)
    with raising_interrupts():
        pass
    assert (sys.unraisablehook, signal.getsignal(signal.SIGINT)) == before


def test_it_does_nothing_in_other_threads() -> None:
    answers: list[object] = []

    def work() -> None:
        with raising_interrupts():
            answers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [signal.default_int_handler]


def test_one_that_comes_inside_an_exec_of_text_has_the_same_exit_code(tmp_path: Path) -> None:
    """As every dataclass and named tuple does while it is imported."""
    text = "from tidegate import cli\n"
    text += "class Raises:\n    def main(self, words, *how, **more):\n"
    text += "        exec('raise KeyboardInterrupt')\n"
    text += "cli._command = Raises\ncli.main()\n"
    (tmp_path / "typed.py").write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "typed"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (ended.returncode, ended.stderr) == (130, "tidegate: stopped; nothing was written\n")

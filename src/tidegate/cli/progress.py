"""Progress: a bar on standard error, for anything that takes longer than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from tidegate import units
from tidegate.display.tables import printable


class ProgressBar:
    """A counter that shows itself after the first second, where standard error is a terminal."""

    def __init__(self, what: str, total: int | None = None, unit: str = "touches"):
        self._what, self._total, self._unit = what, total, unit
        self._began, self._done = time.monotonic(), 0
        self._shown: Any = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.stop()

    def advance(self, n: int = 1) -> None:
        self._done += n
        if time.monotonic() - self._began < 1 or not sys.stderr.isatty():
            return
        if self._shown is None:
            self._shown = self._show()
        self._shown.update(self._task, completed=self._done, text=self._text())

    def _text(self) -> str:
        rate = self._done / (time.monotonic() - self._began)
        text = f"{units.show_count(self._done)} {self._unit}, {units.show_count(rate)}/s"
        if self._total is None or not rate:
            return text
        left = max(0, self._total - self._done) / rate
        return f"{text}, {units.show_duration(left * 1e9)} left"

    def _show(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
        )
        shown = Progress(
            *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
        )
        self._task = shown.add_task(printable(self._what), total=self._total, text="")
        shown.start()
        return shown

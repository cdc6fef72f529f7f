"""Output of verbs: a table for people, JSON or CSV for programs, a file for a picture.

Standard output and error may be closed, or in an encoding that lacks our signs.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate import units
from tidegate.display.tables import Cell, Table, csv_of, printable
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.experiments import Run

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")]
PlotTo = Annotated[
    Path | None, typer.Option("--plot", help="Also draw it, to a .png, .svg or .html file.")
]


def check(as_json: bool, as_csv: bool, plot: Path | None) -> None:
    """Refuse options that contradict each other and files that cannot be written."""
    if as_json and as_csv:
        raise TidegateError("--json and --csv were both given; give one")
    if plot is not None:
        from tidegate.display.figures import check_output

        check_output(plot)


def user_code() -> AbstractContextManager[Any]:
    """Return the context in which users' classes run: what they print goes to standard error, so
    that it is not among the JSON or CSV of standard output.
    """
    return redirect_stdout(sys.stderr)


def show(
    found: Any,
    data: Any,
    rows: Sequence[dict[str, Any]],
    print_found: Callable[[Any], None],
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
) -> None:
    """Print ``data`` as JSON, ``rows`` as CSV, or a table by ``print_found``; draw a plot first."""
    if plot is not None:
        found.plot(plot)  # before anything is printed: the reader may close the pipe
    if as_json:
        print_json(data)
    elif as_csv:
        print_csv(rows)
    else:
        print_found(found)
        if plot is not None:
            print_text(f"plotted to {plot}")


def print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")


def print_csv(rows: Sequence[dict[str, Any]]) -> None:
    import polars as pl

    sys.stdout.write(csv_of(pl.DataFrame(rows, infer_schema_length=None)))


def terminal_width() -> int | None:
    """Return the columns of the terminal; None where standard output is none, so that what a file
    or a pipe receives does not depend on a window.
    """
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    title: str = "",
    left: int = 1,
    drop: Sequence[str] = (),
) -> None:
    """Print a table; see ``Table`` for the arguments."""
    print_tables([Table(columns, rows, title, left, drop)])


_TONES = {"heading": 1, "reduced": 36}  # bold; cyan


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables that fit the terminal, with an empty line behind each."""
    width = terminal_width()
    plain = width is None or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    for table in tables:
        if not table.title:
            print()
        for line, tone in table.lines(width):
            print(line if plain or tone not in _TONES else f"\x1b[{_TONES[tone]}m{line}\x1b[0m")
        print()


def print_text(text: str) -> None:
    """Print lines of prose, which wrap at words on a terminal. Words are never broken: a name of a
    file can be copied.
    """
    width = terminal_width()
    for line in map(printable, text.splitlines()):
        if width is None:
            print(line)
            continue
        parts = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        print("\n".join(parts))


def write_files(texts: Mapping[str, str], like: Path, notes: Iterable[str]) -> None:
    """Write files that differ from the name ``like`` in their endings; say which, and the notes."""
    from tidegate.files import check_place, write_atomically

    files = {like.with_suffix(ending): text for ending, text in texts.items()}
    for path in files:
        check_place(path)
    for path, text in files.items():
        write_atomically(path, text)
    print_text(f"written to {', '.join(map(str, files))}")
    for note in notes:
        print_text(f"note: {note}")


def print_notes(runs: Sequence[Run]) -> None:
    """Print the notes of runs, each once."""
    for note in dict.fromkeys(note for run in runs for note in run.notes):
        print_text(f"note: {note}")


def print_stored(stored: int, runs: int) -> None:
    """Say how many runs were not computed now, and how to compute them."""
    if stored and runs == 1:
        print_text("from the store; --no-cache computes it anew")
    elif stored:
        print_text(f"{stored} of {runs} runs are from the store; --no-cache computes them anew")


_PLAIN = {
    "█": "#",
    "·": "-",
    "–": "-",
    "—": "-",
    "…": "...",
    "×": "x",
    "→": "->",
    "≥": ">=",
    "µ": "u",
}
_LINES = range(0x2500, 0x2580)  # of tables


def prepare_streams() -> None:
    """Open what is closed, on nothing, and let other encodings show plain signs in place of ours.

    A file that is opened while standard output is closed would get its number, and what is printed.
    """
    codecs.register_error("tidegate-plain", _plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="tidegate-plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    signs = error.object[error.start : error.end]
    return "".join(map(_sign, signs)), error.end


def _sign(sign: str) -> str:
    return _PLAIN.get(sign, "-" if ord(sign) in _LINES else "?")


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

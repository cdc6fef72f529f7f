"""Tables as text and as HTML.

A text table fits the width it is given. Words wrap and bars shrink; then the least important
columns are left out, and a line below names them. No letter is lost: a word is broken only where
it is longer than its column, which happens only if there is nothing left to leave out.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

FULL = 120  # columns of tables that are not for a terminal; none of their columns is left out
_NARROW = 60  # below it tables have no indent and smaller gaps
_COMFORT = 20  # words are not wrapped to less than this while a column can be left out
_LONGEST_FIGURE = 24  # longer cells are words
_BAR, _LEAST_BAR = 16, 6
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins so is code in a spreadsheet
_BREAKS = ",;:/|()=+-_."  # a word that must be broken is broken behind one of these, if it can be


@dataclass(frozen=True)
class ShareBar:
    """A cell that shows a share, from 0 to 1, as a bar."""

    share: float

    def text(self, width: int) -> str:
        return "█" * round(width * self.share)


Cell = str | ShareBar


@dataclass(frozen=True)
class Table:
    """Columns and rows of text. The first ``left`` columns, and those without a heading, hold
    words; the others hold figures, which never wrap.

    ``drop``: the columns to leave out first where room is short, in that order; bars go before
    them, and then the columns from the right. The first two columns that are not bars and not in
    ``drop`` always stay. ``tones``: of each row, by name; a terminal has a colour for some.

    >>> print(Table(["policy", "time"], [["lrm", "606 ms"], ["mru", "9 s"]]).text(40))
    policy    time
    ──────────────
    lrm     606 ms
    mru        9 s
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    left: int = 1
    drop: Sequence[str] = ()
    tones: Sequence[str] = ()

    def text(self, width: int | None = None) -> str:
        """Return the table in lines of at most ``width``; None is for files and pipes."""
        return "\n".join(line for line, _ in self.lines(width))

    def lines(self, width: int | None = None) -> Iterator[tuple[str, str]]:
        """Yield each line and its tone: "heading", that of its row, or none."""
        room = FULL if width is None else max(width, 2)
        shown, widths = self._fit(room, width is not None)
        if self.title:
            yield from ((line, "heading") for line in wrap(self.title, room))
            yield "", ""
        indent, gap = _spaces(room)
        head = [self.columns[i] for i in shown]
        yield from ((line, "heading") for line in self._row(head, shown, widths, indent, gap))
        yield " " * (indent // 2) + "─" * (sum(widths) + gap * (len(widths) - 1) + indent), ""
        tones = self.tones or [""] * len(self.rows)
        for row, tone in zip(self.rows, tones, strict=True):
            cells = [row[i] for i in shown]
            yield from ((line, tone) for line in self._row(cells, shown, widths, indent, gap))
        if hidden := [c for i, c in enumerate(self.columns) if i not in shown and c]:
            yield from ((x, "") for x in wrap(f"not shown here: {', '.join(hidden)}", room))

    def html(self) -> str:
        """Return the table as HTML; all text is escaped."""
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        head = "".join(
            f"<th style='text-align:{self._side(i)}'>{html.escape(column)}</th>"
            for i, column in enumerate(self.columns)
        )
        body = "".join(
            "<tr>" + "".join(self._html_cell(i, cell) for i, cell in enumerate(row)) + "</tr>"
            for row in self.rows
        )
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _html_cell(self, i: int, cell: Cell) -> str:
        if isinstance(cell, ShareBar):
            style = f"background:#0072B2;height:.8em;width:{8 * cell.share:.2f}em"
            return f"<td style='min-width:8em'><div style='{style}'></div></td>"
        return f"<td style='text-align:{self._side(i)}'>{html.escape(cell)}</td>"

    def _side(self, i: int) -> str:
        return "left" if i < self.left or not self.columns[i] else "right"

    # Widths

    def _fit(self, room: int, may_drop: bool) -> tuple[list[int], list[int]]:
        """Return the columns that are shown and their widths."""
        shown, order = list(range(len(self.columns))), self._drop_order()
        indent, gap = _spaces(room)
        margin = indent + indent // 2  # the line below the headings is longer than they are

        def left_over() -> int:
            return room - margin - gap * (len(shown) - 1) - sum(self._least(i) for i in shown)

        while may_drop and left_over() < 0 and order:
            shown.remove(order.pop(0))
        widths = [self._least(i) for i in shown]
        if left_over() >= 0:
            return shown, self._grown(shown, widths, left_over())
        while may_drop and sum(widths) > max(len(widths), room - margin - gap * (len(shown) - 1)):
            widths[widths.index(max(widths))] -= 1
        return shown, widths

    def _drop_order(self) -> list[int]:
        everything = range(len(self.columns))
        bars = [i for i in everything if self._is_bar(i)]
        found = [self.columns.index(name) for name in self.drop if name in self.columns]
        named = [i for i in dict.fromkeys(found) if i not in bars]
        rest = [i for i in everything if i not in (*bars, *named)]
        return [*bars, *named, *reversed(rest[2:])]

    def _grown(self, shown: list[int], widths: list[int], extra: int) -> list[int]:
        """Share ``extra`` among the columns that need more; those that need least come first."""
        needs = sorted((self._most(i) - widths[n], n) for n, i in enumerate(shown))
        for rank, (need, n) in enumerate(needs):
            given = min(need, extra // (len(needs) - rank))
            widths[n] += given
            extra -= given
        return widths

    def _least(self, i: int) -> int:
        """Return the width below which a column should not be: words wrap, figures do not."""
        heading = _longest_word(self.columns[i])
        if self._is_bar(i):
            return max(heading, _LEAST_BAR)
        cells = self._cells(i)
        if not self._holds_words(i):
            return max([heading, *map(cell_width, cells)])
        words = max([heading, *map(_longest_word, cells)])
        return max(words, min(_COMFORT, self._most(i)))

    def _most(self, i: int) -> int:
        if self._is_bar(i):
            return max(cell_width(self.columns[i]), _BAR)
        return max(map(cell_width, (self.columns[i], *self._cells(i))))

    def _holds_words(self, i: int) -> bool:
        longest = max(map(cell_width, self._cells(i)), default=0)
        return self._side(i) == "left" or longest > _LONGEST_FIGURE

    def _is_bar(self, i: int) -> bool:
        return any(isinstance(row[i], ShareBar) for row in self.rows)

    def _cells(self, i: int) -> list[str]:
        return [cell for row in self.rows if isinstance(cell := row[i], str)]

    # Lines

    def _row(
        self, cells: Sequence[Cell], shown: list[int], widths: list[int], indent: int, gap: int
    ) -> Iterator[str]:
        """Yield the lines of one row, as many as its longest cell has."""
        wrapped = [
            [cell.text(w)] if isinstance(cell, ShareBar) else wrap(cell, w)
            for cell, w in zip(cells, widths, strict=True)
        ]
        for n in range(max(map(len, wrapped))):
            texts = [lines[n] if n < len(lines) else "" for lines in wrapped]
            padded = [
                _padded(text, w, right=self._side(i) == "right" and not self._is_bar(i))
                for text, i, w in zip(texts, shown, widths, strict=True)
            ]
            yield (" " * indent + (" " * gap).join(padded)).rstrip()


def _spaces(room: int) -> tuple[int, int]:
    """Return the indent of a table and the gap between its columns."""
    return (2, 3) if room >= _NARROW else (0, 2)


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_width(text))
    return space + text if right else text + space


def _longest_word(text: str) -> int:
    return max(map(cell_width, text.split()), default=0)


def cell_width(text: str) -> int:
    """Return the columns that a text takes on a terminal.

    >>> cell_width("lrm"), cell_width("記憶")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int) -> list[str]:
    """Return a text in lines of at most ``width``, broken at spaces; a word that is longer is
    broken behind punctuation if there is any. Characters that a terminal would obey become spaces.

    >>> wrap("random(seed=1, x=2) is slow", 12)
    ['random(seed=', '1, x=2) is', 'slow']
    """
    lines: list[str] = []
    for word in printable(text).split():
        if lines and cell_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
            continue
        while cell_width(word) > width and len(word) > 1:
            at = _break(word, width)
            lines.append(word[:at])
            word = word[at:]
        lines.append(word)
    return lines or [""]


def printable(text: str) -> str:
    """Return a text with spaces in place of characters that a terminal would obey.

    >>> printable("a\x1b]0;title\x07b")
    'a ]0;title b'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def for_spreadsheets(text: str) -> str:
    """Return a cell of a CSV file that no spreadsheet takes for a formula.

    >>> for_spreadsheets("=HYPERLINK(1)"), for_spreadsheets("lrm")
    ("'=HYPERLINK(1)", 'lrm')
    """
    said = printable(text)
    return f"'{said}" if text.startswith(_FORMULA) else said


def csv_of(frame: pl.DataFrame) -> str:
    """Return a frame as CSV; cells of text are safe for spreadsheets and terminals."""
    import polars as pl
    from polars import selectors as cs

    safe = frame.with_columns(cs.string().map_elements(for_spreadsheets, return_dtype=pl.String))
    return safe.rename(for_spreadsheets).write_csv()


def _break(word: str, width: int) -> int:
    """Return where a word is broken that is longer than ``width``: at least behind one letter."""
    fits = 1
    while fits < len(word) and cell_width(word[: fits + 1]) <= width:
        fits += 1
    behind = [i + 1 for i in range(fits) if word[i] in _BREAKS]
    return behind[-1] if behind else fits

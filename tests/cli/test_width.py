"""What verbs print fits the terminal, at any width; a pipe always gets the same."""

from __future__ import annotations

import os
import pty
import struct
import sys
from fcntl import ioctl
from termios import TIOCSWINSZ

import polars as pl
import pytest
from matplotlib.figure import Figure

from tidegate.cli import output, reproduce
from tidegate.papers.ledger import Ledger, load_claims
from tidegate.papers.report import Reproduction, make_exhibit

WIDTHS = [20, 33, 60, 80, 97, 120, 200]
VERBS = [
    ("compare", "cyclic(bytes=16MiB, passes=2)", "-e", "lrm,random(seed=1|2)"),
    ("compare", "cyclic(bytes=8MiB)", "--tiering", "bam,tier-order", "--near", "1MiB"),
    ("run", "cyclic(bytes=16MiB, passes=2)", "--system", "lru"),
    ("run", "cyclic(bytes=8MiB)", "--tiering", "tier-reuse", "--near", "1MiB"),
    ("list", "policies"),
    ("list", "machines"),
    ("list", "systems"),
    ("list", "eviction", "tournament"),
    ("analyze", "cyclic(bytes=16MiB)", "--shards", "50%"),
    ("analyze", "cyclic(bytes=16MiB)", "--leu"),
    ("trace", "info", "zipf(bytes=16MiB, touches=200000)"),
]


def wide(text: str, width: int) -> list[str]:
    """Return the lines that are too wide, but for words that are too long by themselves: prose
    does not break them.
    """
    return [line for line in text.splitlines() if len(line) > width and " " in line.strip()]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_verb_fits_every_width(works, monkeypatch, words):
    monkeypatch.setenv("NO_COLOR", "1")
    for width in WIDTHS:
        monkeypatch.setattr(output, "terminal_width", lambda width=width: width)
        assert wide(works(*words).out, width) == []


def test_a_reproduction_fits(monkeypatch, capsys):
    monkeypatch.setenv("NO_COLOR", "1")
    claims = load_claims("observuvm")
    findings = tuple(c.unmeasured("there was no time " * 9) for c in claims.claims)
    table = pl.DataFrame(
        {"application": ["MM", "2DC"]} | {f"policy {i}": [0.1, 2] for i in range(9)}
    )
    exhibit = make_exhibit("observuvm", "Figure 9", "times", table, Figure, ["a note " * 30])
    done = Reproduction("observuvm", "title " * 30, "setup", Ledger(claims, findings), (exhibit,))
    for width in WIDTHS:
        monkeypatch.setattr(output, "terminal_width", lambda width=width: width)
        reproduce._show(done)
        out = capsys.readouterr().out
        assert wide(out, width) == []
        assert "NOT" in out


def test_live_top_fits(works, monkeypatch):
    from tidegate.live.arena import running

    arena = {
        "process": 123456,
        "eviction": "tournament(policies=lru+lfu+cp)",
        "prefetch": "fdp+rgp",
        "hit_share": 0.5,
        "faults_per_second": 12345.6,
        "replaced": {},
        "objects": [{"name": "a rather long name of an array"}] * 3,
        **dict.fromkeys(("near_bytes", "bytes", "evictions", "bytes_in", "bytes_out"), 1 << 30),
    }
    monkeypatch.setattr(running, "running_arenas", lambda: [arena])
    monkeypatch.setattr(running, "rates", lambda before, after: after)
    monkeypatch.setenv("NO_COLOR", "1")
    for width in WIDTHS:
        monkeypatch.setattr(output, "terminal_width", lambda width=width: width)
        out = works("live", "top", "--seconds", "0").out
        assert wide(out, width) == []
        assert "123456" in out
        assert "faults/s" in out or width < 60


def on_a_terminal(width: int, *words: str) -> str:
    """Return what a command prints on a terminal of this width."""
    process, terminal = pty.fork()
    if process == 0:
        ioctl(1, TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        os.environ.pop("COLUMNS", None)
        os.environ["TERM"] = "dumb"
        os.execv(sys.executable, [sys.executable, "-m", "tidegate", *words])
    printed = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        printed += part
    os.close(terminal)
    assert os.waitpid(process, 0)[1] == 0, printed
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_a_real_terminal_is_measured():
    for width in (80, 40):
        out = on_a_terminal(width, "list", "systems")
        assert wide(out, width) == []
        assert max(map(len, out.splitlines())) > width - 20


def test_a_pipe_gets_the_same_at_any_width(works, monkeypatch):
    words = ("compare", "cyclic(bytes=16MiB, passes=2)", "-e", "lrm,mru", "--no-cache")
    plain = works(*words).out
    monkeypatch.setenv("COLUMNS", "20")
    assert works(*words).out == plain
    for column in ("time", "against lrm", "faults", "evictions", "in", "out", "█"):
        assert column in plain


def test_sentences_of_the_list_are_whole(works):
    rows = works("list", "policies", "--json").json
    assert [r["policy"] for r in rows if not r["what"].endswith(".")] == []

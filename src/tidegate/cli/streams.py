"""Standard output and error as they may be: closed, or in an encoding that lacks our signs."""

from __future__ import annotations

import codecs
import os
import sys

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

"""Reproductions: one module per paper, each with the same three names.

    Setup       what can be varied; ``Setup()`` is the paper's own, ``Setup.quick()`` a reduced one
    size        how many runs a setup takes, for a progress bar
    reproduce   runs them, and answers a ``Reproduction``: figures as tables and pictures, and the ledger

The parts they share: ``results`` (runs by application and system), ``means``, ``bars``, ``causes``,
``kept`` (traces), and ``readings`` (what a paper leaves open, and in how many of its readings a
claim holds).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tidegate.errors import UnknownName

# imported when asked for
PAPERS = {
    name: f"tidegate.reproduce.{name}" for name in ("observuvm", "cppe", "gmt", "hybrid", "leu")
}


def find_paper(name: str) -> Any:
    """The module that reproduces a paper."""
    if name not in PAPERS:
        raise UnknownName("paper", name, PAPERS)
    return import_module(PAPERS[name])

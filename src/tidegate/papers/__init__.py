"""Reproductions of papers. A paper is a folder here, and nothing outside the folder names it.

    setup.py     ``Setup``: what can be varied; its fields are the options of the paper's command
    paper.py     ``PAPER``: the grid of runs, the findings, the exhibits and the open readings
    claims.toml  the claims, and the paper's words about its figures

``tidegate.papers.paper`` has the protocol and runs it.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.errors import UnknownName

if TYPE_CHECKING:
    from tidegate.papers.paper import Paper
    from tidegate.papers.setup import Setup


@cache
def paper_names() -> tuple[str, ...]:
    """Return the names of all papers, the newest first."""
    return tuple(sorted(_folders(), key=lambda name: -find_setup(name).year))


def find_setup(name: str) -> type[Setup]:
    """Return the ``Setup`` of a paper. Nothing heavy is imported."""
    return _import(name, "setup").Setup  # type: ignore[no-any-return]


def find_paper(name: str) -> Paper[Any]:
    """Return a paper."""
    return _import(name, "paper").PAPER  # type: ignore[no-any-return]


def paper_folder(name: str) -> Path:
    """Return the folder of a paper."""
    return Path(_import(name, "setup").__file__).parent


def _import(name: str, module: str) -> Any:
    if name not in _folders():
        raise UnknownName("paper", name, _folders())
    return import_module(f"{__name__}.{name}.{module}")


@cache
def _folders() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]

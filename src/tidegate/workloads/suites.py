"""Suites: the applications that a paper evaluates, at the paper's sizes.

>>> suite("observuvm", scale=1 / 8)[:2]
['MM(bytes=1355599053)', 'GMM(bytes=1610612736)']
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from tidegate.errors import TidegateError, UnknownName
from tidegate.options import Option
from tidegate.workloads.program import footprint

# A reading: the papers write GB and mean GiB. Only so has Table II of ObservUVM round problems: BLK
# 2^29 options, GMM n = 32768, 2DC n = 49152 and MM n = 30000 come out at 10.0, 12.0, 18.0 and 10.1.
GB = 2**30


@dataclass(frozen=True)
class Member:
    """One application of a suite: its registered name, its footprint, and their source."""

    name: str
    bytes: int
    source: str
    kind: str = ""  # the paper's name for its way of using memory, if it has one
    # bytes of the memory it is run in, if the paper gives that and not a share of the footprint
    near: int = 0
    reuse: float = 0.0  # the share of page visits that are not first ones, if the paper gives it
    moved: int = 0  # bytes read by the paper's baseline, if the paper gives them


def suite(name: str, scale: float = 1.0) -> list[str]:
    """Return the workloads of a suite as specs, each at ``scale`` times the paper's size.

    Scaling keeps the ratios of a workload's objects.
    """
    if not scale > 0:
        raise TidegateError(f"scale must be positive, got {scale}; give one such as 1 or 0.125")
    return [f"{member.name}(bytes={round(member.bytes * scale)})" for member in members(name)]


@cache
def suites() -> tuple[str, ...]:
    """Return the names of the papers that have a suite: ``MEMBERS`` in their applications."""
    papers = importlib.import_module("tidegate.papers").__path__
    return tuple(
        paper.name
        for paper in pkgutil.iter_modules(papers)
        if paper.ispkg and hasattr(_import(paper.name), "MEMBERS")
    )


def members(name: str) -> list[Member]:
    """Return the applications of a suite, in the paper's order."""
    found: list[Member] = _applications(name).MEMBERS
    return found


def machine_of(application: str) -> str:
    """Return the machine of the paper that has this application, "" if there is none.

    >>> machine_of("cppe-NW"), machine_of("stream")
    ('gpgpusim-28sm', '')
    """
    for name in suites():
        if any(member.name == application for member in members(name)):
            return getattr(_applications(name), "MACHINE", "")
    return ""


def published_bytes(application: str) -> int:
    """Return the footprint that a suite's paper gives for one of its applications.

    >>> published_bytes("2DC")
    19327352832
    """
    return next(m.bytes for name in suites() for m in members(name) if m.name == application)


def published_footprint(application: str, help: str) -> Option[int]:
    """Return the option ``bytes`` of an application, with the paper's footprint as its default."""
    return footprint(published_bytes(application), help)


def _applications(name: str) -> ModuleType:
    """Return a paper's applications: ``MEMBERS``, and ``MACHINE`` if they run on two tiers."""
    if name not in suites():
        raise UnknownName("suite", name, suites())
    found = _import(name)
    assert found is not None
    return found


def _import(paper: str) -> ModuleType | None:
    name = f"tidegate.papers.{paper}.applications"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None

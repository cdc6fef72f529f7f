"""What an expression is while it is emitted: its text in C, and its kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tidegate.policy_compiler.source import CannotCompile


@dataclass(frozen=True)
class Number:
    """A whole number of 64 bits; ``truth`` if it is 0 or 1."""

    code: str
    truth: bool = False


@dataclass(frozen=True)
class Maybe:
    """A region, 0 or more, or None, which is -1."""

    code: str


@dataclass(frozen=True)
class Share:
    """A fraction that start() left and nothing changes, times a number: ``of``."""

    fraction: Fraction
    of: str = "1"


@dataclass(frozen=True)
class Structure:
    """A structure of the policy: ``name`` in C; ``which``: of Orders, the number of the order."""

    kind: str
    name: str
    which: str = "0"
    count: int = 1
    fixed: bool = False


@dataclass(frozen=True)
class Shown:
    """Something of the memory: ``observed``, ``resident``, ``memory`` or ``geometry``."""

    what: str


@dataclass(frozen=True)
class Faulted:
    """The pages of a region that faulted."""

    region: str


@dataclass(frozen=True)
class Part:
    """A policy that this one is made of, by a number in C; ``known`` if the emitter knows it."""

    number: str
    known: int = -1


@dataclass(frozen=True)
class Parts:
    """All of them."""


@dataclass(frozen=True)
class Walk:
    """An iteration: over an order, a range, faulted pages or parts; what islice cut off it."""

    over: Any
    backwards: bool = False
    skip: str = "0"
    stop: str = ""
    counted: bool = False  # enumerate


@dataclass(frozen=True)
class Range:
    """The numbers of a range with steps of one."""

    first: str
    stop: str


def parameters(value: Any) -> list[str]:
    """Return the numbers in C that a value is made of, to be given to a function."""
    match value:
        case Number(code=code) | Maybe(code=code):
            return [code]
        case Range(first, stop):
            return [first, stop]
        case Structure(kind="order", which=which):
            return [which]
        case Structure() | Shown():
            return []
        case Faulted(region):
            return [region]
    raise CannotCompile("an iteration cannot be given to a function; give it the order itself")


def renamed(value: Any, name: str) -> Any:
    """Return the value as a function sees it, whose argument is ``name``."""
    match value:
        case Number(truth=truth):
            return Number(name, truth)
        case Maybe():
            return Maybe(name)
        case Range():
            return Range(f"{name}_first", f"{name}_stop")
        case Structure(kind="order"):
            return replace(value, which=name)
        case Faulted():
            return Faulted(name)
    return value


Value = Number | Maybe | Share | Structure | Shown | Faulted | Part | Parts | Walk | Range

"""Comparisons of integers: their kinds, opposites and mirror images."""

from __future__ import annotations

import re

from tidegate.compiler.ir.module import Instruction

OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_PREDICATE = re.compile(r"\bicmp (?:samesign )?([su]?)(eq|ne|lt|le|gt|ge)\b")


def predicate_of(comparison: Instruction) -> tuple[str, str] | None:
    """Return (sign, kind) of an icmp: "s", "u" or "", and "lt", "eq" and so on."""
    found = _PREDICATE.search(comparison.text)
    return (found[1], found[2]) if found is not None else None

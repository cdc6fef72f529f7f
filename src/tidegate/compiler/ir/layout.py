"""Sizes of types and byte offsets within them, computed from their text: llvmlite does not show the
type that a GEP steps through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

POINTER_BYTES = 8

_FLOATS = {"half": 2, "bfloat": 2, "float": 4, "double": 8}
_FLOATS |= dict.fromkeys(("x86_fp80", "fp128", "ppc_fp128"), 16)
_SEQUENCE = re.compile(r"[\[<](?:vscale x )?(\d+) x (.+)[\]>]$")
_DEFINITION = re.compile(r'^%("?[\w.:$ ,<>*&~()-]+"?) = type (<?\{.*\}>?)$', re.M)
_GEP = re.compile(r"(?:= )?getelementptr (?:inbounds |nuw |nusw )*(.+)$")

Structs = Mapping[str, str]
"""Name → body, as in `%name = type { i32, ptr }`."""


def struct_bodies(text: str) -> dict[str, str]:
    """Return the structures that a module defines."""
    return {name.strip('"'): body for name, body in _DEFINITION.findall(text)}


def gep_offset(text: str, structs: Structs) -> int | None:
    """Return how many bytes a printed GEP adds; None if an index is not a constant."""
    found = _GEP.search(text.split(", !")[0])
    if found is None:
        return None
    stepped, _, *indices = split(found[1])
    constants = [re.fullmatch(r"i\d+ (-?\d+)", index) for index in indices]
    if any(c is None for c in constants):
        return None
    first, *rest = [int(c[1]) for c in constants if c is not None]
    total = first * size_and_alignment(stepped, structs)[0]
    for index in rest:
        stepped, by = _step(stepped, index, structs)
        total += by
    return total


def size_and_alignment(type_: str, structs: Structs) -> tuple[int, int]:
    """Return a type's size and alignment in bytes, as on every 64-bit machine that offloads."""
    if type_.startswith("ptr"):
        return POINTER_BYTES, POINTER_BYTES
    if type_ in _FLOATS:
        return _FLOATS[type_], _FLOATS[type_]
    if type_.startswith("i") and type_[1:].isdigit():
        whole = 1 << max(0, (int(type_[1:]) + 7) // 8 - 1).bit_length()
        return whole, min(whole, 16)
    if sequence := _SEQUENCE.match(type_) if not type_.startswith("<{") else None:
        size, alignment = size_and_alignment(sequence[2], structs)
        return int(sequence[1]) * size, alignment
    offsets, end, alignment = _fields(type_, structs)
    return (_up(end, alignment), alignment) if offsets else (0, 1)


def array_bytes(type_: str, structs: Structs) -> int:
    """Return the size of an array or a structure; 0 for a scalar, and without a declared length.

    >>> array_bytes("[100 x [2 x double]]", {}), array_bytes("i32", {})
    (1600, 0)
    """
    return size_and_alignment(type_, structs)[0] if type_.startswith(("[", "{", "<{", "%")) else 0


def split(text: str) -> list[str]:
    """Return the parts between commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[{<(") - (letter in "]}>)")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def _step(type_: str, index: int, structs: Structs) -> tuple[str, int]:
    """Return the type at an index within a type, and its offset."""
    sequence = _SEQUENCE.match(type_) if not type_.startswith("<{") else None
    if sequence:
        return sequence[2], index * size_and_alignment(sequence[2], structs)[0]
    return split(_body(type_, structs)[0])[index], _fields(type_, structs)[0][index]


def _fields(type_: str, structs: Structs) -> tuple[list[int], int, int]:
    """Return where each field of a structure begins, where the last ends, and the alignment."""
    body, packed = _body(type_, structs)
    place: Callable[[int, int], int] = (lambda at, _: at) if packed else _up
    offsets, at, widest = [], 0, 1
    for field in split(body):
        size, alignment = size_and_alignment(field, structs)
        at = place(at, alignment)
        offsets.append(at)
        at += size
        widest = widest if packed else max(widest, alignment)
    return offsets, at, widest


def _body(type_: str, structs: Structs) -> tuple[str, bool]:
    text = structs.get(type_[1:].strip('"'), "{}") if type_.startswith("%") else type_
    packed = text.startswith("<{")
    return text.strip("<>").strip()[1:-1], packed


def _up(at: int, alignment: int) -> int:
    return -(-at // alignment) * alignment

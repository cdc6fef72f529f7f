"""Sizes of types and byte offsets within them, computed from their text: llvmlite does not show the
type that a GEP steps through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

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
    total = 0
    for by, index in gep_steps(text, structs) or [(0, None)]:
        if index is None:
            return None
        total += by * index
    return total


def gep_steps(text: str, structs: Structs) -> list[tuple[int, int | None]] | None:
    """Return what each index of a printed GEP adds: (bytes, how often), None for an index that is
    not a constant. None if the text is no GEP, or not a whole one.

    >>> gep_steps("%p = getelementptr [8 x { i32, i32 }], ptr %a, i64 %i, i64 2, i32 1", {})
    [(64, None), (8, 2), (4, 1)]
    """
    found = _GEP.search(text.split(", !")[0])
    if found is None:
        return None
    stepped, _, *indices = split(found[1])
    numbers = [re.fullmatch(r"i\d+ (-?\d+)", index) for index in indices]
    first, *rest = [int(number[1]) if number else None for number in numbers]
    steps: list[tuple[int, int | None]] = [(size_and_alignment(stepped, structs)[0], first)]
    for index in rest:
        if sequence := _SEQUENCE.match(stepped) if not stepped.startswith("<{") else None:
            stepped = sequence[2]
            steps.append((size_and_alignment(stepped, structs)[0], index))
            continue
        fields, offsets = split(_body(stepped, structs)[0]), _fields(stepped, structs)[0]
        if index is None or not 0 <= index < len(fields):
            return None
        stepped = fields[index]
        steps.append((offsets[index], 1))
    return steps


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


def global_sizes(module: Any, structs: Structs) -> dict[str, int]:
    """Return the bytes of every global array of a module, by its name."""
    types = {g.name: str(g.global_value_type) for g in module.global_variables}
    sizes = {name: array_bytes(type_, structs) for name, type_ in types.items()}
    return {name: size for name, size in sizes.items() if size}


def split(text: str) -> list[str]:
    """Return the parts between commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[{<(") - (letter in "]}>)")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []


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

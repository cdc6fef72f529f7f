"""C as text: names, brackets, indentation."""

from __future__ import annotations

import functools
import re
from importlib.resources import files


@functools.cache
def taken() -> frozenset[str]:
    """Return the names that the header defines, and C's own words."""
    header = (files("tidegate.policy_compiler.bpf") / "policy.h").read_text("utf-8")
    named = re.findall(r"\w+(?=\()|(?<=#define )\w+|shown_\w+", header)
    named += re.findall(r"^typedef .*?(\w+);$", header, re.MULTILINE)
    words = (
        "auto break case char const continue default do double else enum extern float for goto if "
        "inline int long register restrict return short signed sizeof static struct switch "
        "typedef typeof union unsigned void volatile while asm requests request_n failed"
    )
    return frozenset(named) | set(words.split())


def c_name(name: str) -> str:
    return f"{name}_" if name in taken() else name


def bare(code: str) -> str:
    """Return code without brackets around all of it."""
    while code.startswith("(") and not code.startswith("({") and closes(code) == len(code) - 1:
        code = code[1:-1]
    return code


def closes(code: str) -> int:
    """Return where the bracket closes that the code begins with."""
    depth = 0
    for place, letter in enumerate(code):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return place
    return -1


def deeper(lines: list[str], by: int = 1) -> list[str]:
    return ["\t" * by + line for line in lines]

"""C and C++ identifiers for objects and launch sites, whose names need not be identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable

# of C23 and C++23, alternative spellings of operators included
_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires restrict return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t
while xor xor_eq
"""
_KEYWORDS = frozenset(_WORDS.split())
# digits, and the prefixes of names of the emitted code, its headers and the compiler
_NOT_OURS = re.compile(r"\d|cuda|CUDA|tidegate|TIDEGATE|omp_|__|_[A-Z]|$")


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return an identifier for each name: the name itself where possible, and no two the same.

    >>> identifiers(["x", "class", "malloc:6", "malloc.6"])
    {'x': 'x', 'class': 'class_', 'malloc:6': 'malloc_6', 'malloc.6': 'malloc_6_2'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    # names that are identifiers already come first and stay as they are
    for name in sorted(dict.fromkeys(names), key=lambda name: name != _spelt(name)):
        spelt = _spelt(name)
        numbers = range(2, len(taken) + 3)
        found[name] = next(s for s in (spelt, *(f"{spelt}_{n}" for n in numbers)) if s not in taken)
        taken.add(found[name])
    return found


def _spelt(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if _NOT_OURS.match(plain):
        plain = f"o_{plain}"
    return f"{plain}_" if plain in _KEYWORDS else plain

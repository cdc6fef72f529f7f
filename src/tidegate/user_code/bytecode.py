"""What a function's code consists of, and what it refers to."""

from __future__ import annotations

import dis
import functools
from types import CodeType

# attributes that decide what code does
CODE_PARTS = (
    "co_name",
    "co_code",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_flags",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_exceptiontable",
    "co_firstlineno",  # messages that are kept with compiled code name lines
)
_IMPORT = dis.opmap["IMPORT_NAME"]


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType) -> frozenset[str]:
    """Return the names that this code refers to."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names_in(constant)
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def imports_in(code: CodeType) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    """Return what this code imports: the level of each import, the module, and names within it."""
    found = []
    if _IMPORT in code.co_code[::2]:
        steps = list(dis.get_instructions(code))
        for level, wanted, step in zip(steps, steps[1:], steps[2:], strict=False):
            if step.opname == "IMPORT_NAME":
                found.append((level.argval, step.argval, wanted.argval or ()))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += imports_in(constant)
    return tuple(found)

"""Why a class cannot be compiled: one line, with the line of its source."""

from __future__ import annotations

import re

from tidegate.policies.interface.compiling.source import CannotCompile

# what Numba says, and what it means here
_MEANINGS = {
    "NRT required": "it makes a list, set or text that outlives the call; a loop or a generator "
    "expression will do",
    "recursion": "it calls itself; use a loop",
    "exception_match": "compiled code knows 'except Exception' alone; test before you act",
    "make_function": "a function or lambda within a method cannot be compiled; use a method",
}
_NOISE = re.compile(
    r"$|Failed in|During:|File |Resolution failure|There are|raised from|>>>|def |Of which|With "
    r"argument|Rejected as|No match|None$|\^|Intrinsic in|Overload|<source|- "
)
_FRAMEWORK = ("numba/", "policies/interface/compiling/", "<string>", "<intrinsic>")


def explain(error: BaseException) -> str:
    """Return what Numba says first, with the line of the class at which it gave up."""
    if isinstance(error, CannotCompile):
        return str(error)
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    places = [
        line
        for file, line in re.findall(r'File "([^"]+)", line (\d+)', text)
        if line != "0" and not any(part in file for part in _FRAMEWORK)
    ]
    said = [line.strip() for line in text.splitlines()]
    useful = [re.sub(r"^\w*Error: ", "", line) for line in said if not _NOISE.match(line)]
    specific = [line for line in useful if not line.startswith("No implementation")]
    reason = [*specific, *useful, type(error).__name__][0]
    reason = next((meant for known, meant in _MEANINGS.items() if known in text), reason)
    return (f"line {places[0]}: " if places else "") + reason

"""One error family. Every message is one line: what was given, what was expected, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TidegateError(Exception):
    """Something the user can put right.

    The command line prints it as one line and exits with code 2.
    """


class UnknownName(TidegateError):
    """A name that is not in a registry; the message offers the nearest ones.

    >>> str(UnknownName("policy", "lrn", ["lrm", "fifo"]))
    "unknown policy 'lrn'; did you mean 'lrm'? Known: fifo, lrm"
    """

    def __init__(self, kind: str, given: str, known: Iterable[str]):
        names = sorted(known)
        near = difflib.get_close_matches(given.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
        hint = next((f" did you mean '{n}'?" for n in names if near and n.lower() == near[0]), "")
        super().__init__(f"unknown {kind} '{given}';{hint} Known: {', '.join(names)}")
        self._made_of = (kind, given, names)

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, str, list[str]]]:
        return type(self), self._made_of  # so that it can come home from a worker process


class PolicyError(TidegateError):
    """A policy raised, or asked for something impossible; names the policy, the call and the
    region.
    """


class BooksError(TidegateError):
    """A run whose books do not balance.

    This is a defect of Tidegate or of a policy, never of the input.
    """

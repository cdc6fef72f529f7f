"""Errors. Every message is one line: what was expected, what was given, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TidegateError(Exception):
    """A mistake that the user can correct.

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
        self._arguments = (kind, given, names)

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, str, list[str]]]:
        return type(self), self._arguments  # pickled on the way from a worker process


class PolicyError(TidegateError):
    """A policy raised, or made an impossible request; names the policy, the call and the region."""


class LongRun(UserWarning):
    """A run that takes a while: it says how many touches it has."""


class BooksError(TidegateError):
    """A run's books do not balance: a defect of Tidegate or of a policy, never of the input."""

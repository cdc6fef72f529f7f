"""Steering: what a driver of today lets a policy say about eviction.

gpu_ext, the one public driver with hooks of eviction, keeps two lists of resident regions and
evicts from the head of ``unused``, then from the head of ``used``. A policy may put the region that
arrives at an end of one of them. It cannot name a victim, and it hears of no eviction.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class End(IntEnum):
    """An end of one of the driver's two lists."""

    USED_HEAD = 0
    USED_TAIL = 1
    UNUSED_HEAD = 2
    UNUSED_TAIL = 3


class Steering(NamedTuple):
    """Where arriving regions go: to the tail of ``used`` while it holds fewer than ``keep``, and
    to ``then`` from there on.
    """

    keep: int
    then: End

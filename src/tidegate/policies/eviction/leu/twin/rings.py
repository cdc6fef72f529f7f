"""Rings of nodes: a region is removed without knowing its ring, and a whole ring is appended to
another at once.
"""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit_inner
from tidegate.policies.eviction.leu.twin.layout import AFTER, BEFORE


@jit_inner
def append(link: Any, node: int, region: int) -> None:
    """Append a region that is in no ring to the ring that begins with this node."""
    last = link[node, BEFORE]
    link[last, AFTER], link[region, BEFORE] = region, last
    link[region, AFTER], link[node, BEFORE] = node, region


@jit_inner
def remove(link: Any, region: int) -> None:
    a, b = link[region, AFTER], link[region, BEFORE]
    link[b, AFTER], link[a, BEFORE] = a, b


@jit_inner
def pour(link: Any, node: int, into: int) -> None:
    """Append all of one ring to another."""
    first, last = link[node, AFTER], link[node, BEFORE]
    if first != node:
        end = link[into, BEFORE]
        link[end, AFTER], link[first, BEFORE] = first, end
        link[last, AFTER], link[into, BEFORE] = into, last
        link[node, AFTER] = link[node, BEFORE] = node

"""LEU written down plainly, with the exact equations: what the compiled one is held against."""

from __future__ import annotations

from tidegate.statistics.exact import distributions


def naive_leu(blocks, capacity, references=None):
    """The misses, and the resident set after every touch."""
    owners = references or blocks
    known = distributions(blocks, owners)
    last, resident, misses, states = {}, set(), 0, []
    for now, block in enumerate(blocks):
        if block not in resident:
            misses += 1
            if len(resident) == capacity:
                resident.remove(min(resident, key=lambda b: rank(known, last[b], now)))
            resident.add(block)
        last[block] = (now, owners[now])
        states.append(frozenset(resident))
    return misses, states


def rank(known, touched, now):
    """Lowest goes first; among equals, the one touched longest ago."""
    when, owner = touched
    return known[owner].priority(now - when)[0], when

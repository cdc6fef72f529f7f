"""Books of a run over three tiers: counts that must agree with one another and with the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import BooksError
from tidegate.policies.interface.policy import label
from tidegate.simulation.recorded import recorded_accounts
from tidegate.simulation.tiers.recorded_moves import recorded_books
from tidegate.simulation.tiers.state import DIRTY, IN_MIDDLE, Tiers

if TYPE_CHECKING:
    from tidegate.simulation.tiers.simulation import Tiered

CENSUS = 1 << 16  # pages counted together


def check_books(s: Tiered) -> None:
    """Raise BooksError unless the books of a finished run balance."""
    c = s.counts
    near, own_frame, middle, own_place, dirty_middle = _census(s.memory)
    dirty = int((s.memory.frames[:near] & DIRTY != 0).sum()), dirty_middle
    inclusive = bool(s.memory.constants["inclusive"][0])
    cached = (c["far_reads"] + c["read_ahead"]) * inclusive
    taken = c["middle_hits"] * (not inclusive)
    accounts = {
        "near pages = frames used, within capacity": near == c["near_used"] <= s.near,
        "middle pages = places used, within capacity": middle == c["middle_used"] <= s.middle,
        "every near page has a frame of its own": own_frame == near,
        "every middle page has a place of its own": own_place == middle,
        "every touch hits or misses": c["touches"] == c["hits"] + c["middle_hits"] + c["far_reads"],
        "what came near left or is there": c["middle_hits"] + c["far_reads"]
        == c["evictions"] + near,
        "what went to the middle left or is there": c["to_middle"] + cached
        == taken + c["middle_spilled"] + middle,
        "every victim went somewhere": c["evictions"]
        == c["to_middle"] + c["recalled"] + c["to_far"],
        "what went far was written or dropped": c["to_far"] == c["near_written"] + c["dropped"],
        "what was dirty at the end was flushed": (c["near_flushed"], c["middle_flushed"])
        == (dirty if s.flush else (0, 0)),
        "time is the sum of its parts": abs(s.time - sum(s.parts.values()))
        <= 1e-9 * max(1.0, s.time),
        **recorded_accounts(s.memory, recorded_books(s.memory, c), len(s.memory.where)),
    }
    wrong = [name for name, balanced in accounts.items() if not balanced]
    if wrong:
        raise BooksError(
            f"the books of {s.trace.name} under {label(s.placement)} must balance, "
            f"got a run where these do not hold: {'; '.join(wrong)}"
        )


def _census(tiers: Tiers) -> NDArray[np.int64]:
    """Count near pages and those whose frame holds them; middle pages, those whose place holds them
    and dirty ones.
    """
    found = np.zeros(5, np.int64)
    for first in range(0, len(tiers.where), CENSUS):  # in parts: there may be many pages
        where = tiers.where[first : first + CENSUS]
        near, middle = np.flatnonzero(where >= 0), np.flatnonzero(where <= IN_MIDDLE)
        at = IN_MIDDLE - where[middle]
        copies = tiers.copies[first : first + CENSUS]
        middle = np.concatenate([middle, np.flatnonzero(copies >= 0)])
        queued = tiers.queue[np.concatenate([at, copies[copies >= 0]])]
        held, placed = tiers.held[where[near]] == first + near, queued >> 1 == first + middle
        found += [len(near), held.sum(), len(middle), placed.sum(), (queued & 1).sum()]
    return found

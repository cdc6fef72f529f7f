"""The tiers as compiled tiering policies see them: ``self.memory``, and the events."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from tidegate.compiled.addresses import grid_at, load, load_fixed, outside
from tidegate.compiled.jit import jit_inner
from tidegate.compiled.jit import jit_within as primitive
from tidegate.policies.interface.compiling.handles import Event, Surface
from tidegate.policies.interface.compiling.header import REGIONS
from tidegate.policies.interface.compiling.tier_header import (
    HISTORY,
    MIDDLE_PAGES,
    MIDDLE_USED,
    NEAR_PAGES,
    NOW,
    PAIR_COUNT,
    PAIRS,
    ROW_BYTES,
    USES,
)
from tidegate.policies.interface.tier_events import (
    KNOWN,
    PLACE,
    RETURN,
    SAMPLES,
    SPILL,
    TOUCH,
    VICTIM,
)
from tidegate.policies.interface.tier_policy import STAY


@primitive
def near_pages(block):
    return load_fixed(block + 8 * NEAR_PAGES)


@primitive
def middle_pages(block):
    return load_fixed(block + 8 * MIDDLE_PAGES)


@primitive
def now(block):
    return load(load_fixed(block + 8 * NOW))


@primitive
def middle_used(block):
    return load(load_fixed(block + 8 * MIDDLE_USED))


@jit_inner  # which may return an array
def pairs(block):
    filled = load(load_fixed(block + 8 * PAIR_COUNT))
    return grid_at(load_fixed(block + 8 * PAIRS), filled, 2)


@primitive
def left(block, page):
    if outside(page, load_fixed(block + 8 * REGIONS)):
        raise IndexError("no such page")
    return load(load_fixed(block + 8 * HISTORY) + load_fixed(block + 8 * ROW_BYTES) * page)


@primitive
def next_use(block, page):
    if outside(page, load_fixed(block + 8 * REGIONS)):
        raise IndexError("no such page")
    return load(load_fixed(block + 8 * USES) + 8 * page)


@primitive
def _known(answer):
    """Return what the mechanism gets for an answer of on_return."""
    return KNOWN if answer == STAY else 0


TIERS = Surface(
    name="tiers",
    methods={"left": left, "next_use": next_use},
    properties={
        "near_pages": near_pages,
        "middle_pages": middle_pages,
        "now": now,
        "middle_used": middle_used,
        "pairs": pairs,
    },
    views={},
    needs={"next_use": "Everything(future=True)"},
    events={
        PLACE: Event("place", answer="STAY, MIDDLE or FAR"),
        VICTIM: Event("victim", takes_number=False, answer="a page"),
        SPILL: Event("spill", takes_number=False, answer="a page"),
        RETURN: Event("on_return", answer="STAY or None", convert=_known),
        SAMPLES: Event("on_samples", takes_number=False),
        TOUCH: Event("on_touch"),
    },
)

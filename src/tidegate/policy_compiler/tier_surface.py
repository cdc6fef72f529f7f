"""The tiers as compiled tiering policies see them: ``self.memory``, and the events."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from tidegate.compiled.addresses import grid_at, load, load_fixed, outside
from tidegate.compiled.jit import jit_inner
from tidegate.compiled.jit import jit_within as primitive
from tidegate.policies.interface import tier_policy as e
from tidegate.policies.interface.tier_policy import NEEDS, Tier, TierView
from tidegate.policy_compiler import tier_header as h
from tidegate.policy_compiler.handles import Event, surface_of
from tidegate.policy_compiler.primitives import regions


@primitive
def near_pages(block):
    return load_fixed(block + 8 * h.NEAR_PAGES)


@primitive
def middle_pages(block):
    return load_fixed(block + 8 * h.MIDDLE_PAGES)


@primitive
def now(block):
    return load(load_fixed(block + 8 * h.NOW))


@primitive
def middle_used(block):
    return load(load_fixed(block + 8 * h.MIDDLE_USED))


@jit_inner  # which may return an array
def pairs(block):
    filled = load(load_fixed(block + 8 * h.PAIR_COUNT))
    return grid_at(load_fixed(block + 8 * h.PAIRS), filled, 2)


@primitive
def left(block, page):
    if outside(page, regions(block)):
        raise IndexError("no such page")
    return load(load_fixed(block + 8 * h.HISTORY) + load_fixed(block + 8 * h.ROW_BYTES) * page)


@primitive
def next_use(block, page):
    if outside(page, regions(block)):
        raise IndexError("no such page")
    return load(load_fixed(block + 8 * h.USES) + 8 * page)


@primitive
def _known(answer):
    """Return what the mechanism gets for an answer of on_return."""
    return e.KNOWN if answer == Tier.STAY else 0


_OFFERED = (near_pages, middle_pages, now, middle_used, pairs, left, next_use)
TIERS = surface_of(
    "tiers",
    TierView,
    NEEDS,
    {function.__name__: function for function in _OFFERED},
    events={
        e.PLACE: Event("place", answer="Tier.STAY, MIDDLE or FAR"),
        e.VICTIM: Event("victim", takes_number=False, answer="a page"),
        e.SPILL: Event("spill", takes_number=False, answer="a page"),
        e.RETURN: Event("on_return", answer="Tier.STAY or None", convert=_known),
        e.SAMPLES: Event("on_samples", takes_number=False),
        e.TOUCH: Event("on_touch"),
    },
)

"""What ``self.memory`` offers is declared once, by MemoryView and TierView."""

from __future__ import annotations

import inspect

import pytest

from tidegate.advice.emit import requests
from tidegate.errors import PolicyError
from tidegate.experiments.planning import Rehearsal
from tidegate.live.pager.view import LiveMemory
from tidegate.policies.interface.memory_view import NEEDS, VERBS, MemoryView
from tidegate.policies.interface.tier_policy import NEEDS as TIER_NEEDS
from tidegate.policies.interface.tier_policy import TierView
from tidegate.policy_compiler.gpu_surface import GPU
from tidegate.policy_compiler.handles import Surface
from tidegate.policy_compiler.tier_surface import TIERS
from tidegate.simulation.gpu.view import SimulatedMemory
from tidegate.simulation.tiers.view import NearTier, SimulatedTiers
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import lay_out

# look-ups whose answers are arrays, objects or texts, which compiled code does not keep
ONLY_IN_PYTHON = {
    *("near", "touched", "prefetched", "page_touches", "last_reference", "last_toucher"),
    *("objects", "plan", "forecast", "costs", "shared", "launch", "place", "leaving"),
}


def rehearsal() -> Rehearsal:
    geometry = Geometry()
    return Rehearsal(lay_out({"a": 3 * geometry.region}, geometry), geometry, 2, None)


def public(cls: type) -> set[str]:
    names = {*vars(cls), *inspect.get_annotations(cls)}
    return {name for name in names if not name.startswith("_")}


def declared() -> set[str]:
    """The names of a view, with those that its constructor sets."""
    return public(MemoryView) | {name for name in vars(rehearsal()) if not name.startswith("_")}


def compiled(surface: Surface) -> set[str]:
    return {*surface.methods, *surface.properties, *surface.views, *surface.typed}


def test_compiled_policies_get_what_is_declared() -> None:
    names = declared() - {"actions"}
    assert compiled(GPU) <= names
    assert names - compiled(GPU) == ONLY_IN_PYTHON
    assert compiled(TIERS) == public(TierView)


def test_verbs_and_levels_are_of_declared_names() -> None:
    assert VERBS.keys() <= public(MemoryView)
    assert NEEDS.keys() <= public(MemoryView)
    assert TIER_NEEDS.keys() <= public(TierView)
    assert VERBS.keys() <= compiled(GPU)
    assert len({verb.request for verb in VERBS.values()}) == len(VERBS)


@pytest.mark.parametrize("view", [SimulatedMemory, NearTier, LiveMemory, Rehearsal])
def test_views_add_no_names(view: type) -> None:
    assert public(view) <= declared()


@pytest.mark.parametrize("view", [SimulatedMemory, NearTier, LiveMemory])
def test_mechanisms_offer_every_look_up(view: type) -> None:
    """All but those of a level that no policy may declare there."""
    optional = {"forecast", "costs"} | ({*NEEDS} if view is LiveMemory else {"accesses"})
    look_ups = {
        n for n in public(MemoryView) - VERBS.keys() - optional if hasattr(MemoryView, n)
    } - {"touched", "now"}
    assert {name for name in look_ups if getattr(view, name) is getattr(MemoryView, name)} == set()
    assert view._touched is not MemoryView._touched  # type: ignore[attr-defined]


def test_tiers_offer_every_look_up() -> None:
    made = {"near_pages", "middle_pages"}  # set by the constructor
    assert public(TierView) - made <= public(SimulatedTiers)


def test_requests_that_are_overheard_are_verbs() -> None:
    assert {*requests._PAGES, *requests._REGION} <= VERBS.keys()


def test_a_rehearsal_refuses_what_it_does_not_offer() -> None:
    memory = rehearsal()
    memory.prefetch(0, 32)
    with pytest.raises(PolicyError, match=r"must not use memory\.prefetch_async"):
        memory.prefetch_async(0, 1)
    with pytest.raises(PolicyError, match=r"must not use memory\.near"):
        memory.near(0)
    with pytest.raises(PolicyError, match="must evict a resident region, got region 2"):
        memory.evict(2)
    memory.evict(0)
    assert [action.verb for action in memory.actions] == ["prefetch", "evict"]

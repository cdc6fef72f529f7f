"""Steered policies: two lists, and the ends at which regions arrive."""

from __future__ import annotations

import pytest

from tidegate.errors import PolicyError, TidegateError
from tidegate.options import format_spec
from tidegate.policies.eviction.cp import FEW
from tidegate.policies.interface.steering import End, Steering
from tidegate.policies.registries import eviction
from tidegate.policy import EvictionPolicy
from traces import PAGES, machine, one_block, reads, run_of

REGIONS, FRAMES, PASSES = 20, 12, 5


def evictions(policy: object, passes: int = PASSES) -> int:
    """Return the evictions of passes over all regions, a page each."""
    pages = [region * PAGES for _ in range(passes) for region in range(REGIONS)]
    trace = one_block(reads(pages), [REGIONS * PAGES])
    return run_of(trace, machine(), FRAMES, eviction=policy).counts["evictions"]


class Keeping(EvictionPolicy):
    """Keep what came first; evict in order the others."""

    kept = 8

    def victim(self) -> int:
        raise AssertionError("a steered policy names no victim")

    def steering(self) -> Steering:
        return Steering(self.kept, End.UNUSED_TAIL)


def through(kept: int) -> int:
    """Return the evictions if so many regions stay and the others pass through, once a pass."""
    return PASSES * (REGIONS - kept) - (FRAMES - kept)


@pytest.mark.closed_form
def test_what_is_kept_is_never_evicted() -> None:
    """Of 20 regions 8 stay; the other 12 pass through 4 frames, each evicted once a pass."""
    steered = eviction.make("steered")
    steered._steered = Keeping()
    assert evictions(steered) == through(Keeping.kept)
    assert steered.report() == {"kept": 8, "then": "UNUSED_TAIL"}


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("steered", "whole"),
    [
        ("steered(lrm)", "fifo"),  # one touch for each residency: lrm is fifo
        ("steered(fifo)", "fifo"),
        ("steered(mru)", "mru"),
    ],
)
def test_some_policies_lose_nothing(steered: str, whole: str) -> None:
    assert evictions(steered) == evictions(whole)


@pytest.mark.closed_form
@pytest.mark.parametrize("share", [0.5, 0.25])
def test_cp_keeps_its_first_split(share: float) -> None:
    """Without notifications the split does not move; with them cp never does worse here."""
    spec = f"cp(start_share={share})"
    assert evictions(f"steered({spec})") == through(FRAMES - max(FEW, round(share * FRAMES)))
    assert evictions(spec) <= evictions(f"steered({spec})")


@pytest.mark.parametrize("name", ["lru", "lfu", "random", "tournament", "belady", "steered"])
def test_others_cannot_be_steered(name: str) -> None:
    with pytest.raises(PolicyError, match="cannot be steered"):
        eviction.make(f"steered({name})")


def test_its_spec() -> None:
    made = eviction.make("steered(cp(start_share=0.25))")
    assert format_spec(made) == "steered(cp(start_share=0.25))"
    assert made.settings() == {"policy": "cp(start_share=0.25)"}
    assert eviction.make("steered(policy=cp)").settings() == {"policy": "cp"}
    with pytest.raises(TidegateError, match="unknown eviction"):
        eviction.make("steered(nothing)")

"""Requests of each visit, by conditions on the visit's number."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.compiler.plan.schedule import Action, SiteSchedule, settled

ACTIONS = {
    name: tuple(Action(verb, "a", 0, 8, 8) for verb in name) for name in ("", "p", "e", "pe")
}
visits = st.lists(st.sampled_from(sorted(ACTIONS)), max_size=6)


def place(*asked: str) -> SiteSchedule:
    return SiteSchedule("r", "r:1", ("a",), tuple(ACTIONS[name] for name in asked), {})


def actions_at(of: SiteSchedule, visit: int) -> tuple[Action, ...]:
    """Return the actions whose C conditions hold, evaluated in Python with `and` and `or`."""
    plain = [
        (condition.replace("&&", "and").replace("||", "or"), actions)
        for condition, actions in of.cases()
    ]
    true = [actions for condition, actions in plain if eval(condition, {"tidegate_visit": visit})]
    assert len(true) <= 1
    return true[0] if true else ()


@given(visits)
def test_the_visits_seen_are_actions_at(seen: list[str]) -> None:
    assert [actions_at(place(*seen), n + 1) for n in range(len(seen))] == [
        ACTIONS[name] for name in seen
    ]


@pytest.mark.slow
@given(
    visits, st.lists(st.sampled_from(sorted(ACTIONS)), min_size=1, max_size=4), st.integers(0, 3)
)
@example(["p"], ["", "e", "e"], 1)
def test_what_repeats_itself_goes_on(before: list[str], cycle: list[str], more: int) -> None:
    """Twelve rounds of any cycle, cut anywhere, are enough to continue it."""
    whole = before + cycle * 40
    seen = whole[: len(before) + len(cycle) * 12 + more % len(cycle)]
    of = place(*seen)
    assert [actions_at(of, n + 1) for n in range(len(whole))] == [ACTIONS[name] for name in whole]


def test_what_never_repeats_itself_says_nothing_of_later() -> None:
    assert settled(place("p", "e").visits) == (2, 0)
    assert actions_at(place("p", "e"), 3) == ()

"""Compiled code hides no mistake: each ends the run with one line with its file and line, as in
Python, and none is a crash or another result.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from policies import mistakes
from policies.mistakes import LAST, Mistaken
from tidegate.errors import PolicyError
from tidegate.simulation import calling
from tidegate.simulation.calling import CompiledCaller
from traces import flat, machine, simulation_of

TRACE = flat([i % 8 for i in range(40)])


@pytest.fixture(autouse=True)
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile at once."""
    monkeypatch.setattr(calling, "LONG_RUN", -1)


def failure(which: int, compiled: bool) -> str:
    """Return what the run says."""
    made = simulation_of(TRACE, machine(), 4, eviction=Mistaken(which=which), compiled=compiled)
    with pytest.raises(PolicyError) as error:
        made.run()
    return str(error.value)


def test_without_a_mistake_it_is_compiled():
    made = simulation_of(TRACE, machine(), 4, eviction=Mistaken())
    made.run()
    assert isinstance(made._choices[0].caller, CompiledCaller)


@pytest.mark.parametrize("which", range(1, LAST + 1))
def test_a_mistake_is_one_line_with_its_place(which):
    lines = Path(mistakes.__file__).read_text().splitlines()
    line = next(n for n, text in enumerate(lines, start=1) if text.endswith(f"# {which}"))
    said = failure(which, compiled=True)
    assert said.startswith("policy 'Mistaken' raised in victim(): ")
    assert said.endswith(f"(mistakes.py, line {line})")
    assert "\n" not in said

"""What to shrink: a ready model, recorded again with less, and recomputation as a candidate."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tidegate
from advice.programs import MIB, subject_of, train
from tidegate.advice import Simulator, advise_on, find_subject
from tidegate.advice.candidates import RECOMPUTE, find
from tidegate.advice.shrink import Change, Smaller, changes, record_smaller
from tidegate.advice.simulate import Trial
from tidegate.advice.words import sentences

MACHINE = tidegate.load_machine("rtx3090-pcie4")
SERIAL = Simulator(workers=1, cache=False)
# large enough that the peak is in the backward pass, not in the optimiser's
SIZE = {"layers": 4, "batch": 8, "context": 512, "steps": 1}
MODEL = f"gpt-124m({', '.join(f'{name}={value}' for name, value in SIZE.items())})"


@pytest.fixture(scope="module")
def program():
    pytest.importorskip("torch", reason="torch is not installed: make torch")
    return find_subject(MODEL, 0, MACHINE, {})


@pytest.fixture(scope="module")
def smaller(program):
    return list(record_smaller(program))


@pytest.mark.slow
@pytest.mark.extra
def test_a_ready_model_is_recorded_with_less(program, smaller):
    found = {s.change.words: s.peak for s in smaller}
    assert list(found) == ["batch 4", "context 256", "recomputing activations (checkpoint)"]
    assert found["batch 4"] == tidegate.record.model("gpt-124m", **{**SIZE, "batch": 4}).peak
    assert all(peak < program.workload.peak for peak in found.values())


@pytest.mark.extra
def test_recomputation_has_a_time_of_its_own(program, smaller):
    again = next(s.program for s in smaller if s.change.recomputes)
    subject = replace(program, recomputed=again)
    near = again.trace(MACHINE).footprint  # with recomputation it fits
    trials = [Trial(c, MACHINE, near) for c in (RECOMPUTE, find("look-ahead"))]
    recomputed, plain = SERIAL.simulate(subject, trials)
    assert recomputed.run.facts["footprint_bytes"] == near < program.trace(MACHINE).footprint
    launches = [len(o.run.tables["launches"]["name"]) for o in (recomputed, plain)]
    assert launches[0] > launches[1], "the forward pass of each block is made twice"
    assert recomputed.run.summary["bytes_out"] == 0 < plain.run.summary["bytes_out"]


def test_it_is_one_of_the_candidates(monkeypatch):
    change = Change("recomputing", {"checkpoint": True})
    short = Smaller(change, subject_of(train(layers=3)), 16 * MIB)
    monkeypatch.setattr("tidegate.advice.advice.changes", lambda subject: [change])
    monkeypatch.setattr(
        "tidegate.advice.advice.record_smaller", lambda subject, progress: iter([short])
    )
    found = advise_on(subject_of(train(layers=6)), MACHINE, 16 * MIB, SERIAL)
    assert found.smaller == [short]
    row = next(o for o in found.outcomes if o.name == "recompute")
    assert len(row.run.tables["launches"]["name"]) == 6  # of the shorter program
    assert found.recommended is row, "it fits, so nothing moves"
    assert "recomputing: 16.0 MiB (fits)" in sentences(found)[1]


def test_a_recording_cannot_be_made_again_and_says_how():
    program = subject_of(train(layers=4))
    assert changes(program) == []
    found = advise_on(program, MACHINE, 12 * MIB, SERIAL)
    assert found.smaller == []
    assert "recompute" not in [o.name for o in found.outcomes]
    assert any("Recomputation was not tried" in text for text in sentences(found))

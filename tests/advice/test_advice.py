"""Advice on small programs: what fits, what is best, the bound, the curve, and how sure it is."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate
from advice.programs import MIB, decode, subject_of, train
from offloaded import clang_19
from op_lists import small_ops
from tidegate.advice import Simulator, advise_on, find_subject, words
from tidegate.advice import simulate as simulating
from tidegate.advice.bound import find_bound
from tidegate.advice.candidates import BASELINE, candidates
from tidegate.advice.causes import find_causes
from tidegate.advice.confidence import variants
from tidegate.advice.fit import measure_fit
from tidegate.advice.page import page
from tidegate.advice.simulate import StoppedEarly, Trial
from tidegate.advice.words import sentences, tables, to_data
from tidegate.advice.worth import Point, Worth, sizes
from tidegate.compiler.model_file import save
from tidegate.compiler.project import model_of_files
from tidegate.errors import TidegateError
from tidegate.policies.systems import SYSTEMS
from tidegate.simulation.gpu.forecast import forecast
from tidegate.trace.geometry import Geometry
from tidegate.trace.ops import OpsBuilder, OpTrace
from tidegate.trace.trace import Provenance

MACHINE = tidegate.load_machine("rtx3090-pcie4")
LINK = MACHINE.link
SERIAL = Simulator(workers=1, cache=False)


@pytest.fixture(scope="module")
def decoding():
    return advise_on(subject_of(decode()), MACHINE, 32 * MIB, SERIAL)


@pytest.fixture(scope="module")
def training():
    return advise_on(subject_of(train()), MACHINE, 28 * MIB, SERIAL)


# Fit


def test_the_peak_has_its_kinds_and_its_moment():
    fit = measure_fit(OpTrace(train(), Geometry()), 28 * MIB)
    assert fit.peak == 44 * MIB  # the input and ten activations
    assert fit.lacking == 16 * MIB
    assert fit.kinds == {"activation": 40 * MIB, "input": 4 * MIB}
    assert "forward of step 1" in fit.moment
    assert max(live for _, live in fit.curve) == 44 * MIB


def test_a_trace_without_lifetimes_needs_all_it_allocates():
    trace = tidegate.RunSpec("cyclic(bytes=64MiB)").trace()
    fit = measure_fit(trace, 64 * MIB)
    assert fit.fits
    assert fit.peak == 64 * MIB


@pytest.mark.slow
def test_a_program_that_fits_needs_nothing():
    found = advise_on(subject_of(decode()), MACHINE, 1 << 30, SERIAL)
    assert found.fit.fits
    assert found.recommended is None
    assert [o.name for o in found.outcomes] == [BASELINE]
    assert sentences(found)[0].startswith("It fits.")


# What to do


@pytest.mark.slow
def test_decode_streams_its_weights(decoding):
    """48 MiB of weights in 32: the driver moves all of them for each token."""
    assert decoding.recommended is not None
    assert decoding.recommended.trial.candidate.is_plan
    assert decoding.speed_up > 2
    driver = decoding.baseline.run.summary["bytes_in"]
    best = decoding.recommended.run.summary["bytes_in"]
    assert driver >= 4 * 48 * MIB
    assert best < 0.75 * driver


@pytest.mark.slow
def test_the_best_is_the_best_of_all_that_people_can_use(decoding, training):
    for advice in (decoding, training):
        usable = [o.time for o in advice.ranked if o.trial.candidate.usable]
        assert len(advice.outcomes) == len(candidates())
        assert advice.best.time <= 1.02 * min(usable)


@pytest.mark.slow
def test_plans_are_runs_of_the_mechanism(training):
    for outcome in training.ranked:
        run = outcome.run
        assert run.time == pytest.approx(sum(run.parts.values()))
        assert run.facts["placement"].split("(")[0] in tidegate.plugins.placement.names()


def test_the_driver_is_left_alone_if_it_is_as_good():
    """Each byte is used once: nothing but the way in costs, and a plan cannot avoid it."""
    ops = decode(layers=12, tokens=1)
    found = advise_on(subject_of(ops), MACHINE, 46 * MIB, SERIAL)
    found.outcomes = [o for o in found.outcomes if o.name in (BASELINE, "acbm")]
    assert found.recommended is None
    assert any("Leave it to the driver" in text for text in sentences(found))


# The bound


@pytest.mark.closed_form
def test_a_loop_larger_than_memory_is_bound_by_what_does_not_fit():
    """Twelve weights of 4 MiB, four tokens, 32 MiB: all come once. Then each stretch of launches
    that uses more than 32 MiB needs the rest: 16 MiB for each token.
    """
    trace = OpTrace(decode(), Geometry())
    bound = find_bound(forecast(trace, MACHINE), MACHINE, 32 * MIB)
    assert bound.bytes_in >= 48 * MIB + 2 * 16 * MIB
    assert bound.bytes_in <= 48 * MIB + 3 * 16 * MIB
    assert bound.bytes_out == 0
    assert bound.link == pytest.approx(bound.bytes_in / LINK.inward)


@pytest.mark.closed_form
def test_what_is_made_and_does_not_fit_is_written_out():
    trace = OpTrace(train(), Geometry())
    bound = find_bound(forecast(trace, MACHINE), MACHINE, 28 * MIB)
    # ten activations are made and used again; the last is used by the very next launch
    assert 8 * MIB <= bound.bytes_out <= 40 * MIB - 28 * MIB


@pytest.mark.closed_form
def test_bytes_that_a_launch_reads_again_are_counted_once():
    build = OpsBuilder()
    size = 64 << 10
    weight = build.tensor("weight", "weight", size, host=True)
    build.launch("mm", "layer", "forward", 0, 0.0, "")
    build.use(weight, 0, size)
    build.use(weight, 0, 100)
    trace = OpTrace(build.finish("again", Provenance.ASSUMED), Geometry())
    assert find_bound(forecast(trace, MACHINE), MACHINE, 32 * MIB).bytes_in == size


@pytest.mark.slow
def test_no_candidate_beats_the_bound(decoding, training):
    for advice in (decoding, training):
        assert 0 < advice.bound.time <= advice.ranked[0].time


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(small_ops(), st.integers(2, 5))
def test_no_plan_beats_the_bound_of_any_program(ops, frames):
    near = frames * 2 * MIB
    trace = OpTrace(ops, Geometry())
    bound = find_bound(forecast(trace, MACHINE), MACHINE, near)
    for plan in ("look-ahead", "greedy"):
        run = tidegate.run(trace, near=near, placement=plan, cache=False)
        assert bound.time <= run.time * (1 + 1e-9)
        assert bound.bytes_in <= run.summary["bytes_in"] + run.counts["remote_bytes"]


# Worth and confidence


def test_sizes_reach_from_half_of_memory_to_the_peak():
    found = sizes(32 * MIB, 50 * MIB, 2 * MIB)
    assert found[0] == 16 * MIB
    assert found[-1] == 50 * MIB
    assert 32 * MIB not in found
    assert all(size % (2 * MIB) == 0 for size in found)


@pytest.mark.slow
def test_more_memory_is_never_worth_less_than_nothing(decoding):
    times = [p.time for p in decoding.worth.points]
    assert times == sorted(times, reverse=True)
    assert decoding.worth.points[-1].near >= decoding.fit.peak


def test_the_knee_is_where_more_gains_little():
    points = tuple(Point(n, t, "uvm") for n, t in ((1, 100.0), (2, 52.0), (3, 51.0), (4, 50.0)))
    assert Worth(points).knee.near == 2
    assert Worth(()).knee is None


def test_constants_vary_by_thirty_per_cent():
    found = {name: (on, dirty) for name, on, dirty in variants(MACHINE)}
    assert len(found) == 7
    assert found["the link -30%"][0].link.inward == pytest.approx(0.7 * LINK.inward)
    assert found["the GPU +30%"][0].rates.bf16 == pytest.approx(1.3 * MACHINE.rates.bf16)
    assert found["the GPU +30%"][0].link == LINK


@pytest.mark.slow
def test_a_slower_link_makes_a_plan_worth_more(decoding):
    """The plan is bound by the link, so is the driver; the spread is around the answer itself."""
    found = decoding.confidence
    assert len(found.variants) == 7
    assert found.least <= decoding.speed_up <= found.most


# Causes


@pytest.mark.slow
def test_the_costliest_objects_are_those_that_move(decoding):
    causes = find_causes(
        decoding.baseline.run, forecast(decoding.subject.trace(MACHINE), MACHINE), MACHINE
    )
    assert len(causes) == 5
    assert all(cause.name.endswith("weight") for cause in causes)
    assert causes[0].launches == 4
    assert causes[0].times_moved == pytest.approx(4, rel=0.3)
    assert "only read" in causes[0].story()


# Ctrl-C, words, data and the page


def test_what_is_known_is_kept_after_ctrl_c(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path))
    program = subject_of(decode(layers=4, tokens=1))
    trials = [Trial(c, MACHINE, 12 * MIB) for c in candidates()[:4]]
    seen = []

    def stop():
        seen.append(1)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(StoppedEarly) as stopped:
        Simulator(workers=1, progress=stop).simulate(program, trials)
    assert [o.trial for o in stopped.value.outcomes] == trials[:2]
    assert all(o.run is not None for o in stopped.value.outcomes)


def test_advice_that_was_stopped_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path))
    found = []

    def stop():
        found.append(1)
        if len(found) == 3:
            raise KeyboardInterrupt

    advice = advise_on(
        subject_of(decode(4, 1)), MACHINE, 12 * MIB, Simulator(workers=1, progress=stop)
    )
    assert not advice.whole
    assert len(advice.outcomes) == 3
    assert sentences(advice)[-1].startswith("Stopped")


def test_a_candidate_that_fails_says_why(monkeypatch):
    def fail(specs, **how):
        return [tidegate.TidegateError("it does not work")] * len(specs)

    monkeypatch.setattr(simulating, "attempt_grid", fail)
    advice = advise_on(subject_of(decode(4, 1)), MACHINE, 12 * MIB, SERIAL)
    assert advice.best is advice.baseline is None
    assert len(advice.failed) == len(candidates())
    assert "it does not work" in tables(advice)[0].text()


@pytest.mark.slow
def test_words_say_the_figures(decoding):
    text = " ".join(sentences(decoding))
    assert "It does not fit." in text
    assert f"Take {decoding.recommended.name}" in text
    assert f"{decoding.speed_up:.2f} × as fast" in text
    assert "No way to run it here takes less" in text
    assert "All times are simulated, with the machine file" in text


@pytest.mark.slow
def test_data_are_json_and_whole(decoding):
    data = json.loads(json.dumps(to_data(decoding)))
    assert data["recommended"] == decoding.recommended.name
    assert len(data["candidates"]) == len(candidates())
    assert data["bound"]["time"] == decoding.bound.time
    assert data["whole"] is True


@pytest.mark.slow
def test_the_page_has_words_pictures_and_escaped_code(decoding):
    text = page([decoding], {"advice.py": "if a < b: pass"})
    assert text.count("<svg") == 3
    assert "if a &lt; b: pass" in text
    assert "Take " in text


def test_candidates_are_known_to_the_rest():
    for candidate in candidates(recorded_again=True):
        assert candidate.settings.get("system", "uvm") in SYSTEMS
        if "placement" in candidate.settings:
            tidegate.plugins.placement.make(candidate.settings["placement"])


def test_of_systems_that_are_alike_the_one_that_nobody_has_to_choose_is_named():
    def outcome(name, time, usable=False):
        return SimpleNamespace(
            name=name, time=time, trial=SimpleNamespace(candidate=SimpleNamespace(usable=usable))
        )

    def said(*systems):
        best = outcome("rdm", 100.0, usable=True)
        ranked = sorted([best, *systems], key=lambda o: o.time)
        return list(words._another_driver(SimpleNamespace(ranked=ranked, best=best)))

    assert said(outcome("lru", 80.0), outcome("tide", 81.0))[0].startswith("tide would take")
    assert said(outcome("lru", 80.0), outcome("tide", 90.0))[0].startswith("lru would take")
    assert said(outcome("tide", 101.0)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "Makefile", "compile_commands.json", "model.json"])
def test_a_program_is_found_as_compile_finds_it(tmp_path: Path, kind: str) -> None:
    """A project, or a saved model; options go to clang."""
    clang_19()
    (tmp_path / "own.h").write_text("#define HALF (SIZE / 2)\n")
    (tmp_path / "sum.c").write_text(
        """
#include <stdlib.h>
#include "own.h"
int main(void) {
  float *x = malloc(4 * HALF);
#pragma omp target teams distribute parallel for map(tofrom : x[0 : HALF])
  for (int i = 0; i < HALF; i++) x[i] = i;
  return x[0];
}"""
    )
    (tmp_path / "Makefile").write_text("sum: sum.c\n\tclang -fopenmp -I. sum.c -o sum\n")
    database = [{"directory": str(tmp_path), "command": "clang -c -I. sum.c -o sum.o"}]
    given, options = tmp_path / kind, ["-DSIZE=4194304"]
    if kind == "compile_commands.json":
        given.write_text(json.dumps(database))
    elif kind == "folder":
        given = tmp_path
    elif kind == "model.json":
        save(model_of_files([tmp_path / "Makefile"], options), given)
        options = []
    subject = find_subject(str(given), 2**22, MACHINE, {}, options=options)
    assert subject.workload.sizes() == {"x": 4 * 4194304 // 2}


def test_options_for_clang_need_a_source() -> None:
    with pytest.raises(TidegateError, match=r"an option for clang is for sources .*, got stencil;"):
        find_subject("stencil", 2**22, MACHINE, {}, options=["-DN=4"])

"""What a policy answers in a simulated run, the kernel answers too; and the check can fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driver.programs import NEAR, with_frees
from tidegate.driver import check
from tidegate.driver.check import Checked, check_policy, play
from tidegate.driver.find import find_policy
from tidegate.driver.tape import FIRST_SHOWN, taping
from tidegate.driver.where import all_policies, where
from tidegate.errors import TidegateError
from tidegate.experiments import RunSpec
from tidegate.options import spec_name
from tidegate.policies.interface.events import OBSERVE, VICTIM
from tidegate.policy import PrefetchPolicy, Samples

pytestmark = pytest.mark.usefixtures("kernel")
LAGGED = str(Path(__file__).parents[2] / "examples" / "lagged.py")

# what decides while a program runs, with options that matter in a small run
EVICTION = (
    *("cp", "clock", "fifo", "lfu(width=2, bins=4)", "loop", "lrm", "lru", "lru-ideal", "mru"),
    *("random(seed=3)", "reserved-lru(percent=30)", "sle", "steered(cp)", "steered(mru)"),
    *("tournament(patience=2)", "tournament(blame=evictions, patience=2, afresh=yes)", LAGGED),
)
PREFETCH = (
    *("early-adaptor(window=4)", "fdp(every=2, enough=2)", "rgp", "fdp(every=2, enough=2)+rgp"),
    *("sequential-local", "stop-when-full", "stop-when-full(of=rgp)", "stream"),
)
FAST = ("cp", "tournament(patience=2)", "rgp")


def checked(spec: str, **settings: Any) -> Checked:
    kind, policy = find_policy(spec)
    more = {"prefetch": "rgp"} if kind == "eviction" else {}
    return check_policy(policy, with_frees(), kind, near=NEAR, **more, **settings)


def tried(specs: tuple[str, ...]) -> list[Any]:
    return [pytest.param(s, marks=() if s in FAST else pytest.mark.slow) for s in specs]


@pytest.mark.oracle
@pytest.mark.parametrize("spec", tried(EVICTION))
def test_the_kernel_names_the_same_victims(spec: str) -> None:
    found = checked(spec)
    assert found.wrong == 0, found.first_wrong
    assert found.events["victim"] > 50
    assert {"on_fault", "on_eviction", "on_prefetch", "on_free"} <= found.events.keys()
    assert found.answers >= found.events["victim"] + found.events.get("observe", 0)


@pytest.mark.oracle
@pytest.mark.parametrize("spec", tried(PREFETCH))
def test_the_kernel_requests_the_same(spec: str) -> None:
    found = checked(spec)
    assert found.wrong == 0, found.first_wrong
    assert found.requests > 0


def test_every_policy_that_can_be_emitted_is_checked() -> None:
    """But for those that decide nothing while a program runs."""
    silent = {"none", "region", "tree"}
    emitted = {n for k, n in all_policies() if where(k, n)["ebpf"].startswith("yes")}
    known = {spec_name(part) for spec in EVICTION + PREFETCH for part in spec.split("+")}
    assert {part for name in emitted for part in name.split("+")} - silent <= known
    assert len(emitted) >= 17 + len(silent)


@pytest.mark.slow
def test_a_long_run_is_played_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MOST_ROWS", 100)
    assert checked("lfu(width=2, bins=4)").wrong == 0


class Verbs(PrefetchPolicy):
    """Every verb that a prefetcher of regions may use, and every look-up."""

    sees = Samples()

    def on_fault(self, region: int) -> None:
        pages = self.memory.geometry.pages_per_region
        self.memory.count_remote(7, 4, 1)
        self.memory.count_remote(8)
        self.memory.set_prefetch_threshold(25 if self.memory.is_served(region) else 26)
        self.memory.prefetch(region * pages + len(self.memory.faulted(region)) - 1)
        if region > 0 and self.memory.is_resident(region - 1):
            self.memory.advise((region - 1) * pages, pages, None)
            self.memory.prefetch((region - 1) * pages, pages)
        if not 3 < region <= 5 < 6 or region in self.memory.observed:
            self.memory.advise(region * pages, 1, "read-mostly")


@pytest.mark.oracle
def test_requests_of_every_kind() -> None:
    found = check_policy(Verbs(), with_frees(), "prefetch", near=NEAR)
    assert found.wrong == 0, found.first_wrong
    assert found.requests > 4 * found.events["on_fault"]


# Negative controls: what differs is found


def taped(spec: str) -> Any:
    kind, policy = find_policy(spec)
    policy.most_rounds = 64
    run = RunSpec(with_frees(), near=NEAR, compiled=False)
    with taping(policy) as tape:
        run.change(**{kind: policy}).run(cache=False)
    return tape


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cp", "cp(start_share=0.2)"),
        ("lfu(width=2, bins=4)", "lfu(width=4, bins=4)"),
        pytest.param("random(seed=3)", "random(seed=4)", marks=pytest.mark.slow),
        pytest.param("fdp(every=2, enough=2)", "fdp(every=3, enough=2)", marks=pytest.mark.slow),
    ],
)
def test_another_constant_gives_other_answers(one: str, other: str) -> None:
    tape = taped(one)
    assert play(tape, one, "", 64).wrong == 0
    tape.code = taped(other).code
    assert play(tape, one, "", 64).wrong > 0


def test_one_wrong_answer_of_the_tape_is_found() -> None:
    tape = taped("lrm")
    row = list(tape.answers)[-1]
    tape.answers[row] += 1
    found = play(tape, "lrm", "", 64)
    assert found.wrong == 1
    assert f"row {row}" in found.first_wrong


def test_what_is_shown_matters() -> None:
    """Without what was shown of observed regions, others are asked to be observed."""
    tape = taped("lru")
    kept = [row for row in tape.rows.tolist() if row[0] < FIRST_SHOWN]
    assert len(kept) < len(tape.rows)
    answers = iter(tape.answers.values())
    tape._rows = kept
    asked = [i for i, (event, *_) in enumerate(kept) if event in (VICTIM, OBSERVE)]
    tape._answers = dict(zip(asked, answers, strict=True))
    assert play(tape, "lru", "", 64).wrong > 0


def test_the_hook_is_called_as_often() -> None:
    found = checked("fifo")
    if not check.has_dummy_ops():
        pytest.skip("this kernel has no bpf_dummy_ops")
    assert found.hook_calls == min(found.calls, int(np.sum(list(found.events.values()))))


# What cannot be emitted, in one line with file and line


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("hpe", "hpe.py, line "),
        ("belady", "sees the future, which no driver does"),
        ("leu", "keeps tables by access site"),
        ("tbne", "generators cannot be emitted; use a loop"),
        ("pattern", "is a Patterns, which compiled code cannot keep"),
    ],
)
def test_refusals(spec: str, said: str) -> None:
    with pytest.raises(TidegateError, match=said) as why:
        checked(spec)
    assert "\n" not in str(why.value)


def test_a_policy_that_decides_nothing_has_nothing_to_check() -> None:
    with pytest.raises(TidegateError, match="decides nothing while a program runs"):
        checked("region")

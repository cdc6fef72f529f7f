"""The store: a run is computed once, found again whole, and never mistaken for another."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tidegate.experiments import Run, RunSpec, store
from tidegate.options import Option
from tidegate.policy import EvictionPolicy
from tidegate.simulation.gpu.simulation import Simulation
from traces import PAGES, Given, Kernel, flat, machine, reads

SPEC = RunSpec(
    flat(list(range(6)) * 3), machine=machine(), near=4 * 4096, eviction="mru", prefetch="none"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own for each test. Code that is compiled already stays compiled."""
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "store"))
    return tmp_path / "store"


def stored(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and "compiled" not in p.parts)


@pytest.fixture
def count_runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with every simulation that is really run."""
    runs: list[int] = []
    real = Simulation.run

    def run(self: Any, *args: Any) -> None:
        runs.append(1)
        real(self, *args)

    monkeypatch.setattr(Simulation, "run", run)
    return runs


def test_a_run_is_computed_once_and_kept_in_one_file(folder, count_runs):
    first = SPEC.run()
    second = SPEC.run()
    assert len(count_runs) == 1
    assert [p.name for p in stored(folder)] == [f"{first.key}.json"]
    assert (first.counts, first.parts, first.busy) == (second.counts, second.parts, second.busy)
    assert (first.tables, first.facts, first.notes, first.key) == (
        second.tables,
        second.facts,
        second.notes,
        second.key,
    )
    assert first.time == second.time
    assert first.summary == second.summary
    assert first.timeline.equals(second.timeline)
    assert first.launches.equals(second.launches)


def test_a_run_from_the_store_equals_the_run_that_was_stored():
    assert SPEC.run() == SPEC.run()


def test_without_the_store_nothing_is_read_or_written(folder, count_runs):
    SPEC.run(cache=False)
    assert stored(folder) == []
    SPEC.run()
    SPEC.run(cache=False)
    assert len(count_runs) == 3


DAMAGE = {
    "truncated": lambda text: text[: len(text) // 2],
    "empty": lambda text: b"",
    "not JSON": lambda text: b"\x00\xff" * 100,
    "not a run": lambda text: b'{"counts": {}}',
    "more than a run": lambda text: json.dumps({**json.loads(text), "more": 1}).encode(),
    "a list": lambda text: b"[1, 2, 3]",
    "null": lambda text: b"null",
    "a number": lambda text: b"17",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_is_not_whole_is_computed_again_and_put_right(folder, damage, count_runs):
    first = SPEC.run()
    (path,) = stored(folder)
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[damage](whole))
    again = SPEC.run()
    assert len(count_runs) == 2
    assert again.counts == first.counts
    assert path.read_bytes() == whole
    assert stored(folder) == [path]


@pytest.mark.parametrize("blocked", ["the store", "runs", "the file"])
def test_a_store_that_cannot_be_written_to_does_not_fail_a_run(folder, blocked, monkeypatch):
    """Where a folder has to be there is a file, or the other way round: that stops even the
    superuser.
    """
    expected = SPEC.run(cache=False)
    path = store._path(expected.key)
    if blocked == "the file":
        path.mkdir(parents=True)
    else:
        block = folder if blocked == "the store" else folder / "runs"
        block.parent.mkdir(parents=True, exist_ok=True)
        block.write_text("in the way")
    assert SPEC.run().counts == expected.counts
    assert SPEC.run().counts == expected.counts
    assert not list(folder.parent.rglob("*.part"))


@pytest.fixture
def failing_store(monkeypatch):
    """A function that sets the error of storing a run; compiled code is stored as ever."""

    def fail(error: BaseException) -> None:
        def replace(source: Any, target: Any, really: Any = os.replace) -> None:
            if Path(target).suffix == ".json":
                raise error
            really(source, target)

        monkeypatch.setattr("os.replace", replace)

    return fail


def test_a_full_disk_leaves_no_half_file(folder, failing_store):
    failing_store(OSError(28, "No space left on device"))
    assert SPEC.run().counts["touches"] == 18
    assert stored(folder) == []


def test_ctrl_c_while_storing_leaves_no_half_file(folder, failing_store):
    failing_store(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        SPEC.run()
    assert stored(folder) == []


# What names a run


def key(**changed: Any) -> str:
    base: dict[str, Any] = {
        "workload": SPEC.workload,
        "machine": machine(),
        "near": 4 * 4096,
        "eviction": "mru",
        "prefetch": "none",
    }
    return RunSpec.from_settings(SPEC.workload, {**base, **changed}).run().key


CHANGES = [
    {"workload": flat(list(range(6)) * 4)},
    {"machine": machine(latency=3.0)},
    {"machine": machine(pipelined=True)},
    {"machine": machine(batch_faults=255)},
    {"slots": 2},
    {"pipelined": True},
    {"near": 3 * 4096},
    {"eviction": "lrm"},
    {"eviction": "random(seed=1)"},
    {"eviction": "random(seed=2)"},
    {"prefetch": "tree"},
    {"prefetch": "tree(threshold=60)"},
    {"placement": "host"},
    {"dirty_only": True},
]


def test_everything_that_can_change_the_outcome_changes_the_name():
    keys = [key()] + [key(**change) for change in CHANGES]
    # the same as machine(pipelined=True), given in another way
    keys.remove(key(pipelined=True))
    assert len(set(keys)) == len(keys)


def test_what_cannot_change_the_outcome_does_not_change_the_name():
    assert (
        key()
        == key(compiled=False)
        == key(eviction=" MRU ( ) ")
        == key(near=4 * 4096 + 100)
        == key(placement="um")
    )
    assert (
        key(prefetch="tree(threshold=51)")
        == key(prefetch="tree")
        == key(prefetch=None, system="uvm")
    )


def test_the_code_is_part_of_the_name(monkeypatch):
    before = key()
    monkeypatch.setattr(store, "code_digest", lambda **how: "another version")
    assert key() != before


TEXT = """
from tidegate.policy import EvictionPolicy

class Mine(EvictionPolicy):
    def on_fault(self, region):
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        return self.order.head
"""


def test_an_edited_policy_file_is_run_anew(tmp_path, monkeypatch):
    # an edit within a second, and no longer, would find the old .pyc
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "mine.py"

    def faults(cache: bool) -> int:
        return (
            RunSpec(
                SPEC.workload, machine=machine(), near=4 * 4096, eviction=str(path), prefetch="none"
            )
            .run(cache)
            .counts["faults"]
        )

    path.write_text(TEXT)
    assert faults(cache=True) == 18  # first in, first out: a loop larger than memory faults always
    path.write_text(TEXT.replace("head", "tail"))
    assert faults(cache=True) == faults(cache=False) == 12
    path.write_text(TEXT)
    assert faults(cache=True) == 18


class Mine(EvictionPolicy):
    """A class that is not shipped."""

    def on_fault(self, region: int) -> None:
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head


def test_a_user_s_policy_is_not_stored_unless_it_says_so(folder, count_runs):
    for _ in range(2):
        run = RunSpec(
            SPEC.workload, machine=machine(), near=4 * 4096, eviction=Mine(), prefetch="none"
        ).run()
        assert not run.from_store
    assert len(count_runs) == 2
    assert stored(folder) == []


class Pathed(Mine):
    keep = True
    where = Option(Path("."), "an option that JSON has no word for", parse=Path)


def test_an_option_that_json_has_no_word_for_can_be_stored(count_runs):
    for _ in range(2):
        RunSpec(
            SPEC.workload,
            machine=machine(),
            near=4 * 4096,
            eviction=Pathed(where="/tmp"),
            prefetch="none",
        ).run()
    assert len(count_runs) == 1


def test_a_run_survives_its_own_json():
    run = RunSpec(
        Given([Kernel([reads(range(20))])] * 2, [3 * PAGES]),
        machine=machine(2),
        near=2 * PAGES * 4096,
    ).run(cache=False)
    again = Run.from_json(json.loads(json.dumps(run.to_json())))
    assert again.parts == run.parts
    assert again.summary == run.summary
    assert again.objects.equals(run.objects)

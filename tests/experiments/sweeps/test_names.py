"""Names of runs: equal where the outcome is, whatever the place of files, and else different."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate import TidegateError, load_machine, save_trace
from tidegate.experiments import RunSpec
from tidegate.experiments.store import NOT_HASHED
from tidegate.experiments.sweeps import names
from tidegate.experiments.sweeps.names import Names, anchored, settings_of

SPEC = RunSpec("cyclic(bytes=16MiB)", near="8MiB", eviction="mru")
MINE = """
from tidegate.policy import EvictionPolicy
import helper

class Mine(EvictionPolicy):
    depends = ("data.csv",)
    def victim(self): return helper.choose(self.order)
"""


def name(spec: RunSpec) -> str:
    return Names().name(spec)


def test_every_field_counts():
    changes = {
        "workload": "cyclic(bytes=32MiB)",
        "machine": "gh200",
        "eviction": "lrm",
        "near": "4MiB",
        "slots": 4,
        "dirty_only": True,
        "scale": "1/2",
    }
    found = {name(SPEC), *(name(SPEC.change(**{k: v})) for k, v in changes.items())}
    assert len(found) == 1 + len(changes)
    assert name(SPEC) == name(replace(SPEC))


def test_a_machine_counts_by_its_constants(tmp_path):
    default = load_machine(SPEC.default_machine)
    assert name(SPEC) == name(replace(SPEC, machine=default))
    assert name(SPEC) != name(replace(SPEC, machine=default.with_slots(3)))


def test_other_code_gives_other_names_and_the_command_line_does_not_count(monkeypatch):
    before = name(SPEC)
    monkeypatch.setattr(names, "code_digest", lambda without: "other")
    assert name(SPEC) != before
    assert {"cli", "studio", "experiments/sweeps"} <= set(NOT_HASHED)


def test_users_files_count_by_their_text_not_their_place(tmp_path, monkeypatch):
    found = []
    for folder in ("a", "b"):
        place = tmp_path / folder
        place.mkdir()
        (place / "mine.py").write_text(MINE)
        (place / "helper.py").write_text("def choose(order): return order.head\n")
        (place / "data.csv").write_text("1")
        monkeypatch.chdir(place)
        found.append(name(replace(SPEC, eviction="mine.py:Mine")))
        found.append(name(replace(SPEC, eviction=f"{place}/mine.py:Mine")))
    assert len(set(found)) == 1
    (tmp_path / "b" / "data.csv").write_text("2")
    found.append(name(replace(SPEC, eviction="mine.py:Mine")))
    (tmp_path / "b" / "helper.py").write_text("def choose(order): return order.tail\n")
    found.append(name(replace(SPEC, eviction="mine.py:Mine")))
    assert len(set(found)) == 3


def test_a_trace_counts_by_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_trace(RunSpec("cyclic(bytes=4MiB)").trace(), "t.parquet")
    before = name(RunSpec("t.parquet"))
    assert anchored(RunSpec("t.parquet"), {}).workload == str(tmp_path / "t.parquet")
    save_trace(RunSpec("cyclic(bytes=8MiB)").trace(), "t.parquet")
    assert name(RunSpec("t.parquet")) != before


def test_a_specification_on_its_way_names_files_by_their_whole_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sent = anchored(replace(SPEC, eviction="mine.py:Mine(lag=2)"), {})
    assert sent.eviction == f"{tmp_path}/mine.py:Mine(lag=2)"
    assert anchored(SPEC, {}) is SPEC


def test_settings_are_told_as_they_were_given():
    assert settings_of(SPEC) == (
        '{"workload": "cyclic(bytes=16MiB)", "eviction": "mru", "near": "8MiB"}'
    )


def test_what_cannot_be_named_is_refused():
    import threading

    from tidegate.policy import EvictionPolicy

    class Locked(EvictionPolicy):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

        def victim(self):
            return self.order.head

    with pytest.raises(TidegateError, match="cannot be named"):
        name(replace(SPEC, eviction=Locked()))

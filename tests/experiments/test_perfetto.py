"""Runs for Perfetto: JSON whose slices are the launches and whose counters add up."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tidegate
from tidegate.cli import invoke
from tidegate.experiments.perfetto import Residency, export_perfetto


@pytest.fixture
def spec():
    return tidegate.RunSpec("cyclic(bytes=16MiB, passes=3)", near="8MiB")


def test_slices_are_launches_and_counters_add_up(tmp_path, spec):
    residency = Residency()
    run = spec.run_watched(residency.note)
    data = json.loads(export_perfetto(run, tmp_path / "a.json", residency).read_text())
    events = data["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert [e["name"] for e in slices] == run.launches["name"].to_list()
    assert slices[-1]["ts"] + slices[-1]["dur"] == pytest.approx(run.time / 1e3)
    assert sum(e["args"]["faults"] for e in slices) == run.counts["faults"]
    named = {e["name"] for e in events if e["ph"] == "C"}
    assert {"link in, GB/s", "faults per ms", "near memory, MiB"} <= named
    near = [e["args"]["value"] for e in events if e["name"].startswith("near: ")]
    assert near
    assert max(near) <= 8
    times = run.timeline["time"].to_list()
    rates = [e for e in events if e["name"] == "link in, GB/s"]
    moved = sum(
        e["args"]["value"] * (end - begin)
        for e, begin, end in zip(rates, [0.0, *times], times, strict=False)
    )
    assert moved == pytest.approx(run.counts["pages_in"] * 65_536, rel=0.05)


def test_watching_changes_nothing(spec):
    assert spec.run_watched(Residency().note).counts == spec.run(cache=False).counts


def test_samples_stay_few():
    class Fake:
        trace = tidegate.RunSpec("cyclic(bytes=4MiB)").trace()
        books = [{"front": 0.0}]  # noqa: RUF012

        class memory:
            resident = np.zeros(2, int)

    residency = Residency()
    for _ in range(5000):
        residency.note(Fake, 1)
    assert len(residency.rows) < 1024


def test_the_command(tmp_path, capsys):
    out = tmp_path / "run.json"
    words = ["run", "cyclic(bytes=4MiB)", "--perfetto"]
    assert invoke([*words, str(out)]) == 0
    assert json.loads(out.read_text())["otherData"]["workload"] == "cyclic(bytes=4MiB)"
    assert invoke([*words, str(tmp_path / "run.txt")]) == 2
    assert "must end in .json" in capsys.readouterr().err
    exported = ["trace", "export", "cyclic(bytes=4MiB)", str(out), "--format", "perfetto"]
    assert invoke(exported) == 2
    assert "tidegate run cyclic(bytes=4MiB) --perfetto" in capsys.readouterr().err

"""Shared traces: the same runs, made once, within a limit, whoever makes them at the same time."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tidegate.experiments import RunSpec, trace_cache
from tidegate.experiments.trace_cache import forget_traces, shared_traces
from tidegate.trace.columns import ColumnTrace, columns_of

LARGE = "uniform(bytes=16MiB, touches=200000)"  # 2.2 MB of columns


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    from tidegate.compiled.jit import compiled_folder

    compiled_folder()  # stays where it is
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "cache"))
    forget_traces()


def files(tmp_path):
    return sorted((tmp_path / "cache" / "traces").glob("*.columns"))


@pytest.mark.parametrize("workload", ["cyclic(bytes=4MiB)", "matmul(bytes=4MiB)", "MM(bytes=8MiB)"])
def test_columns_hold_the_same_launches(workload):
    trace = RunSpec(workload).trace()
    copy = ColumnTrace(trace, b"".join(columns_of(trace)))
    for _ in range(2):
        for ours, theirs in zip(copy.launches(), trace.launches(), strict=True):
            assert vars(ours) | {"segments": 0} == vars(theirs) | {"segments": 0}
            for one, other in zip(ours.segments, theirs.segments, strict=True):
                for column in vars(one):
                    assert np.array_equal(getattr(one, column), getattr(other, column))
    assert (copy.identity(), copy.code_dependencies()) == (
        trace.identity(),
        trace.code_dependencies(),
    )


@pytest.mark.parametrize("workload", ["cyclic(bytes=4MiB)", LARGE])
def test_a_run_is_the_same_with_a_shared_trace(tmp_path, workload):
    spec = RunSpec(workload, oversubscribe="50%", slots=8)
    plain = spec.run(cache=False)
    with shared_traces():
        for _ in range(2):  # made, then mapped
            assert spec.run(cache=False) == plain
            forget_traces()
    assert len(files(tmp_path)) == (workload == LARGE)


def test_runs_outside_leave_no_files(tmp_path):
    RunSpec(LARGE).trace()
    assert not files(tmp_path)


def test_one_trace_serves_other_policies_and_sizes(tmp_path, monkeypatch):
    made = []
    real = trace_cache.columns_of
    monkeypatch.setattr(trace_cache, "columns_of", lambda t: (made.append(t.name), real(t))[1])
    with shared_traces():
        for eviction in ("lrm", "mru"):
            for near in ("4MiB", "8MiB"):
                RunSpec(LARGE, near=near, eviction=eviction).trace()
                forget_traces()
    assert len(made) == 1


def test_files_stay_within_the_limit_and_the_oldest_go_first(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEGATE_TRACES", "6MB")
    with shared_traces():
        for seed in range(4):
            RunSpec(f"{LARGE[:-1]}, seed={seed})").trace()
            for age, file in enumerate(reversed(files(tmp_path))):
                assert age < 3, file
    assert 1 <= len(files(tmp_path)) <= 2
    assert sum(f.stat().st_size for f in files(tmp_path)) <= 6_000_000


def test_a_trace_that_would_fill_the_cache_is_streamed(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEGATE_TRACES", "2MB")
    with shared_traces():
        assert not isinstance(RunSpec(LARGE).trace(), ColumnTrace)
    assert not files(tmp_path)


def test_a_damaged_file_is_made_anew(tmp_path):
    with shared_traces():
        RunSpec(LARGE).trace()
        (file,) = files(tmp_path)
        size = file.stat().st_size
        file.write_bytes(bytes(100))
        forget_traces()
        RunSpec(LARGE).trace()
        forget_traces()
        RunSpec(LARGE).trace()
    assert file.stat().st_size == size


def test_a_users_class_is_shared_only_if_it_says_so(tmp_path):
    text = (
        "import numpy as np\nfrom tidegate.workload import Launch, Workload, blocks_of\n"
        "class Own(Workload):\n    keep = {keep}\n"
        "    def sizes(self): return {{'a': 1 << 24}}\n"
        "    def launches(self, space):\n"
        "        yield Launch('all', [blocks_of(16, np.tile(np.arange(256), 500), bytes=64)])\n"
    )
    for keep in (False, True):
        (tmp_path / f"own{keep}.py").write_text(text.format(keep=keep))
        with shared_traces():
            RunSpec(f"{tmp_path}/own{keep}.py:Own").trace()
        assert bool(files(tmp_path)) == keep


TWO = f"""
import sys
from tidegate.experiments import RunSpec, trace_cache
real = trace_cache.columns_of
trace_cache.columns_of = lambda trace: (print("made", flush=True), real(trace))[1]
print("ready", flush=True)
sys.stdin.readline()
with trace_cache.shared_traces():
    assert RunSpec("{LARGE}").trace().name
"""


@pytest.mark.slow
def test_two_processes_make_one_file(tmp_path):
    """They begin at one time; whoever is second waits, and maps what the first has made."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", TWO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    said = [process.communicate("\n", timeout=120)[0] for process in started]
    assert sorted(said) == ["", "made\n"]
    assert len(files(tmp_path)) == 1

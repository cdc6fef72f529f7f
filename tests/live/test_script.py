"""Scripts that know nothing of arenas: their output and exit code are their own, their large arrays are live memory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tidegate.mechanism.geometry import Geometry
from tidegate.trace import TraceFile
from traces import machine, run_of

SMALL = ["--near", "1MiB", "--geometry", "16KiB/128KiB", "--min-array", "64KiB", "--eviction", "lrm", "--prefetch", "none"]


def live(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidegate", "live", verb, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text("import sys, threading\nimport numpy as np\n" + text)
    return str(path)


def test_a_script_runs_as_it_does_by_itself(tmp_path: Path) -> None:
    path = script(tmp_path, """
a = np.zeros(1 << 18)                                       # 2 MiB behind 1 MiB
a += np.arange(len(a))
grown = np.fromiter((float(i) for i in range(100_000)), float)  # realloc, from libc's memory into the arena's
a.resize(1 << 19)                                           # and from the arena's into the arena's
sums = []
thread = threading.Thread(target=lambda: sums.append(np.ones(1 << 18).sum()))
thread.start()
thread.join()
print(a.sum(), a[1 << 18 :].any(), grown.sum(), sums, sys.argv[1:], __name__)
sys.exit(int(sys.argv[2]))
""")  # fmt: skip
    alone = subprocess.run([sys.executable, path, "--near", "7"], capture_output=True, text=True, timeout=60)
    done = live("run", *SMALL, path, "--near", "7")
    assert alone.stdout
    assert (done.stdout, done.returncode) == (alone.stdout, alone.returncode) == (alone.stdout, 7)
    assert "evictions" in done.stderr
    assert not done.stderr.startswith("Traceback")


def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples" / "larger_than_ram.py"
    done = live("run", "--near", "8MiB", "--eviction", "mru", "--prefetch", "region", str(example), "1")
    assert (done.returncode, done.stdout) == (0, "mean 0.000, furthest 2.500\n"), done.stderr


def test_memory_of_arrays_that_are_gone_is_given_back(tmp_path: Path) -> None:
    path = script(tmp_path, """
import json, os
from tidegate.live.running import running_arenas
for i in range(20):
    b = np.full(1 << 17, i)                                 # 1 MiB: all of near memory, again and again
del b
c = np.ones(1 << 15)
print(json.dumps(*[a for a in running_arenas() if a["process"] == os.getpid()]))
""")  # fmt: skip
    done = live("run", "--quiet", *SMALL, path)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    stats = json.loads(done.stdout)
    assert [o["bytes"] for o in stats["objects"]] == [8 << 15]
    assert stats["objects"][0]["name"] == "script.py:9"
    assert stats["near_bytes"] == 2 * (128 << 10)
    assert stats["bytes_out"] <= 20 * (1 << 20)


def test_an_error_of_the_script_is_its_own(tmp_path: Path) -> None:
    done = live("run", "--quiet", *SMALL, script(tmp_path, "a = np.ones(1 << 18)\na[0] / {}\n"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[1].endswith('script.py", line 4, in <module>')
    assert "TypeError" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py"], "there is no script nowhere.py"),
        (["--near", "1KiB", __file__], "less than two regions"),
        (["--eviction", "belady", __file__], "sees every touch"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(arguments: list[str], said: str) -> None:
    done = live("run", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_ends_the_script_as_ever(tmp_path: Path) -> None:
    path = script(tmp_path, "import time\na = np.ones(1 << 18)\nprint('begun', flush=True)\ntime.sleep(50)\n")
    command = [sys.executable, "-m", "tidegate", "live", "run", *SMALL, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in said
    assert "evictions" in said  # the summary is there all the same


def test_a_recorded_script_faults_as_often_when_it_is_simulated(tmp_path: Path) -> None:
    target = tmp_path / "live.parquet"
    path = script(tmp_path, """
for _ in range(2):
    a = np.zeros(1 << 20, "u1")                             # the second one has the address of the first
    a[:: 16 << 10] = 1
    a[:: 16 << 10] = 2
    del a
b = np.zeros(4 << 20, "u1")
b[:: 16 << 10] = 1
b[:: 16 << 10] = 1
""")  # fmt: skip
    done = live("record", "-o", str(target), *SMALL, path)
    assert done.returncode == 0, done.stderr
    trace = TraceFile(target)
    assert trace.geometry == Geometry(16 << 10, 128 << 10)
    assert [o.name for o in trace.objects] == ["script.py:5", "script.py:5#2", "script.py:9"]
    run = run_of(trace, machine(), 8, eviction="lrm")
    assert run.counts["faults"] == run.counts["touches"] == 2 * 64 + 2 * 256
    assert f"{run.counts['faults']} faults" in done.stderr.replace(",", "")


def test_top_shows_rates(tmp_path: Path) -> None:
    path = script(tmp_path, "a = np.zeros(4 << 20, 'u1')\nprint('begun', flush=True)\nwhile True: a[:: 16 << 10] = 1\n")
    command = [sys.executable, "-m", "tidegate", "live", "run", *SMALL, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        shown = live("top", "--json", "--seconds", "0.5")
        table = live("top", "--seconds", "0.1")
        process.kill()
    (mine,) = [a for a in json.loads(shown.stdout) if a["process"] == process.pid]
    assert mine["faults_per_second"] > 10
    assert mine["hit_share"] is None  # lrm observes nothing
    assert mine["near_bytes"] == mine["near_limit"] == 1 << 20
    assert "script.py:3" in table.stdout

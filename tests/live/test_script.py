"""Scripts in an arena: output and exit code are their own, large arrays are live memory."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tidegate.trace import TraceFile
from tidegate.trace.geometry import Geometry
from traces import machine, run_of

pytestmark = pytest.mark.live

SMALL = [
    *("--near", "1MiB", "--geometry", "16KiB/128KiB", "--min-array", "64KiB"),
    *("--eviction", "lrm", "--prefetch", "none"),
]


def live(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidegate", "live", verb, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text("import sys, threading\nimport numpy as np\n" + text)
    return str(path)


@pytest.mark.slow
def test_a_script_runs_as_it_does_by_itself(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
a = np.zeros(1 << 18)                                       # 2 MiB behind 1 MiB
a += np.arange(len(a))
grown = np.fromiter((float(i) for i in range(100_000)), float)  # realloc from libc to the arena
a.resize(1 << 19, refcheck=False)                          # and from the arena's into the arena's
sums = []
thread = threading.Thread(target=lambda: sums.append(np.ones(1 << 18).sum()))
thread.start()
thread.join()
print(a.sum(), a[1 << 18 :].any(), grown.sum(), sums, sys.argv[1:], __name__)
sys.exit(int(sys.argv[2]))
""",
    )
    alone = subprocess.run(
        [sys.executable, path, "--near", "7"], capture_output=True, text=True, timeout=200
    )
    done = live("run", *SMALL, path, "--near", "7")
    assert alone.stdout
    assert (done.stdout, done.returncode) == (alone.stdout, alone.returncode) == (alone.stdout, 7)
    assert "evictions" in done.stderr
    assert not done.stderr.startswith("Traceback")


@pytest.mark.slow
def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples" / "larger_than_ram.py"
    done = live(
        "run", "--near", "8MiB", "--eviction", "mru", "--prefetch", "region", str(example), "1"
    )
    assert (done.returncode, done.stdout) == (0, "mean 0.000, furthest 2.500\n"), done.stderr


@pytest.mark.slow
def test_memory_of_arrays_that_are_gone_is_given_back(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
import json, os
from tidegate.live.arena import running
running._TIMEOUT = 60
for i in range(20):
    b = np.full(1 << 17, i)  # 1 MiB: all of near memory, again and again
del b
c = np.ones(1 << 15)
print(json.dumps(*[a for a in running.running_arenas() if a["process"] == os.getpid()]))
""",
    )
    done = live("run", "--quiet", *SMALL, path)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    stats = json.loads(done.stdout)
    assert [o["bytes"] for o in stats["objects"]] == [8 << 15]
    assert stats["objects"][0]["name"] == "script.py:10"
    assert stats["near_bytes"] == 2 * (128 << 10)
    assert stats["bytes_out"] <= 20 * (1 << 20)


@pytest.mark.slow
def test_an_error_of_the_script_is_its_own(tmp_path: Path) -> None:
    done = live("run", "--quiet", *SMALL, script(tmp_path, "a = np.ones(1 << 18)\na[0] / {}\n"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[1].endswith('script.py", line 4, in <module>')
    assert "TypeError" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py"], "there is no script nowhere.py"),
        ([str(Path(__file__).parent)], "is a folder; give a script"),
        (["--near", "1KiB", __file__], "a smaller region with --geometry\n"),
        (["--tiering", "tier-reuse", __file__], "--tiering was given without --middle"),
        (["--eviction", "belady", __file__], "sees every touch"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(arguments: list[str], said: str) -> None:
    done = live("run", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("text", ["def f(:\n", "import sys\nsys.nothing\n", "import broken\n"])
def test_what_python_says_of_a_broken_script_is_said(text: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 +\n")
    path = tmp_path / "script.py"
    path.write_text(text)
    alone = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=200)
    done = live("run", "--quiet", str(path))
    assert "Error" in alone.stderr
    assert (done.stderr, done.returncode) == (alone.stderr, alone.returncode)


@pytest.mark.slow
def test_what_follows_the_script_is_its_own(tmp_path: Path) -> None:
    path = script(tmp_path, "print(sys.argv, sys.path[0], __file__, __spec__, sorted(globals()))\n")
    words = [path, "--debug", "--json", "x", "--debug"]
    alone = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=200)
    done = live("run", "--debug", "--quiet", "--near=4MiB", *words)
    assert (done.stdout, done.stderr) == (alone.stdout, "")
    assert alone.stdout.count("--debug") == 2


@pytest.mark.slow
def test_threads_that_outlive_the_last_line_find_the_scripts_names(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
import pickle, time
class Mine: pass
def late():
    time.sleep(0.3)
    print(type(pickle.loads(pickle.dumps(Mine()))).__name__, sys.modules["__main__"].Mine is Mine)
threading.Thread(target=late).start()
""",
    )
    done = live("run", "--quiet", *SMALL, path)
    assert (done.stdout, done.stderr) == ("Mine True\n", "")


@pytest.mark.slow
def test_three_tiers(tmp_path: Path) -> None:
    path = script(tmp_path, "a = np.arange(1 << 18)\nprint(a.sum())\n")
    done = live("run", *SMALL, "--middle", "1MiB", "--tiering", "tier-reuse", path)
    assert done.stdout == f"{(1 << 18) * ((1 << 18) - 1) // 2}\n"
    assert done.stderr.startswith(
        "tidegate: 1 array in 1.00 MiB of near memory, lrm + none + tier-reuse: "
    )


AT_THIS_MOMENT = """
import os, signal, sys

def hook(event, arguments):
    global waiting
    if waiting and event == {event!r} and {word!r} in str(arguments):
        waiting = False
        os.kill(os.getpid(), signal.SIGINT)

waiting = True
if ["-m", {module!r}] in (sys.orig_argv[1:3], sys.orig_argv[2:4]):  # after `-P`, or first
    sys.addaudithook(hook)
"""
COMMAND, PROCESS = "tidegate", "tidegate.live.script.run"  # the command line, and what it becomes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "event", "word", "said"),
    [
        (COMMAND, "import", "tidegate.cli.reproduce", "stopped"),
        (COMMAND, "import", "tidegate.live.script.run", "stopped; nothing was written"),
        # it may come before or after: the signal is blocked here, in this thread
        (COMMAND, "os.exec", "tidegate.live.script.run", "stopped(; nothing was written)?"),
        (PROCESS, "import", "tidegate.units", "stopped"),  # blocked until imports have begun
        (PROCESS, "import", "numpy", "stopped"),
        (PROCESS, "open", "test_ctrl_c", "stopped"),  # the store
        (PROCESS, "subprocess.Popen", "supervisor", "stopped"),
        (PROCESS, "fcntl.fcntl", str(signal.SIGBUS.value), "stopped"),  # the arena is there
        (PROCESS, "compile", "script.py", "stopped"),
    ],
)
def test_ctrl_c_while_it_starts_is_one_line(
    module: str, event: str, word: str, said: str, tmp_path: Path
) -> None:
    """In the command line's imports, in those of the process that runs the script, or later."""
    (tmp_path / "sitecustomize.py").write_text(
        AT_THIS_MOMENT.format(module=module, event=event, word=word)
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    store = str(tmp_path / "store")
    command = [sys.executable, "-m", "tidegate", "live", "run", "--store", store]
    command.append(script(tmp_path, ""))
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=200
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert re.fullmatch(f"tidegate: {said}\n", done.stderr), done.stderr
    assert not (tmp_path / "store").exists()


@pytest.mark.slow
def test_ctrl_c_ends_the_script_as_ever(tmp_path: Path) -> None:
    path = script(
        tmp_path, "import time\na = np.ones(1 << 18)\nprint('begun', flush=True)\ntime.sleep(300)\n"
    )
    command = [sys.executable, "-m", "tidegate", "live", "run", *SMALL, path]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=200)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in said
    assert "evictions" in said  # the summary is there all the same


@pytest.mark.slow
def test_ctrl_c_while_memory_is_allocated_is_raised(tmp_path: Path) -> None:
    path = script(tmp_path, "print('begun', flush=True)\nwhile True:\n    a = np.empty(1 << 15)\n")
    command = [sys.executable, "-m", "tidegate", "live", "run", "--quiet", *SMALL, path]
    for seconds in (0.05, 0.06, 0.07):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=200)
        assert process.returncode == -signal.SIGINT, said
        assert said.splitlines()[-1] == "KeyboardInterrupt"


def test_a_recorded_script_faults_as_often_when_it_is_simulated(tmp_path: Path) -> None:
    target = tmp_path / "live.parquet"
    path = script(
        tmp_path,
        """
for _ in range(2):
    a = np.zeros(1 << 20, "u1")  # the second one has the address of the first
    a[:: 16 << 10] = 1
    a[:: 16 << 10] = 2
    del a
b = np.zeros(4 << 20, "u1")
b[:: 16 << 10] = 1
b[:: 16 << 10] = 1
""",
    )
    done = live("record", "-o", str(target), *SMALL, path)
    assert done.returncode == 0, done.stderr
    trace = TraceFile(target)
    assert trace.geometry == Geometry(16 << 10, 128 << 10)
    assert [o.name for o in trace.objects] == ["script.py:5", "script.py:5#2", "script.py:9"]
    run = run_of(trace, machine(), 8, eviction="lrm")
    assert run.counts["faults"] == run.counts["touches"] == 2 * 64 + 2 * 256
    assert f"{run.counts['faults']} faults" in done.stderr.replace(",", "")


@pytest.mark.slow
def test_a_script_without_large_arrays_leaves_no_trace(tmp_path: Path) -> None:
    target = tmp_path / "none.parquet"
    done = live("record", "-o", str(target), *SMALL, script(tmp_path, "print('done')\n"))
    assert (done.returncode, done.stdout) == (2, "done\n")
    assert done.stderr.splitlines()[1:] == [
        "tidegate: nothing was recorded: no large array was used"
    ]
    assert not target.exists()


@pytest.mark.slow
def test_a_quiet_recording_says_nothing(tmp_path: Path) -> None:
    path, target = script(tmp_path, "a = np.ones(1 << 18)\n"), tmp_path / "my.parquet"
    done = live("record", "--quiet", "-o", str(target), *SMALL, path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert target.exists()


@pytest.mark.slow
def test_a_trace_that_cannot_be_saved_after_all_is_an_error_but_the_scripts_own_comes_first(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "gone"
    path = script(
        tmp_path,
        "import os\na = np.ones(1 << 18)\nos.rmdir(sys.argv[1])\nsys.exit(int(sys.argv[2]))\n",
    )
    for own, expected in ((0, 2), (7, 7)):
        folder.mkdir()
        target = str(folder / "my.parquet")
        done = live("record", "--quiet", "-o", target, *SMALL, path, str(folder), str(own))
        assert done.returncode == expected
        assert "cannot write" in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("", "ends in .parquet"),
        ("x.txt", "ends in .parquet"),
        (".", "is a folder"),
        ("/proc/x.parquet", "in /proc"),
        ("nowhere/x.parquet", "there is no folder"),
    ],
)
def test_where_no_trace_can_be_written_is_said_before_the_script_runs(
    target: str, said: str, tmp_path: Path
) -> None:
    done = live("record", "-o", target, script(tmp_path, "print('it ran')\n"))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["-3", "nan", "inf"])
def test_top_waits_for_no_impossible_time(seconds: str) -> None:
    done = live("top", "--seconds", seconds)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--seconds must be from 0 to 86400" in done.stderr


@pytest.mark.slow
def test_top_shows_rates(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "a = np.zeros(4 << 20, 'u1')\na[:: 16 << 10] = 1\nprint('begun', flush=True)\n"
        "while True: a[:: 16 << 10] = 1\n",
    )
    command = [sys.executable, "-m", "tidegate", "live", "run", *SMALL, path]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        shown = live("top", "--json", "--seconds", "0.5")
        table = live("top", "--seconds", "0.1")
        process.kill()
    (mine,) = [a for a in json.loads(shown.stdout) if a["process"] == process.pid]
    assert mine["faults_per_second"] > 10
    assert mine["hit_share"] is None  # lrm observes nothing
    assert mine["near_bytes"] == mine["near_limit"] == 1 << 20
    assert "script.py:3" in table.stdout

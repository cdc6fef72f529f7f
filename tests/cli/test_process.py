"""The command as a process: exit codes, what it loads, Ctrl-C, pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from cli.conftest import SCRIPT, Answer

LONG = """
import pathlib, time
from tidegate.policy import EvictionPolicy
from tidegate.workload import Launch, Workload, blocks_of

class Long(Workload):
    def sizes(self):
        return {"a": 16 << 20}

    def launches(self, space):
        while True:
            pathlib.Path("reading").touch()
            yield Launch("k", [blocks_of(4, range(256), bytes=4096)])

class Slow(EvictionPolicy):
    def on_fault(self, region):
        self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        pathlib.Path("asked").touch()
        time.sleep(0.05)
        return self.order.head
"""


def interrupted(folder, words: list[str], when: str, within: float = 60) -> Answer:
    """Type a command, and Ctrl-C once a file matching ``when`` is there.

    A terminal sends it to workers too.
    """
    ran = subprocess.Popen(
        [SCRIPT, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        patience = time.monotonic() + 240  # the first run of a state of the source compiles
        while not list(folder.glob(when)):
            assert ran.poll() is None, ran.communicate()
            assert time.monotonic() < patience
            time.sleep(0.02)
        os.killpg(ran.pid, signal.SIGINT)
        out, err = ran.communicate(timeout=within)
        return Answer(ran.returncode, out, err)
    finally:
        if ran.poll() is None:
            os.killpg(ran.pid, signal.SIGKILL)
            ran.communicate()


@pytest.fixture
def long(tmp_path):
    """A folder with a workload without end and a policy that takes its time."""
    (tmp_path / "long.py").write_text(LONG)
    return tmp_path


def left_in(folder) -> set[str]:
    return {p.name for p in folder.iterdir()} - {"long.py", "reading", "asked", "__pycache__"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "when"),
    [
        pytest.param("run long.py:Long --plot out.png --no-cache", "reading", id="run"),
        pytest.param(
            "run long.py:Long --eviction long.py:Slow --plot out.png --no-cache",
            "asked",
            id="run, in a policy",
        ),
        pytest.param(
            "compare long.py:Long -e lrm --plot out.png --no-cache", "reading", id="compare"
        ),
        pytest.param("analyze long.py:Long --plot out.png", "reading", id="analyze"),
        pytest.param("trace info long.py:Long", "reading", id="trace info"),
    ],
)
def test_ctrl_c_stops_and_leaves_nothing(long, command, when):
    answer = interrupted(long, command.split(), when)
    assert answer.code == 130
    assert "Traceback" not in answer.err
    assert answer.out == ""
    assert left_in(long) == set()


@pytest.mark.slow
def test_ctrl_c_while_a_trace_is_saved_leaves_no_half_file(long):
    (long / "out.parquet").write_text("old")
    answer = interrupted(
        long, ["trace", "save", "long.py:Long", "out.parquet"], ".out.parquet.*.part"
    )
    assert answer.code == 130
    assert "Traceback" not in answer.err
    assert left_in(long) == {"out.parquet"}
    assert (long / "out.parquet").read_text() == "old"


@pytest.mark.slow
def test_ctrl_c_stops_workers_too(long):
    words = [
        "compare",
        "long.py:Long",
        "-e",
        "lrm,fifo,mru",
        "--workers",
        "2",
        "--no-belady",
        "--no-cache",
        "--plot",
        "out.png",
    ]
    answer = interrupted(long, words, "reading")
    assert answer.code == 130
    assert "Traceback" not in answer.err
    assert left_in(long) == set()


@pytest.mark.slow
def test_ctrl_c_says_that_nothing_was_written(long):
    answer = interrupted(long, ["run", "long.py:Long", "--no-cache"], "reading")
    assert answer.err == "tidegate: stopped; nothing was written\n"


@pytest.mark.slow
def test_exit_codes(process, small):
    assert process("run", small).code == 0
    wrong = process("run", "cyclc")
    assert (wrong.code, wrong.out, wrong.err.count("\n")) == (2, "", 1)
    assert "Traceback" not in wrong.err


@pytest.mark.slow
def test_debug_shows_a_traceback(process):
    answer = process("--debug", "run", "cyclc")
    assert answer.code != 0
    assert answer.err.startswith("Traceback")
    assert "did you mean 'cyclic'?" in answer.err


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["run", "--help"],
        ["compare", "--help"],
        ["analyze", "--help"],
        ["trace", "--help"],
    ],
)
def test_help_loads_nothing_heavy(words):
    code = (
        "import sys; from tidegate.cli import invoke; "
        f"invoke({words}); print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stderr.split())
    assert "tidegate.cli" in loaded
    assert not loaded & {"numba", "numpy", "polars", "matplotlib", "llvmlite"}


@pytest.mark.slow
@pytest.mark.parametrize("module", ["numba", "matplotlib"])
def test_looking_into_a_trace_does_not_wait_for(module, tmp_path):
    code = (
        "import sys; from tidegate.cli import invoke; "
        f"invoke(['list', 'machines']); sys.exit({module!r} in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=tmp_path).returncode
        == 0
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["list", "policies"],
        ["list", "policies", "--json"],
        ["--help"],
        ["run", "cyclic(bytes=16MiB)", "--csv"],
    ],
)
def test_a_reader_that_has_gone_away_is_no_error(words):
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run([SCRIPT, *words], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert ran.stderr == ""
    assert ran.returncode != 2


@pytest.mark.slow
def test_head(tmp_path):
    ran = subprocess.run(
        f"{SCRIPT} list policies --csv | head -1", shell=True, capture_output=True, text=True
    )
    assert ran.stdout == "kind,policy,sees,what,options\n"
    assert ran.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("words", ["run", "compare -e lrm --no-belady", "analyze"])
def test_the_picture_is_drawn_even_if_the_reader_goes_away(words, small, tmp_path):
    path = tmp_path / "picture.png"
    verb, *rest = words.split()
    reader, writer = os.pipe()
    os.close(reader)
    subprocess.run([SCRIPT, verb, small, *rest, "--plot", path], stdout=writer, check=False)
    os.close(writer)
    assert path.stat().st_size > 1000


@pytest.mark.slow
def test_a_full_disk_is_one_line(small):
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [SCRIPT, "list", "policies"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ran.returncode == 2
    assert ran.stderr == "tidegate: No space left on device: standard output\n"


def test_a_store_that_cannot_be_written_to_loses_no_result(works, small, tmp_path, monkeypatch):
    words = ["run", small, "--near", "6MiB", "--json"]
    expected = works(*words, "--no-cache").out
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "file" / "cache"))
    assert works(*words).out == expected


def test_python_m():
    ran = subprocess.run(
        [sys.executable, "-m", "tidegate", "list", "systems", "--csv"],
        capture_output=True,
        text=True,
    )
    assert ran.stdout.startswith("system,")


SCRIPT_OF_MINE = """
import tidegate
race = tidegate.compare("cyclic(bytes=16MiB, passes=1)", oversubscribe=["50%", "100%"], workers=2)
print(len(race.runs))
"""


@pytest.mark.slow
def test_a_plain_script_can_compare(tmp_path):
    (tmp_path / "mine.py").write_text(SCRIPT_OF_MINE)
    ran = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert ran.stdout == "14\n", ran.stderr


SCRIPT_WITH_A_POLICY = """
import tidegate

class Lowest(tidegate.policy.EvictionPolicy):
    def victim(self):
        return min(self.resident)

if __name__ == "__main__":
    sizes = ["4MiB", "8MiB"]
    workload = "cyclic(bytes=16MiB, passes=1)"
    race = tidegate.compare(workload, [Lowest()], bound=False, near=sizes, workers=2)
    print(len(race.runs))
"""


@pytest.mark.slow
def test_a_script_can_compare_a_policy_of_its_own(tmp_path):
    (tmp_path / "mine.py").write_text(SCRIPT_WITH_A_POLICY)
    ran = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert ran.stdout == "2\n", ran.stderr

"""Policies, workloads and machines of one's own: from a file, and from an installed package."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tidegate as library
from tidegate.policies.eviction.fifo import FIFO

NEWEST = '''
from tidegate.policy import EvictionPolicy, Option

class Newest(EvictionPolicy):
    """Evict what came last, but for the `spared` last ones."""

    spared = Option(0, "regions left alone", least=0)

    def on_fault(self, region):
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        return list(self.order)[max(-len(self.order), -1 - self.spared)]

    def finished(self):
        assert set(self.order) == self.resident
'''
TWICE = """
from tidegate.workload import Launch, Option, Provenance, Workload, blocks_of
from tidegate.units import size

class Twice(Workload):
    provenance = Provenance.DERIVED
    bytes = Option(size("16MiB"), "size of the array", parse=size, least=1)

    def sizes(self):
        return {"array": self.bytes}

    def launches(self, space):
        a, page = space["array"], space.geometry.page
        for name in ("read", "write"):
            pages = range(a.first_page, a.first_page + a.pages)
            yield Launch(name, [blocks_of(8, pages, bytes=page, write=name == "write")])
"""
MINE = """
offers = ["faults"]
geometry = { page = "4KiB", region = "64KiB" }
near = { sms = 2, blocks_per_sm = 3, bytes = "1GiB", bandwidth = "500GB/s", flops = "10TFLOPS" }

[driver]
batch_faults = 8
batch_overhead = "20us"
region_overhead = "0us"
unmap_per_kib = "0us"

[link]
inward = "10GB/s"
outward = "10GB/s"
both = "15GB/s"
run_overhead = "1us"
remote_share = "90%"
remote_latency = "1us"
"""


@pytest.fixture
def newest(tmp_path):
    (tmp_path / "newest.py").write_text(NEWEST)
    return "newest.py:Newest"


# Policies


def test_run_takes_a_policy_from_a_file(works, small, newest):
    summary = works(
        "run",
        small,
        "--eviction",
        newest,
        "--slots",
        "1",
        "--prefetch",
        "none",
        "--near",
        "8MiB",
        "--json",
    ).json["summary"]
    assert summary["eviction"] == "Newest"
    # eight regions through four frames: 0, 1 and 2 stay, and the others take turns in the fourth
    # frame
    assert summary["evictions"] == 4 + 5


def test_its_class_need_not_be_named_if_it_is_the_only_one(works, small, newest):
    named = works("run", small, "--eviction", newest, "--json").json
    assert works("run", small, "--eviction", "newest.py", "--json").json == named


def test_its_options_are_read(works, small, newest):
    def summary(how: str) -> dict:
        return works(
            "run",
            small,
            "--eviction",
            how,
            "--slots",
            "1",
            "--prefetch",
            "none",
            "--near",
            "8MiB",
            "--json",
        ).json["summary"]

    assert summary(f"{newest}(spared=0)")["eviction"] == "Newest"
    oldest = summary(f"{newest}(spared=3)")
    assert oldest["eviction"] == "Newest(spared=3)"
    assert oldest["evictions"] == summary("fifo")["evictions"] == 16 - 4


def test_compare_races_it(works, small, newest, tmp_path):
    out = works("compare", small, "-e", f"lrm,{newest}(spared=2)", "--plot", "race.svg").out
    assert "  Newest(spared=2) " in out
    assert "Newest(spared=2)" in (tmp_path / "race.svg").read_text()


@pytest.mark.slow
def test_it_runs_in_worker_processes(works, small, newest):
    words = [
        "compare",
        small,
        "-e",
        newest,
        "--no-belady",
        "--oversubscribe",
        "50%,100%",
        "--no-cache",
        "--json",
        "--workers",
    ]
    assert works(*words, "2").json == works(*words, "1").json


def test_a_path_may_lead_anywhere(works, small, tmp_path):
    folder = tmp_path / "a folder" / "of mine"
    folder.mkdir(parents=True)
    (folder / "own.py").write_text(NEWEST)
    assert "  Newest " in works("compare", small, "-e", f"{folder}/own.py:Newest").out


def test_a_policy_with_a_name_of_its_own_is_called_by_it(works, small, tmp_path):
    named = NEWEST.replace(
        "from tidegate.policy", "from tidegate.plugins import eviction\nfrom tidegate.policy"
    )
    (tmp_path / "newest.py").write_text(
        named.replace("\nclass", '\n@eviction("the-newest")\nclass')
    )
    assert "the-newest + tree + um" in works("run", small, "--eviction", "newest.py:Newest").out


def test_prefetch_and_placement_come_from_files_too(works, small, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from tidegate.policy import PlacementPolicy, PrefetchPolicy\n"
        "class All(PrefetchPolicy):\n    def start(self): self.memory.set_prefetch_threshold(0)\n"
        "class Far(PlacementPolicy):\n"
        "    def on_launch(self, launch): self.memory.advise(0, 256, 'far')\n"
    )
    by_name = works("run", small, "--prefetch", "region", "--json").json["summary"]
    by_file = works("run", small, "--prefetch", "mine.py:All", "--json").json["summary"]
    assert by_file.pop("prefetch") == "All"
    assert by_name.pop("prefetch") == "region"
    assert by_file == by_name
    assert (
        works("run", small, "--placement", "mine.py:Far", "--json").json["summary"][
            "remote_touches"
        ]
        == 512
    )


@pytest.mark.slow
def test_an_edited_policy_is_run_anew_by_the_next_command(process, small, tmp_path):
    """Each command is a process of its own; runs of the old text must not come from the store."""
    counts = []
    for end in ("head", "tail"):
        text = NEWEST.replace(
            "list(self.order)[max(-len(self.order), -1 - self.spared)]", f"self.order.{end}"
        )
        (tmp_path / "newest.py").write_text(text)
        counts.append(process("run", small, "--eviction", "newest.py", "--csv").out)
    assert counts[0] != counts[1]


def test_an_edited_policy_is_run_anew_in_the_same_process(tmp_path):
    file, counts = tmp_path / "mine.py", []
    for end in ("head", "tail"):
        file.write_text(
            NEWEST.replace(
                "list(self.order)[max(-len(self.order), -1 - self.spared)]", f"self.order.{end}"
            )
        )
        run = library.run(
            "cyclic(bytes=16MiB, passes=2)",
            eviction=f"{file}:Newest",
            slots=1,
            prefetch="none",
            cache=False,
        )
        counts.append(run.counts["evictions"])
    assert counts[0] != counts[1]


# Policies as objects, from Python


class Kept(library.policy.EvictionPolicy):
    """First in, first out, or the other way round."""

    def __init__(self, last: bool = False):
        super().__init__()
        self.last = last

    def on_fault(self, region):
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        return self.order.tail if self.last else self.order.head


class LastFirst(FIFO):
    """A shipped policy with another idea of whom to evict."""

    def victim(self):
        return self.order.tail


def evictions(policy, **how) -> int:
    run = library.run(
        "cyclic(bytes=16MiB, passes=2)",
        eviction=policy,
        slots=1,
        prefetch="none",
        near="8MiB",
        **how,
    )
    return run.counts["evictions"]


def test_a_policy_can_be_given_as_an_object():
    assert evictions(Kept(), cache=False) == evictions("fifo") == 12


def test_a_class_made_from_a_shipped_one_decides_for_itself():
    assert evictions(LastFirst(), cache=False) == evictions(
        LastFirst(), cache=False, compiled=False
    )


def test_objects_that_differ_are_different_runs():
    assert evictions(Kept(last=False)) != evictions(Kept(last=True))


def test_an_object_can_run_twice():
    policy = Kept()
    assert evictions(policy, cache=False) == evictions(policy, cache=False)


class Counting(Kept):
    """A policy with an array of its own."""

    def __init__(self):
        super().__init__()
        self.counts = np.zeros(8)


def test_an_object_may_hold_an_array():
    assert evictions(Counting()) == 12


def test_a_class_may_be_given_in_place_of_an_object():
    assert evictions(Kept) == 12


@pytest.mark.slow
@pytest.mark.parametrize("racers", ["fifo,copy.py:FIFO", "copy.py:FIFO,fifo"])
def test_a_copy_of_a_shipped_policy_races_the_original(process, small, tmp_path, racers):
    import tidegate.policies.eviction.fifo as shipped

    with open(shipped.__file__) as file:
        (tmp_path / "copy.py").write_text(file.read())
    ran = process("compare", small, "-e", racers)
    assert ran.code == 0, ran.err
    assert "  fifo " in ran.out
    assert "  FIFO " in ran.out


# Workloads


def test_a_workload_from_a_file(works, tmp_path):
    (tmp_path / "twice.py").write_text(TWICE)
    data = works("run", "twice.py:Twice", "--near", "8MiB", "--json").json
    assert data["summary"]["workload"] == "Twice"
    assert data["summary"]["provenance"] == "derived"
    assert data["launches"]["name"] == ["read", "write"]
    small = works("run", "twice.py:Twice(bytes=8MiB)", "--json").json
    assert small["summary"]["footprint_bytes"] == 8 << 20
    assert works("run", "twice.py:Twice", "--bytes", "8MiB", "--json").json == small
    assert works("analyze", "twice.py", "--json").json["touches"] == 512
    info = works("trace", "info", "twice.py", "--json").json
    assert (info["touches"], info["writes"]) == (512, 256)
    assert "  lrm " in works("compare", "twice.py:Twice").out


def test_a_workload_from_a_file_can_be_saved_and_run_from_there(works, tmp_path):
    (tmp_path / "twice.py").write_text(TWICE)
    works("trace", "save", "twice.py:Twice", "t.parquet")
    (tmp_path / "twice.py").unlink()
    assert works("run", "t.parquet", "--json").json["launches"]["name"] == ["read", "write"]


# Machines


def test_a_machine_from_a_file(works, small, tmp_path):
    (tmp_path / "mine.toml").write_text(MINE)
    summary = works("run", small, "--machine", "mine.toml", "--json").json["summary"]
    assert summary["machine"] == "mine"  # the file's name, as it gives none itself
    assert summary["slots"] == 6
    assert summary["geometry"] == "4.00 KiB / 64.0 KiB"
    assert summary["touches"] == 2 * 4096
    assert "  lrm " in works("compare", small, "--machine", "mine.toml", "-e", "lrm").out


def test_an_edited_machine_is_another_machine(works, small, tmp_path):
    times = []
    for speed in ("10GB/s", "5GB/s"):
        (tmp_path / "mine.toml").write_text(
            MINE.replace('inward = "10GB/s"', f'inward = "{speed}"')
        )
        times.append(
            works("run", small, "--machine", "mine.toml", "--json").json["summary"]["time_ns"]
        )
    assert times[0] < times[1]


# Installed packages


def installed(folder, points: str, code: str) -> dict[str, str]:
    """Lay a package out as pip would, and answer the environment in which Python finds it."""
    (folder / "plugin.py").write_text(code)
    info = folder / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
    }


@pytest.mark.slow
def test_an_installed_policy_works_by_name(process, tmp_path):
    points = (
        "[tidegate.eviction]\nnewest = plugin:Newest\n[tidegate.workload]\ntwice = plugin:Twice\n"
    )
    env = installed(tmp_path, points, NEWEST + TWICE)
    ran = process("compare", "twice", "-e", "lrm,newest(spared=1),Newest", env=env)
    assert ran.code == 0, ran.err
    assert "  newest(spared=1) " in ran.out
    assert "  newest(spared=0) " in ran.out
    assert "Evict what came last" in process("list", "policies", env=env).out
    assert "did you mean 'newest'?" in process("run", "twice", "--eviction", "newst", env=env).err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("points", "said"),
    [
        ("newest = plugin:Gone", "eviction 'newest' of package plugin:Gone cannot be loaded"),
        ("newest = nowhere:Newest", "eviction 'newest' of package nowhere:Newest cannot be loaded"),
        ("lrm = plugin:Newest", "eviction 'lrm' is registered twice"),
        pytest.param("newest = plugin:Option", "newest"),
    ],
)
def test_a_broken_package_is_named_in_one_line(process, small, tmp_path, points, said):
    env = installed(tmp_path, f"[tidegate.eviction]\n{points}\n", NEWEST)
    ran = process("run", small, "--eviction", "newest", env=env)
    assert ran.code == 2
    assert ran.err.count("\n") == 1, ran.err
    assert said in ran.err

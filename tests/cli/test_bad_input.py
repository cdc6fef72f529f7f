"""Mistakes a user makes: each gets one line that says what was given, exit code 2, and every file
left as it was.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest

from tidegate.machine import machine
from tidegate.trace import save_trace
from tidegate.workloads import workloads

pytestmark = pytest.mark.filterwarnings("error")  # a warning would be a second line


def typed(command: str) -> list[str]:
    """The words of a command; SMALL is a workload of eight regions."""
    return [word.replace("SMALL", "cyclic(bytes=16MiB, passes=1)") for word in shlex.split(command)]


def mistake(command: str, *said: str, **how):
    """A command, and what its one line must say."""
    return pytest.param(command, said, id=command, **how)


# Words that are not understood


@pytest.mark.parametrize(
    ("command", "said"),
    [
        # names, with the nearest one
        mistake("run cyclc", "unknown workload 'cyclc'", "did you mean 'cyclic'?"),
        mistake("run nothing-like-it", "unknown workload 'nothing-like-it'", "Known: 2DC, AN,"),
        mistake("run SMALL --eviction lrmm", "unknown eviction 'lrmm'", "did you mean 'lrm'?"),
        mistake("run SMALL --prefetch tre", "unknown prefetch 'tre'", "did you mean 'tree'?"),
        mistake("run SMALL --placement hots", "unknown placement 'hots'", "did you mean 'host'?"),
        mistake("run SMALL --system uvn", "unknown system 'uvn'", "did you mean 'uvm'?"),
        mistake(
            "run SMALL --machine rtx309",
            "unknown machine 'rtx309'",
            "did you mean 'rtx3090-pcie4'?",
        ),
        mistake("run SMALL --machine none.toml", "none.toml", "rtx3090-pcie4"),
        # a prefetcher is no eviction policy
        mistake("run SMALL --eviction tree", "unknown eviction 'tree'"),
        mistake("compare SMALL --system uvm,uvn", "unknown system 'uvn'", "did you mean 'uvm'?"),
        mistake("compare SMALL --system uvm,lru -e lrm", "system and eviction were both given"),
        mistake("compare SMALL --system uvm,uvm", "give each once"),
        mistake("run SMALL --scale 0", "scale must be positive, such as 1/8, got 0"),
        mistake("run SMALL --observed 0", "observed must be a whole number, at least 1, got 0"),
        mistake("run SMALL --samples -1", "samples must be a whole number, at least 0, got -1"),
        mistake("reproduce observuv", "'observuv'", "observuvm"),
        mistake("reproduce nothing-like-it", "'nothing-like-it'", "Known: observuvm, tide, gmt,"),
        mistake(
            "reproduce",
            "'tidegate reproduce' needs one of observuvm,",
            "See 'tidegate reproduce --help'.",
        ),
        mistake("list", "Missing argument 'kind'", "workloads, policies"),
        mistake(
            "list nonsense",
            "kind: 'nonsense' is not one of 'workloads'",
            "See 'tidegate list --help'.",
        ),
        mistake(
            "run SMALL --slots x",
            "--slots must be a whole number, got x. See 'tidegate run --help'.",
        ),
        mistake("compare SMALL --workers 0", "--workers must be at least 1, got 0."),
        mistake(
            "reproduce gmt --factor x",
            "--factor must be numbers with commas, such as 4,9,14, got x",
        ),
        mistake("reproduce observuvm --oversubscribe lots", "oversubscribe must be", "got 'lots'"),
        mistake("reproduce observuvm --scale 0", "scale must be positive"),
        mistake("reproduce observuvm --observed 0", "observed must be at least 1 region"),
        mistake("reproduce observuvm --samples -2", "samples must be at least 1"),
        mistake("reproduce observuvm --out nowhere/r.html", "nowhere"),
        mistake("reproduce observuvm --out r.txt", "r.txt", ".html"),
        mistake("compare SMALL -e lrm,lrmm", "unknown eviction 'lrmm'", "did you mean 'lrm'?"),
        mistake("analyze cyclc", "did you mean 'cyclic'?"),
        mistake("trace save cyclc out.parquet", "did you mean 'cyclic'?"),
        mistake("trace info cyclc", "did you mean 'cyclic'?"),
        mistake("list polices", "'polices'", "policies"),
        mistake("analyze SMALL --unit regn", "'regn'", "'region'"),
        # verbs and options of the command line
        mistake("rnu", "'rnu'"),
        mistake("trace sav", "'sav'", "'save'"),
        mistake("trace", "needs one of save, info", "tidegate trace --help"),
        mistake("run", "workload"),
        mistake("list", "kind"),
        mistake("run SMALL --evictoin lrm", "--evictoin", "--eviction"),
        mistake("run SMALL --near", "--near"),
        mistake("run SMALL extra", "extra"),
        mistake("run SMALL --slots x", "--slots"),
        mistake("run SMALL --json --csv", "--json and --csv"),
        mistake("list policies --json --csv", "--json and --csv"),
        # options in brackets
        mistake("run 'cyclic(bytes=16MiB'", "cyclic(bytes=16MiB"),
        mistake("run 'cyclic)bytes('", "cyclic)bytes("),
        mistake("run 'cyclic(16MiB)'", "'16MiB'", "option=value"),
        mistake("run 'cyclic(bytes=)'", "'bytes='", "option=value"),
        mistake("run 'cyclic(byts=1MiB)'", "'byts'", "did you mean 'bytes'?"),
        mistake("run 'cyclic(bytes=1MiB, bytes=2MiB)'", "'bytes' is given twice"),
        mistake("run 'cyclic(bytes=16MiB)' --bytes 16MiB", "give it once"),
        mistake("run SMALL --eviction 'random(sed=1)'", "'sed'", "did you mean 'seed'?"),
        mistake("run SMALL --eviction 'lrm(depth=1)'", "lrm takes no options", "'depth'"),
        mistake("run ''", "cannot read ''"),
        mistake("run SMALL --eviction ''", "''"),
        mistake("compare SMALL -e ,", "','"),
    ],
)
def test_words_that_are_not_understood(refused, command, said):
    line = refused(*typed(command))
    for words in said:
        assert words in line


# Numbers that cannot be


@pytest.mark.parametrize(
    ("command", "said"),
    [
        # sizes
        mistake("run cyclic --bytes lots", "size must be", "got 'lots'", "256MiB"),
        mistake("run cyclic --bytes 1XB", "size must be", "got '1XB'"),
        mistake("run cyclic --bytes ''", "size must be", "got ''"),
        mistake("run cyclic --bytes -1MiB", "'-1MiB'"),
        mistake("run cyclic --bytes 0", "bytes must be at least 1, got 0;"),
        mistake("run cyclic --bytes inf", "size must be", "got 'inf'"),
        mistake("run cyclic --bytes nan", "size must be", "got 'nan'"),
        mistake("run 'cyclic(bytes=-1)'", "size must be at least 0", "got '-1'"),
        mistake("run 'cyclic(bytes=[1])'", "[1]"),
        mistake("run cyclic --bytes 1e30", "1e30"),
        mistake("trace info cyclic --bytes 1e30", "1e30"),
        mistake("run matmul --bytes 1", "matmul(bytes=1) has an empty object", "more bytes"),
        # near memory
        mistake("run SMALL --near 1MiB", "at least one region of 2.00 MiB, got 1.00 MiB"),
        mistake("run SMALL --near 0", "near memory must hold at least one region", "got 0 B"),
        mistake("run SMALL --near -5", "'-5'"),
        mistake("run SMALL --near 12parsecs", "size must be", "got '12parsecs'"),
        mistake(
            "run 'cyclic(bytes=1MiB)'", "near memory must hold at least one region", "more bytes"
        ),
        mistake(
            "run SMALL --near 8MiB --oversubscribe 50%", "near and oversubscribe were both given"
        ),
        mistake(
            "compare SMALL --near 8MiB --oversubscribe 50%",
            "near and oversubscribe were both given",
        ),
        mistake(
            "compare SMALL --near 8MiB,1MiB",
            "near memory must hold at least one region",
            "got 1.00 MiB",
        ),
        # shares
        mistake("run SMALL --oversubscribe half", "oversubscribe must be", "got 'half'", "50%"),
        mistake("run SMALL --oversubscribe -50%", "oversubscribe must be at least 0%", "got -50%"),
        mistake("list policies cq", "unknown policy 'cq'; did you mean 'cp'"),
        mistake("list machines gh200", "leave it out"),
        mistake(
            "run SMALL --oversubscribe 50", "oversubscribe must end in %", "got 50; write 50% or"
        ),
        mistake(
            "reproduce observuvm --oversubscribe 30",
            "oversubscribe must end in %",
            "got 30; write 30% or",
        ),
        mistake("run SMALL --oversubscribe 1/0", "oversubscribe must be", "got '1/0'"),
        mistake("run SMALL --oversubscribe nan", "oversubscribe must be", "got 'nan'"),
        mistake("run SMALL --oversubscribe inf", "oversubscribe must be", "got 'inf'"),
        mistake("run SMALL --oversubscribe nan%", "'nan%'"),
        mistake("run SMALL --oversubscribe inf%", "'inf%'"),
        mistake("run SMALL --oversubscribe 1e9%", "near memory must hold at least one region"),
        mistake("analyze SMALL --shards 0", "sampling rate"),
        mistake("analyze SMALL --shards 2", "sampling rate"),
        mistake("analyze SMALL --shards -1%", "sampling rate"),
        mistake("analyze SMALL --shards some", "share must be", "got 'some'"),
        # geometry
        mistake("run SMALL --geometry 64KiB", "geometry must be PAGE/REGION", "got '64KiB'"),
        mistake("run SMALL --geometry 3KiB/6KiB", "page must be a power of two, got 3072 bytes"),
        mistake("run SMALL --geometry 2MiB/64KiB", "region must be at least a page"),
        mistake("run SMALL --geometry 0/0", "0 bytes"),
        mistake("run SMALL --geometry /", "''"),
        # counts
        mistake("run SMALL --slots 0", "slots must be a whole number, at least 1, got 0"),
        mistake("run SMALL --slots -3", "slots must be a whole number, at least 1, got -3"),
        mistake("compare SMALL --workers 0", "--workers"),
        mistake("compare SMALL --workers -1", "--workers"),
        mistake("run 'cyclic(passes=0)'", "passes must be at least 1, got 0;"),
        mistake("run 'cyclic(passes=-2)'", "passes must be at least 1, got -2;"),
        mistake("run 'cyclic(passes=1.5)'", "passes must be a whole number, got 1.5;"),
        mistake("run 'cyclic(passes=nan)'", "passes must be a whole number, got nan;"),
        mistake("run 'cyclic(passes=inf)'", "passes must be a whole number, got inf;"),
        mistake("run 'cyclic(passes=[2])'", "passes must be a whole number, got [2];"),
        mistake("run 'cyclic(passes=None)'", "passes must be a whole number, got None;"),
        mistake("run 'zipf(skew=nan)'", "skew must be a number, got nan;"),
        mistake("run 'zipf(skew=inf)'", "skew must be a number, got inf;"),
        mistake("run 'stream(writes=2)'", "writes must be at most 1, got 2;"),
        mistake("run SMALL --eviction 'random(seed=x)'", "seed must be a whole number, got x;"),
        mistake("run SMALL --eviction 'random(seed=-1)'", "seed must be at least 0, got -1;"),
        mistake("run SMALL --prefetch 'tree(threshold=0)'", "threshold must be at least 1, got 0;"),
        mistake(
            "run SMALL --prefetch 'tree(threshold=101)'", "threshold must be at most 100, got 101;"
        ),
        # the same thing twice
        mistake(
            "compare SMALL -e lrm --near 8MiB,8MiB",
            "--near has 8MiB twice, got '8MiB,8MiB'; give each once",
        ),
        mistake("compare SMALL -e lrm,fifo,lrm", "--eviction has lrm twice", "give each once"),
        mistake("advise mine.py --live --out a.html", "--out and --live were both given"),
        mistake("advise mine.py --live --machine gh200", "--machine and --live were both given"),
        mistake("advise SMALL --machine gh200,gh200", "--machine has gh200 twice"),
        mistake("advise SMALL --emit cuda,cuda --out a.html", "--emit has cuda twice"),
        mistake(
            "reproduce observuvm --oversubscribe 50%,50%",
            "--oversubscribe must have each value once, got 50%,50%",
        ),
        mistake("reproduce observuvm --oversubscribe 50%,0.5", "each value once, got 50%,0.5"),
        mistake("reproduce observuvm --observed 100,100", "--observed must have each value once"),
        mistake("reproduce cppe --fits 50%,1/2", "--fits must have each value once, got 50%,1/2"),
        mistake("reproduce cppe --chunk 64KiB,65536", "--chunk must have each value once"),
        mistake("reproduce cppe --t1 8,8", "--t1 must have each value once, got 8,8"),
        mistake("reproduce gmt --near 1GiB,1024MiB", "--near must have each value once"),
        mistake("reproduce gmt --factor 2,2.0", "--factor must have each value once"),
        mistake("reproduce gmt --tier2-ratio 4,4", "--tier2-ratio must have each value once"),
        mistake("reproduce hybrid --applications cfd,cfd", "--applications must have each value"),
        mistake("reproduce hybrid --larger 19,19", "--larger must have each value once"),
        mistake("reproduce tide --oversubscribe 50%,50%", "--oversubscribe must have each value"),
        mistake("reproduce gmt --factor ,", "--factor must have a value, got ','"),
        mistake("reproduce hybrid --fitting -1", "above 0 and below 15.7 GB, got -1"),
        mistake("compare SMALL -e lrm --oversubscribe 50%,0.5", "the same", "give each once"),
        mistake("compare SMALL -e lrm,LRM", "the same, lrm + tree + um with", "give each once"),
        mistake("compare SMALL --near ,", "--near must name one or several", "got ','"),
        mistake(
            "compare SMALL --oversubscribe ,,",
            "--oversubscribe must name one or several",
            "got ',,'",
        ),
        mistake("compare SMALL --prefetch ''", "--prefetch must name one or several", "got ''"),
        mistake("compare SMALL --system ,", "--system must name one or several", "got ','"),
        # in whole regions
        mistake("compare SMALL -e lrm --near 8MiB,9MiB", "the same", "give each once"),
    ],
)
def test_numbers_that_cannot_be(refused, command, said):
    line = refused(*typed(command))
    for words in said:
        assert words in line


@pytest.mark.parametrize(
    ("command", "said"),
    [
        mistake("run folder", "folder is a folder; give a file, or the name of a workload"),
        mistake("run SMALL --machine folder", "folder is a folder; give a TOML file"),
        mistake("trace import folder x.parquet", "folder is a folder; give the file of a trace"),
        mistake("trace export SMALL folder", "cannot write folder: it is a folder"),
        mistake("trace export SMALL ''", "cannot write .: it is a folder"),
        mistake("compile folder/a.c --out folder", "cannot write folder: it is a folder"),
        mistake("examples copy file", "file is a file; give a folder"),
    ],
)
def test_folders_and_files_where_others_are_expected(refused, tmp_path, command, said):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    line = refused(*typed(command))
    for words in said:
        assert words in line


def test_what_is_given_twice_is_refused_before_anything_runs(refused, monkeypatch):
    from tidegate.experiments import comparison_spec as comparison

    monkeypatch.setattr(comparison, "attempt_grid", lambda *_, **__: pytest.fail("it ran"))
    refused(*typed("compare SMALL -e lrm --near 8MiB,8MiB"))


# Files that cannot be read


@pytest.fixture(scope="session")
def bad_traces(tmp_path_factory) -> Path:
    """Trace files with something wrong in each."""
    folder = tmp_path_factory.mktemp("traces")
    good = save_trace(
        workloads.make("cyclic(bytes=16MiB, passes=1)").trace(), folder / "good.parquet"
    )
    data, rows, head = (
        good.read_bytes(),
        pl.read_parquet(good),
        json.loads(pl.read_parquet_metadata(good)["tidegate"]) | {"digest": None},
    )

    def write(file, frame=rows, **changed):
        text = json.dumps({k: v for k, v in (head | changed).items() if v is not None})
        frame.write_parquet(folder / f"{file}.parquet", metadata={"tidegate": text})

    def column(name, value):
        return rows.with_columns(pl.lit(value, rows.schema[name]).alias(name))

    for name, size in {
        "cut-to-nothing": 0,
        "cut-to-3": 3,
        "cut-in-half": len(data) // 2,
        "cut-by-1": len(data) - 1,
    }.items():
        (folder / f"{name}.parquet").write_bytes(data[:size])
    (folder / "hole.parquet").write_bytes(data[:100] + data[200:])
    (folder / "scrambled.parquet").write_bytes(
        data[:20] + bytes(b ^ 0x5A for b in data[20:120]) + data[120:]
    )
    (folder / "text.parquet").write_text("touches, mostly\n" * 9)
    (folder / "folder.parquet").mkdir()
    pl.DataFrame({"page": [1, 2]}).write_parquet(folder / "foreign.parquet")
    rows.write_parquet(folder / "junk-head.parquet", metadata={"tidegate": "{"})
    rows.write_parquet(folder / "list-head.parquet", metadata={"tidegate": "[1]"})
    write("no-touches", rows.head(0))
    write("page-too-large", column("page", 10**6))
    write("page-negative", column("page", -3))
    write("page-unknown", column("page", None))
    write("launch-unknown", column("launch", None))
    write("bytes-negative", column("bytes", -5))
    write("width-zero", column("width", 0))
    write("width-negative", column("width", -1))
    write("intensity-nan", column("intensity", float("nan")))
    write("intensity-infinite", column("intensity", float("inf")))
    write("intensity-negative", column("intensity", -1.0))
    write("column-missing", rows.drop("bytes"))
    write("column-of-another-type", rows.with_columns(pl.col("page").cast(pl.Int64)))
    write("format-of-tomorrow", format=99)
    write("nameless", name=None)
    write("provenance-unknown", provenance="dreamt")
    write("geometry-odd", geometry=[3, 5])
    write("geometry-short", geometry=[])
    write("objects-missing", objects=None)
    write("objects-none", objects=[])
    write("objects-odd", objects=[["a"]])
    return folder


def broken(name: str, *said: str, **how):
    return pytest.param(name, said, id=name, **how)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        broken("not-there", "no trace file"),
        broken("folder", "no trace file"),
        broken("cut-to-nothing", "not a whole Parquet file"),
        broken("cut-to-3", "not a whole Parquet file"),
        broken("cut-in-half", "not a whole Parquet file"),
        broken("cut-by-1", "not a whole Parquet file"),
        broken("hole", "hole.parquet"),
        broken("scrambled", "scrambled.parquet"),
        broken("text", "not a whole Parquet file", "tidegate trace save"),
        broken("foreign", "not a Tidegate trace", "tidegate trace save"),
        broken("junk-head", "metadata"),
        broken("list-head", "metadata"),
        broken("no-touches", "is empty: it touches nothing"),
        broken("page-too-large", "page must be from 0 to 255, got 1000000"),
        broken("page-negative", "page must be from 0 to 255, got -3"),
        broken("page-unknown", "page-unknown.parquet"),
        broken("launch-unknown", "launch-unknown.parquet"),
        broken("bytes-negative", "bytes must be from 0 to 65536, got -5"),
        broken("width-zero", "width"),
        broken("width-negative", "width"),
        broken("intensity-nan", "intensity"),
        broken("intensity-infinite", "intensity"),
        broken("intensity-negative", "intensity"),
        broken("column-missing", "column bytes is missing"),
        broken("column-of-another-type", "column page"),
        broken("format-of-tomorrow", "trace format 99"),
        broken("nameless", "nameless.parquet"),
        broken("provenance-unknown", "provenance-unknown.parquet"),
        broken("geometry-odd", "page must be a power of two, got 3 bytes"),
        broken("geometry-short", "geometry-short.parquet"),
        broken("objects-missing", "objects-missing.parquet"),
        broken("objects-none", "objects-none.parquet"),
        broken("objects-odd", "objects-odd.parquet"),
    ],
)
def test_traces_that_cannot_be_read(refused, bad_traces, name, said):
    line = refused("run", str(bad_traces / f"{name}.parquet"))
    for words in said:
        assert words in line


@pytest.mark.parametrize("verb", ["run", "compare", "analyze", "trace info"])
@pytest.mark.parametrize(
    "name", ["not-there", "cut-in-half", "foreign", "no-touches", "page-too-large", "page-negative"]
)
def test_every_verb_refuses_them(refused, bad_traces, verb, name):
    refused(*verb.split(), str(bad_traces / f"{name}.parquet"))


@pytest.mark.parametrize(
    ("given", "what"), [("--bytes 1MiB", "size"), ("--geometry 4KiB/64KiB", "geometry")]
)
def test_a_trace_has_its_size_and_geometry_already(refused, bad_traces, given, what):
    assert f"has its {what} already" in refused(
        "run", str(bad_traces / "good.parquet"), *given.split()
    )


# Outputs that cannot be written


@pytest.mark.parametrize(
    "verb", ["run SMALL --plot", "compare SMALL -e lrm --plot", "analyze SMALL --plot"]
)
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("out.gif", "its name must end in .png, .svg, .html"),
        ("out", "its name must end in"),
        ("nowhere/out.png", "there is no folder nowhere"),
        ("file/out.png", "there is no folder file"),
        ("folder.png", "it is a folder"),
    ],
)
def test_plots_that_cannot_be_written(refused, tmp_path, verb, path, said):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder.png").mkdir()
    line = refused(*typed(f"{verb} {path}"))
    assert said in line
    assert path in line


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("out.txt", "its name must end in .parquet"),
        ("nowhere/out.parquet", "there is no folder nowhere"),
        ("file/out.parquet", "there is no folder file"),
        ("folder.parquet", "it is a folder"),
        ("/proc/out.parquet", "cannot write /proc/out.parquet"),
    ],
)
def test_traces_that_cannot_be_written(refused, tmp_path, path, said):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder.parquet").mkdir()
    assert said in refused(*typed(f"trace save SMALL {path}"))


def test_a_plot_that_fails_in_the_end_is_one_line_too(tidegate):
    # looks writable to root, and is not
    answer = tidegate(*typed("run SMALL --plot /proc/out.png"))
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert "cannot write /proc/out.png" in answer.err


def test_an_old_file_survives_a_failed_write(tidegate, tmp_path, monkeypatch):
    import os

    (tmp_path / "run.png").write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    answer = tidegate(*typed("run SMALL --no-cache --plot run.png"))
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "No space left on device" in answer.err
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("run.png", "old")]


# Policies and workloads in the user's own file

EVICTION = """
from tidegate.policy import EvictionPolicy

class Mine(EvictionPolicy):
    def victim(self):
        return min(self.resident)
"""


def method(text: str) -> str:
    """The policy with one more method, or another one in place of its own."""
    return EVICTION + "\n" + "\n".join(f"    {line}" for line in text.splitlines()) + "\n"


def own(name: str, text: str, *said: str, **how):
    return pytest.param(text, said, id=name, **how)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        own("syntax error", "class Mine(:\n", "mine.py, line 1", "invalid syntax"),
        own("indentation", "if True:\nx = 1\n", "mine.py, line 2"),
        own("not text", "\0", "mine.py"),
        own(
            "import error",
            "import nothing_of_that_name\n",
            "mine.py cannot be imported",
            "nothing_of_that_name",
        ),
        own("raises on import", "1 / 0\n", "mine.py cannot be imported", "ZeroDivisionError"),
        own("exits on import", "raise SystemExit(3)\n", "mine.py cannot be imported"),
        own(
            "no class",
            "x = 1\n",
            "mine.py must have a class that extends tidegate.policy.EvictionPolicy",
            "tidegate.policy.EvictionPolicy",
        ),
        own(
            "only an imported class",
            "from tidegate.policy import EvictionPolicy\n",
            "mine.py must have a class that extends tidegate.policy.EvictionPolicy",
        ),
        own("another class", EVICTION.replace("Mine", "Mime"), "'Mine'", "did you mean 'Mime'?"),
        own(
            "raises in __init__",
            method("def __init__(self): raise ValueError('no\\nway')"),
            "Mine",
            "no way",
        ),
        own(
            "wants arguments",
            method("def __init__(self, depth): super().__init__()"),
            "Mine",
            "depth",
        ),
        own("sees what is no level", method("sees = 'faults'"), "Mine", "sees"),
        own(
            "raises in start",
            method("def start(self): 1 / 0"),
            "policy 'Mine' raised in start(): ZeroDivisionError",
        ),
        own(
            "raises in on_fault",
            method("def on_fault(self, region): raise KeyError('lost')"),
            "policy 'Mine' raised in on_fault(0): KeyError: 'lost' (mine.py, line ",
        ),
        own(
            "raises in on_eviction",
            method("def on_eviction(self, region): raise KeyError(region)"),
            "policy 'Mine' raised in on_eviction(0): KeyError: 0",
        ),
        own(
            "raises in on_launch",
            method("def on_launch(self, launch): 1 / 0"),
            "policy 'Mine' raised in on_launch(0)",
        ),
        own(
            "raises in victim",
            method("def victim(self): raise RuntimeError('many\\nlines')"),
            "policy 'Mine' raised in victim(): RuntimeError: many",
        ),
        own(
            "raises without a word",
            method("def victim(self): raise RuntimeError"),
            "raised in victim(): RuntimeError",
        ),
        own(
            "exits",
            method("def victim(self): raise SystemExit(3)"),
            "policy 'Mine' raised in victim(): SystemExit",
        ),
        own(
            "does not balance",
            method("def finished(self): assert 1 == 2, 'lists differ'"),
            "policy 'Mine' raised in finished(): AssertionError: lists differ",
        ),
        own(
            "takes too few",
            method("def on_fault(self): pass"),
            "policy 'Mine': on_fault() must take self and one number, got on_fault() (mine.py",
        ),
        own(
            "victim not resident",
            method("def victim(self): return max(set(range(8)) - self.resident)"),
            "policy 'Mine' named region 7 in victim(), which is not resident",
        ),
        own(
            "victim beyond memory",
            method("def victim(self): return 8000"),
            "policy 'Mine' named region 8000 in victim()",
        ),
        own(
            "victim negative",
            method("def victim(self): return -1"),
            "policy 'Mine' named region -1 in victim()",
        ),
        own(
            "victim none",
            method("def victim(self): return None"),
            "policy 'Mine' answered victim() with None",
        ),
        own(
            "no victim",
            "from tidegate.policy import EvictionPolicy\nclass Mine(EvictionPolicy):\n    pass\n",
            "policy 'Mine' has no method victim()",
        ),
        own(
            "looks into the future",
            method("def victim(self): return self.memory.next_touch(0)"),
            "policy 'Mine' raised in victim()",
            "Everything(future=True)",
        ),
        own(
            "evicts what is not there",
            method("def on_launch(self, launch): self.memory.evict(3)"),
            "region 3",
            "not resident",
        ),
        own(
            "prefetches beyond memory",
            method("def on_launch(self, launch): self.memory.prefetch(10**6)"),
            "pages 1000000",
        ),
        own(
            "advises nonsense",
            method("def on_launch(self, launch): self.memory.advise(0, 1, 'moon')"),
            "'moon'",
        ),
    ],
)
def test_policies_with_mistakes(refused, tmp_path, text, said):
    (tmp_path / "mine.py").write_text(text)
    line = refused(*typed("run SMALL --eviction mine.py:Mine"))
    for words in said:
        assert words in line


@pytest.mark.slow
def test_a_policy_that_fails_in_a_worker_is_one_line_too(refused, tmp_path):
    (tmp_path / "mine.py").write_text(method("def victim(self): raise RuntimeError('lost')"))
    line = refused(
        *typed("compare SMALL -e mine.py:Mine --no-belady --oversubscribe 50%,100% --workers 2")
    )
    assert "policy 'Mine' raised in victim(): RuntimeError: lost" in line


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run SMALL --eviction nowhere.py:Mine", "no file nowhere.py"),
        ("run SMALL --eviction nowhere.py", "no file nowhere.py"),
        ("run SMALL --eviction mine.py:Theirs", "unknown eviction in mine.py 'Theirs'"),
        ("run SMALL --eviction 'mine.py:Mine(depth=3)'", "Mine takes no options"),
        (
            "run SMALL --prefetch mine.py:Mine",
            "mine.py must have a class that extends tidegate.policy.PrefetchPolicy",
        ),
        ("run mine.py:Mine", "mine.py must have a class that extends tidegate.workload.Workload"),
        ("run SMALL --eviction two.py", "two.py:Mine, two.py:Other"),
    ],
)
def test_files_named_wrongly(refused, tmp_path, command, said):
    (tmp_path / "mine.py").write_text(EVICTION)
    (tmp_path / "two.py").write_text(EVICTION + EVICTION.replace("Mine", "Other"))
    assert said in refused(*typed(command))


WORKLOAD = """
from tidegate.workload import Launch, Workload, blocks_of

class Mine(Workload):
    def sizes(self):
        return {"a": 16 << 20}

    def launches(self, space):
        yield Launch("k", [blocks_of(4, range(256), bytes=4096)])
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param("range(256)", "range(300)", "Mine touches page 299", id="page too large"),
        pytest.param("range(256)", "range(-1, 8)", "Mine touches page -1", id="page negative"),
        pytest.param("range(256)", "[]", "Mine is empty", id="no touches"),
        pytest.param(
            'yield Launch("k", [blocks_of(4, range(256), bytes=4096)])',
            "yield from ()",
            "Mine is empty",
            id="none",
        ),
        pytest.param("bytes=4096", "bytes=-1", "must be at least 0, got -1", id="bytes negative"),
        pytest.param('{"a": 16 << 20}', "{}", "Mine has an empty object", id="no objects"),
        pytest.param(
            '{"a": 16 << 20}', '{"a": 0}', "Mine has an empty object", id="object without bytes"
        ),
        pytest.param("range(256)", "range(1 // 0)", "Mine", id="raises"),
        pytest.param("def sizes", "def size", "Mine", id="no sizes"),
        pytest.param("def launches", "def launch", "Mine", id="no launches"),
        pytest.param("blocks_of(4", "blocks_of(0", "Mine", id="blocks without length"),
    ],
)
def test_workloads_with_mistakes(refused, tmp_path, old, new, said):
    (tmp_path / "mine.py").write_text(WORKLOAD.replace(old, new))
    assert said in refused("run", "mine.py:Mine")


# Machines in the user's own file

PRESET = (Path(machine.__file__).parent / "presets" / "rtx3090-pcie4.toml").read_text()


def having(key: str, value: str) -> str:
    text, n = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", PRESET)
    assert n == 1
    return text


def constant(key: str, value: str, *said: str, **how):
    return pytest.param(having(key, value), said, id=f"{key} = {value}", **how)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[near\n", ["not TOML"], id="broken"),
        pytest.param("", ["[near] is missing"], id="empty"),
        pytest.param(
            PRESET[: PRESET.index("[driver]")], ["[driver] is missing"], id="table missing"
        ),
        pytest.param(
            re.sub("(?m)^bandwidth.*\n", "", PRESET),
            ["near.bandwidth is missing"],
            id="key missing",
        ),
        pytest.param(PRESET + "\nfoo = 1\n", ["unknown key of [driver] 'foo'"], id="key unknown"),
        pytest.param(
            PRESET + "\n[diver]\n",
            ["unknown key 'diver'", "did you mean 'driver'?"],
            id="table unknown",
        ),
        pytest.param("storage = 3\n" + PRESET, ["[storage] must be a table"], id="not a table"),
        constant("sms", "0", "near.sms: must be a whole number of at least 1, got 0"),
        constant(
            "sms", "-1", "near.sms: must be a whole number of at least 1, got -1", "at least 1"
        ),
        constant(
            "sms", "1.5", "near.sms: must be a whole number of at least 1, got 1.5", "whole number"
        ),
        constant(
            "sms",
            '"82"',
            "near.sms: must be a whole number of at least 1, got '82'",
            "whole number",
        ),
        constant(
            "sms",
            "true",
            "near.sms: must be a whole number of at least 1, got True",
            "whole number",
        ),
        constant("sms", '{ value = 82, sorce = "x" }', "near.sms", "source"),
        constant("sms", '{ source = "x" }', "near.sms", "value"),
        constant("bytes", '"much"', "near.bytes: size must be a number and a unit", "got 'much'"),
        constant("bytes", "-1", "near.bytes: size must be at least 0", "got '-1'"),
        constant("bytes", "nan", "near.bytes: size must be", "got 'nan'"),
        constant("bytes", "[1]", "near.bytes"),
        constant("bytes", "true", "near.bytes"),
        constant(
            "bandwidth",
            "936",
            "near.bandwidth: rate must be a size per second",
            "got '936'",
            "22GB/s",
        ),
        constant("bandwidth", '"0GB/s"', "near.bandwidth"),
        constant("flops", "35", "near.flops: must be", "TFLOPS, got '35'"),
        constant("flops", '"0TFLOPS"', "near.flops"),
        constant("flops", '"nanTFLOPS"', "near.flops"),
        constant("flops", '"-1TFLOPS"', "near.flops"),
        constant("latency", "0.4", "near.latency: time must be", "got '0.4'", "20us"),
        constant("latency", '"-1us"', "near.latency: time must be", "got '-1us'"),
        constant("latency", '"1e400s"', "near.latency"),
        constant("inward", '"0GB/s"', "link.inward"),
        constant("outward", '"0GB/s"', "link.outward"),
        constant("both", '"0GB/s"', "link.both"),
        constant("remote_share", '"some"', "link.remote_share: share must be", "got 'some'"),
        constant("remote_share", "0", "link.remote_share"),
        constant("remote_share", "-0.5", "link.remote_share"),
        constant("remote_share", "5", "link.remote_share"),
        constant("batch_faults", "0", "driver.batch_faults: must be", "at least 1, got 0"),
        constant("pipelined", "1", "driver.pipelined: must be true or false, got 1"),
        constant("page", '"3KiB"', "page must be a power of two, got 3072 bytes"),
        constant("page", '"4MiB"', "region must be at least a page"),
        constant("page", "[]", "geometry.page"),
        constant("offers", '["fault"]', "'fault'", "did you mean 'faults'?"),
        constant("offers", "3", "offers"),
        constant("offers", '"faults"', "offers"),
        pytest.param("name = 3\n" + PRESET, ["name"], id="name = 3"),
    ],
)
def test_machines_with_mistakes(refused, tmp_path, text, said):
    (tmp_path / "mine.toml").write_text(text)
    line = refused(*typed("run SMALL --machine mine.toml"))
    assert "mine.toml" in line
    for words in said:
        assert words in line


def test_a_machine_that_is_not_text(refused, tmp_path):
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe\0")
    assert "mine.toml is not TOML" in refused(*typed("run SMALL --machine mine.toml"))


# Debugging


@pytest.mark.parametrize("command", ["run cyclc", "run nothing.parquet", "run SMALL --near 1"])
def test_debug_shows_where_it_came_from(tidegate, command):
    from tidegate.errors import TidegateError

    with pytest.raises(TidegateError):
        tidegate("--debug", *typed(command))


def test_debug_may_be_typed_last(tidegate):
    from tidegate.errors import TidegateError

    with pytest.raises(TidegateError):
        tidegate("run", "cyclc", "--debug")


def test_debug_is_forgotten_by_the_next_command(tidegate, refused):
    from tidegate.errors import TidegateError

    with pytest.raises(TidegateError):
        tidegate("--debug", "run", "cyclc")
    refused("run", "cyclc")


def test_a_file_that_is_nested_deeply_is_one_line(refused, tmp_path):
    file = tmp_path / "deep.json"
    file.write_text('{"a":' * 100_000)
    assert "nested very deeply" in refused("plan", str(file))

"""Every numeric option of every command with every kind of impossible number: exit code 2, one
line, no traceback, nothing done.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from tidegate.cli import app
from tidegate.units import size

# options that take a number, a size, a share or a time, by the names of their parameters
NUMERIC = {
    *("bytes", "scale", "near", "oversubscribe", "middle", "geometry", "slots", "observed"),
    *("samples", "workers", "shards", "seconds", "factor", "ratio", "min_array", "t1", "t2", "t3"),
    *("interval", "chunk", "fitting", "larger", "threshold", "unmap", "fits"),
    *("watchdog", "readings", "spread"),
    *("ssd", "token", "tokens", "parameters", "efficiency"),
    *("rounds", "most_programs", "port", "memory", "largest", "jobs", "cores", "limit", "room"),
    *(
        "steps",
        "replicate",
        "most_launches",
        "batch",
        "context",
        "decode",
        "layers",
        "image",
        "seed",
    ),
}
# and those that do not
OTHERS = {
    *("machine", "system", "eviction", "prefetch", "placement", "tiering", "plot", "unit", "save"),
    *(
        "clang",
        "emit",
        "values",
        "out",
        "format",
        "settings",
        "options",
        "systems",
        "workloads",
        "store",
    ),
    *("output_file", "applications", "levels", "loops", "perfetto", "include", "define", "std"),
    *(
        "to",
        "kind",
        "check",
        "path",
        "answer",
        "on",
        "x",
        "y",
        "by",
        "catch",
        "recorded",
        "like",
        "card",
        "workload",
    ),
}
WRONG = (str(10**30), "-1", "nan", "inf", "1e300", "", "x", str(2**63), str(-(10**30)))
ARGUMENTS = {
    "workload": "cyclic(bytes=16MiB, passes=2)",
    "path": "out.parquet",
    "files": "program.c",
    "script": "script.py",
    "file": "in.csv",
    "kind": "eviction",
    "policy": "cp",
}
# lists that may be empty: one of the two, or the paper's own sizes
EMPTY_LISTS = {
    *(("hybrid", option) for option in ("--fitting", "--larger", "--largest")),
    *(("gmt", option) for option in ("--factor", "--near")),
}
WITH = {
    "emit": ["--to", "bpf"],
    "middle": ["--tiering", "tier-order"],
    "record": ["-o", "out.parquet"],
}


def _commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, one in getattr(command, "commands", {}).items():
        yield from _commands(one, (*words, name))
    if not hasattr(command, "commands"):
        yield words, command


def _cases() -> Iterator[tuple[str, list[str]]]:
    """Yield each option with a value, and the words of the command around it."""
    for words, command in _commands(typer.main.get_command(app)):
        needed = [p for p in command.params if p.param_type_name == "argument" and p.required]
        arguments = [ARGUMENTS.get(p.name, "x") for p in needed]
        for option in command.params:
            if option.param_type_name == "argument" or option.is_flag:
                continue
            if option.name not in NUMERIC:
                continue
            more = WITH.get(option.name, []) if words[0] != "live" else []
            more = more + WITH.get(words[-1], [])
            if words[0] == "live" and option.name != "near" and needed:
                more = [*more, "--near", "64MiB"]
            if (words[0], option.name) == ("live", "middle"):
                more = [*more, "--tiering", "tier-order"]
            if (words[0], option.name) == ("live", "room"):
                more = [*more, "--catch", "malloc"]
            if (words[0], option.name) == ("analyze", "near"):
                more = [*more, "--leu"]
            yield option.opts[0], [*words, *more, "{}", *arguments]


CASES = list(_cases())


def test_every_option_is_known_here():
    """A new option must be listed as numeric or as another."""
    found = {
        p.name
        for _, command in _commands(typer.main.get_command(app))
        for p in command.params
        if p.param_type_name == "option" and not p.is_flag
    }
    assert {"slots", "near", "workers", "seconds"} <= found & NUMERIC
    assert found - NUMERIC <= OTHERS | {"help"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "words"), CASES, ids=[f"{' '.join(w[:2])} {o}" for o, w in CASES]
)
def test_impossible_numbers_are_refused(option, words, refused, tmp_path, monkeypatch):
    def too_late(*arguments: Any, **options: Any) -> None:
        pytest.fail(f"{words} was carried out")

    monkeypatch.setattr(os, "execve", too_late)
    monkeypatch.setattr("tidegate.cli.reproduce._reproduce", too_late)
    (tmp_path / "script.py").write_text("print(1)\n")
    (tmp_path / "in.csv").write_text("key,size\n1,2\n")
    for value in WRONG:
        if value == "" and (words[1], option) in EMPTY_LISTS:
            continue
        refused(*(word.format(f"{option}={value}") for word in words))


@pytest.mark.parametrize("value", ["1e99", str(10**30), "-1", "nan", "inf", "''", "x"])
@pytest.mark.parametrize("option", ["passes", "bytes", "block"])
def test_impossible_options_of_a_workload(option, value, refused):
    refused("run", f"cyclic({option}={value})")


def test_more_touches_than_anyone_can_wait_for(refused):
    said = refused("run", "cyclic(bytes=1GiB, passes=1000000000000)")
    assert "would have about 16384 T touches" in said


# The streams of a process


def _typed(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Type a shell command, where ``tidegate`` is this very source."""
    command = f"{sys.executable} -m tidegate"
    return subprocess.run(
        ["bash", "-c", text.replace("tidegate", command)],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "tidegate list workloads | head -1",
        "tidegate list workloads >&-",
        "tidegate list workloads 2>&-",
        "tidegate run nothing-like-this >&-",
        "tidegate list workloads <&- | head -c 1",
    ],
)
def test_a_closed_stream_is_no_traceback(text):
    ran = _typed(text)
    assert "Traceback" not in ran.stderr
    assert "Exception" not in ran.stderr
    assert ran.returncode in (0, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
    ],
    ids=str,
)
def test_other_encodings_show_plain_signs(environment):
    ran = _typed("tidegate compare 'cyclic(bytes=8MiB)' -e lrm --no-belady", **environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "####" in ran.stdout


# Workloads that give something else than they should

WORKLOAD = """
import numpy as np
from tidegate.workload import Launch, Workload, blocks_of

class Mine(Workload):
    def sizes(self):
        return {sizes}

    def launches(self, space):
        yield {launch}
"""
GOOD = 'Launch("k", [blocks_of(4, [0, 1, 2], bytes=64)])'
BAD_SIZES = ("None", "7", "'1GiB'", "[1 << 20]", "{'a': '1MiB'}", "{'a': [1]}", "{'a': None}")
MORE_BAD_SIZES = ("{'a': float('nan')}", "{'a': -1}", "{'a': 10**30}", "{'a': np.ones(3)}", "1 / 0")
BAD_LAUNCHES = (
    "None",
    "7",
    "'k'",
    "[0, 1, 2]",
    "np.arange(3)",
    "blocks_of(4, [0], bytes=64)",
    "Launch('k', None)",
    "Launch('k', np.arange(3))",
    "Launch('k', [[0, 1, 2]])",
    "Launch('k', blocks_of(4, [0], bytes=64))",
    "Launch('k', [None])",
    "Launch('k', [blocks_of(4, [0.5], bytes=64)])",
    "Launch('k', [blocks_of(4, ['a'], bytes=64)])",
    "Launch('k', [blocks_of(4, np.array([2**40]), bytes=64)])",
    "Launch('k', [blocks_of(4, [[0], [1]], bytes=64)])",
    "Launch('k', [blocks_of(4, [0, 1], bytes=[1, 2, 3])])",
    "Launch('k', [blocks_of(4, [0], bytes=10**6)])",
    "Launch('k', [blocks_of(4, [0], bytes=64, write=7)])",
    "Launch('k', [blocks_of(0, [0], bytes=64)])",
    "Launch('k', [blocks_of(4, [0], bytes=64)], width='2')",
)


@pytest.mark.parametrize("sizes", [*BAD_SIZES, *MORE_BAD_SIZES])
def test_sizes_that_are_none(sizes, refused, tmp_path):
    (tmp_path / "mine.py").write_text(WORKLOAD.replace("{sizes}", sizes).replace("{launch}", GOOD))
    assert "mine.py, line " in refused("run", "mine.py:Mine")


@pytest.mark.parametrize("launch", BAD_LAUNCHES)
def test_launches_that_are_none(launch, refused, tmp_path):
    text = WORKLOAD.replace("{sizes}", "{'a': 1 << 22}").replace("{launch}", launch)
    (tmp_path / "mine.py").write_text(text)
    said = refused("run", "mine.py:Mine")
    impossible = ("bytes of a touch", "write of a touch")  # found when they are played
    assert "(mine.py, line 10)" in said or any(part in said for part in impossible)


def test_fractions_of_bytes_are_rounded_up(works, tmp_path):
    text = WORKLOAD.replace("{sizes}", "{'a': size}").replace("class", "size = 2**22 + 0.5\nclass")
    (tmp_path / "mine.py").write_text(
        text.replace("{launch}", "Launch('k', [blocks_of(4, np.arange(3.0), bytes=63.5)])")
    )
    found = works("run", "mine.py:Mine", "--near", "2MiB", "--json").json["summary"]
    assert found["footprint_bytes"] == size("4MiB") + size("64KiB")

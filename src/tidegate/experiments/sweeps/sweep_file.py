"""Sweep files: a sweep as TOML.

    store = "results"            # a folder beside this file, or s3://bucket/prefix
    seeds = 3                    # repeats

    [run]                        # keywords that all runs share
    machine = "rtx3090-pcie4"

    [axes]                       # every combination of these
    workload = ["matmul", "zipf"]
    eviction = ["lrm", "random"]

    [[zip]]                      # lists of one length, side by side
    near = ["256MiB", "1GiB"]
    slots = [64, 256]

or, in place of runs and axes, the runs of a paper under the readings that it leaves open:

    [readings]
    paper = "observuvm"
    count = 16
    quick = true
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from tidegate.errors import TidegateError, UnknownName
from tidegate.experiments.settings import check_whole
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.sweeps.expansion import expand_runs
from tidegate.experiments.sweeps.sweep import Sweep

_KEYS = ("store", "seeds", "run", "axes", "zip", "readings")
_READINGS = ("paper", "count", "quick")
_MOST_READINGS = 100_000


def load_sweep(path: str | Path, store: str | None = None) -> Sweep:
    """Return the sweep of a file. ``store`` replaces the file's."""
    path = Path(path)
    table = _read(path)
    for key in table:
        if key not in _KEYS:
            raise UnknownName(f"key of sweep file {path}", key, _KEYS)
    try:
        specs = _specs(table)
    except TidegateError as error:
        raise TidegateError(f"sweep file {path}: {error}") from error
    return Sweep(specs, store or _store(path, table))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise TidegateError(f"no sweep file {path}; write one, as docs/sweeps.md shows") from None
    except OSError as error:
        raise TidegateError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TidegateError(f"sweep file {path} is not TOML: {error}") from error


def _store(path: Path, table: Mapping[str, Any]) -> str:
    given = table.get("store", f"{path.stem}.results")
    if not isinstance(given, str) or not given:
        raise TidegateError(f"sweep file {path}: store must be a text, got {given!r}")
    return given if "://" in given else str(path.parent / given)


def _specs(table: Mapping[str, Any]) -> list[RunSpec]:
    run, axes, zips = _table(table, "run"), _table(table, "axes"), table.get("zip", [])
    if not isinstance(zips, list) or not all(isinstance(z, dict) for z in zips):
        raise TidegateError("zip must be written as [[zip]], with lists below it")
    if "readings" not in table:
        return expand_runs(run, axes, zips, table.get("seeds", ()))
    if others := [key for key in ("run", "axes", "zip", "seeds") if key in table]:
        raise TidegateError(
            f"[readings] and {others[0]} are both given; a paper's readings say what is run"
        )
    return _of_readings(_table(table, "readings"))


def _table(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = table.get(key, {})
    if not isinstance(found, dict):
        raise TidegateError(f"{key} must be a table, [{key}], got {found!r}")
    return found


def _of_readings(given: Mapping[str, Any]) -> list[RunSpec]:
    """Return the runs of a paper under its open readings, each once."""
    for key in given:
        if key not in _READINGS:
            raise UnknownName("key of [readings]", key, _READINGS)
    if not isinstance(given.get("paper"), str):
        raise TidegateError('[readings] needs a paper, such as paper = "observuvm"')
    if not isinstance(given.get("quick", False), bool):
        raise TidegateError(f"quick must be true or false, got {given['quick']!r}")
    papers = import_module("tidegate.papers")  # papers extend the sweeps' axes, as plug-ins do
    paper = papers.find_paper(given["paper"])
    count = given.get("count", paper.setup.tried)
    check_whole("count", count, 1, _MOST_READINGS)
    if paper.readings is None:
        raise TidegateError(f"{given['paper']} leaves no readings open; choose another paper")
    setup = paper.setup.quick() if given.get("quick") else paper.setup()
    specs: list[RunSpec] = [*paper.reading_specs(replace(setup, readings=count)).values()]
    return specs

"""The example programs compile, run offloaded, tell their launches, and always come to the same
result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from offloaded import NAMES, ProgramOutput, run
from tidegate.compiler.analysis.launches import region_name

LAUNCHES = {
    "backprop": "layer_forward layer_forward adjust_weights adjust_weights",
    "bfs": "(visit advance ?){4,}",
    "cfd": "initialize_variables( copy compute_step_factor( compute_flux time_step){3}){20}",
    "hotspot": "(single_iteration ?){9}",
    "kmeans": "invert_mapping( find_nearest){3,}",
    "louvain": "(clean move_vertices modularity update_communities ){5,}clean move_vertices modularity",
    "nn": "euclid",
    "srad": "extract( speckle coefficients diffuse){6} compress",
}


@pytest.mark.parametrize("name", NAMES)
def test_launches_are_those_of_the_original(name: str, told: Callable[..., ProgramOutput]) -> None:
    assert re.fullmatch(LAUNCHES[name], " ".join(told(name).functions))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_told_is_what_libomptarget_launched(
    name: str, told: Callable[..., ProgramOutput]
) -> None:
    assert [region_name(kernel) for kernel in told(name).kernels] == [
        region for region, *_ in told(name).launches
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_object_told_is_used(name: str, told: Callable[..., ProgramOutput]) -> None:
    assert {o for _, *objects in told(name).launches for o in objects} | {
        "past",
        "current",
        "target",
    } >= set(told(name).objects)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_and_nothing_else_decides(name: str, told: Callable[..., ProgramOutput]) -> None:
    again, other = told(name, "1"), told(name, "7")
    assert told(name).checksum == again.checksum
    assert re.fullmatch(r"-?\d+(\.\d+)?(e[+-]\d+)?", again.checksum)
    assert other.checksum != again.checksum


def test_bfs_finds_the_levels(told: Callable[..., ProgramOutput]) -> None:
    """Every level is one launch of each region, and one more finds that nothing is left."""
    functions = told("bfs").functions
    assert functions.count("visit") == functions.count("advance")


def test_swapped_buffers_are_told_by_their_allocation(told: Callable[..., ProgramOutput]) -> None:
    first, second, *_ = told("hotspot").launches
    assert first[1:] == ("temp", "power", "result")
    assert second[1:] == ("result", "power", "temp")


@pytest.mark.parametrize("given", ["x", "0", "-3", "4.5", "", "99999999999"])
def test_bad_sizes_are_one_line(given: str, build: Callable[[str], Path]) -> None:
    done = run(build("bfs"), given)
    assert done.returncode == 2
    assert f"vertices is '{given}'; give a whole number" in done.stderr
    assert done.stderr.count("\n") == 1


def test_sizes_that_would_wrap_are_refused(build: Callable[[str], Path]) -> None:
    done = run(build("cfd"), "46000")
    assert done.returncode == 2
    assert "more than the examples can index" in done.stderr

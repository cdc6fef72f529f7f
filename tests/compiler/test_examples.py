"""The example programs compile, run offloaded, print their launches, and always have the same
result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from offloaded import NAMES, RunOutput, run
from tidegate.compiler.analysis.launches import region_name

LAUNCHES = {
    "backprop": "layer_forward layer_forward adjust_weights adjust_weights",
    "bfs": "(visit advance ?){4,}",
    "cfd": "initialize_variables( copy compute_step_factor( compute_flux time_step){3}){20}",
    "hotspot": "(single_iteration ?){9}",
    "kmeans": "invert_mapping( find_nearest){3,}",
    "louvain": "(clean move_vertices modularity update_communities ){5,}"
    "clean move_vertices modularity",
    "nn": "euclid",
    "srad": "extract( speckle coefficients diffuse){6} compress",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_launches_are_those_of_the_original(name: str, output_of: Callable[..., RunOutput]) -> None:
    assert re.fullmatch(LAUNCHES[name], " ".join(output_of(name).functions))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_printed_launches_are_those_of_libomptarget(
    name: str, output_of: Callable[..., RunOutput]
) -> None:
    assert [region_name(kernel) for kernel in output_of(name).kernels] == [
        region for region, *_ in output_of(name).launches
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_printed_object_is_used(name: str, output_of: Callable[..., RunOutput]) -> None:
    assert {o for _, *objects in output_of(name).launches for o in objects} | {
        "past",
        "current",
        "target",
    } >= set(output_of(name).objects)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_seed_and_nothing_else_decides(name: str, output_of: Callable[..., RunOutput]) -> None:
    again, other = output_of(name, "1"), output_of(name, "7")
    assert output_of(name).checksum == again.checksum
    assert re.fullmatch(r"-?\d+(\.\d+)?(e[+-]\d+)?", again.checksum)
    assert other.checksum != again.checksum


def test_bfs_finds_the_levels(output_of: Callable[..., RunOutput]) -> None:
    """Every level is one launch of each region, and one more finds that nothing is left."""
    functions = output_of("bfs").functions
    assert functions.count("visit") == functions.count("advance")


def test_swapped_buffers_are_named_by_their_allocation(output_of: Callable[..., RunOutput]) -> None:
    first, second, *_ = output_of("hotspot").launches
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

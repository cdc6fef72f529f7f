"""Objects, regions and uses of every example program."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from offloaded import ARGUMENTS, EXAMPLES, NAMES, RunOutput
from tidegate.compiler import ProgramModel, model_of_source
from tidegate.compiler.ir import clang

USES = {
    "backprop": {
        "layer_forward": "input_units hidden_units output_units input_weights hidden_weights",
        "adjust_weights": "input_units hidden_units hidden_delta output_delta "
        "input_weights hidden_weights input_previous hidden_previous",
    },
    "bfs": {"visit": "nodes edges frontier next visited cost", "advance": "frontier next visited"},
    "cfd": {
        "initialize_variables": "variables far_field",
        "copy": "variables old_variables",
        "compute_step_factor": "areas variables step_factors",
        "compute_flux": "neighbours normals variables fluxes far_field",
        "time_step": "variables old_variables fluxes step_factors",
    },
    "hotspot": {"single_iteration": "temp power result"},
    "kmeans": {
        "invert_mapping": "feature feature_turned",
        "find_nearest": "feature_turned centres membership",
    },
    "louvain": {
        "clean": "update cluster_weight",
        "move_vertices": "first edges degree past current target communities update cluster_weight",
        "modularity": "communities cluster_weight",
        "update_communities": "communities update",
    },
    "nn": {"euclid": "locations distances"},
    "srad": {
        "extract": "image",
        "speckle": "image",
        "coefficients": "image north south west east dn ds dw de c",
        "diffuse": "image south east dn ds dw de c",
        "compress": "image",
    },
}

# Variables of main that are its arguments; sizes are formulas of them, but for the edges that bfs
# counts.
VARIABLES = {
    "backprop": ("in", "hidden", "out"),
    "bfs": ("n", "degree"),
    "cfd": ("side",),
    "hotspot": ("side", "steps"),
    "kmeans": ("points", "features", "clusters"),
    "louvain": ("n", "per_vertex"),
    "nn": ("n", "wanted"),
    "srad": ("rows", "columns", "iterations"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_table(name: str, model: Callable[[str], ProgramModel]) -> None:
    found = {region.split(":")[0]: set(objects) for region, objects in model(name).table().items()}
    assert found == {region: set(objects.split()) for region, objects in USES[name].items()}


@pytest.mark.parametrize("name", NAMES)
def test_table_is_what_the_launches_tell(
    name: str, model: Callable[[str], ProgramModel], output_of: Callable[..., RunOutput]
) -> None:
    seen: dict[str, set[str]] = {}
    for region, *objects in output_of(name).launches:
        seen.setdefault(region, set()).update(objects)
    lines = {region: set(objects) for region, objects in model(name).table().items()}
    # the analysed program lacks the pragma that prints, but line numbers count it
    assert lines == seen


@pytest.mark.parametrize("name", NAMES)
def test_sizes(
    name: str, model: Callable[[str], ProgramModel], output_of: Callable[..., RunOutput]
) -> None:
    variables = dict(zip(VARIABLES[name], map(int, ARGUMENTS[name]), strict=True))
    variables["edge_count"] = output_of(name).objects.get("edges", 0) // 4
    sizes = {o.name: o.bytes.at(variables) for o in model(name).placeable() if o.bytes is not None}
    assert sizes == output_of(name).objects


@pytest.mark.parametrize("version", [v for v in range(clang.OLDEST, clang.NEWEST + 1) if v != 19])
@pytest.mark.parametrize("name", NAMES)
def test_other_clangs_give_the_same(
    name: str, version: int, model: Callable[[str], ProgramModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shutil.which(f"clang-{version}")
    if other is None:
        pytest.skip(f"clang-{version} is not installed")
    monkeypatch.setattr(clang, "find_clang", lambda: other)
    found = model_of_source(EXAMPLES / f"{name}.c")
    assert found.table() == model(name).table()
    for mine, theirs in zip(found.launches, model(name).launches, strict=True):
        assert [u.distance for u in mine.uses] == pytest.approx([u.distance for u in theirs.uses])
        assert [u.locality for u in mine.uses] == pytest.approx(
            [u.locality for u in theirs.uses], rel=0.1
        )


def test_swapped_buffers_are_noted(model: Callable[[str], ProgramModel]) -> None:
    assert any("may be temp or result" in note.text for note in model("hotspot").notes)
    assert any("may be past or current or target" in note.text for note in model("louvain").notes)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("hotspot", "louvain")])
def test_the_others_leave_no_doubt(name: str, model: Callable[[str], ProgramModel]) -> None:
    assert model(name).notes == ()

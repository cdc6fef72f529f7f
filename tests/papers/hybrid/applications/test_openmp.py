"""The example programs as workloads."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from offloaded import EXAMPLES, NAMES, clang_19
from tidegate.compiler import ProgramModel, model_of_source
from tidegate.experiments.specification import RunSpec
from tidegate.papers.hybrid.applications import model_named


@pytest.mark.parametrize("name", NAMES)
def test_launches_and_objects_are_those_of_the_plan(name: str) -> None:
    trace = RunSpec(f"openmp-{name}", "v100-nvlink2", bytes="48MB").trace()
    assert trace.plan is not None
    assert trace.footprint == pytest.approx(48e6, rel=0.1)
    for launch in trace.launches():
        planned = {use.object for use in trace.plan.by_name[launch.name].uses}
        pages = np.unique(np.concatenate([s.page for s in launch.segments]))
        touched = {
            o.name
            for o in trace.objects
            if np.any((pages >= o.first_page) & (pages < o.first_page + o.pages))
        }
        assert touched <= planned, launch.name


def test_a_stream_touches_every_page_once() -> None:
    trace = RunSpec("openmp-nn", "v100-nvlink2", bytes="48MB").trace()
    pages = np.concatenate([s.page for launch in trace.launches() for s in launch.segments])
    assert len(pages) == len(np.unique(pages)) == sum(o.pages for o in trace.objects)


def test_edges_of_louvain_end_anywhere() -> None:
    """Ids of miniVite's generator are random: one wave gathers from all of the communities."""
    trace = RunSpec("openmp-louvain(rounds=1)", "v100-nvlink2", bytes="256MB").trace()
    (communities,) = (o for o in trace.objects if o.name == "communities")
    launch = next(x for x in trace.launches() if x.name == "move_vertices")
    segment = next(iter(launch.segments))
    gathered = segment.page[segment.reference == segment.reference.max()]
    assert len(np.unique(gathered)) == communities.pages


def rounded(data: Any) -> Any:
    """Round all fractions: the last digits of a linear solve differ between processors."""
    if isinstance(data, float):
        return float(f"{data:.9g}")
    if isinstance(data, dict):
        return {key: rounded(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [rounded(value) for value in data]
    return data


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_saved_models_are_what_the_programs_give(name: str) -> None:
    clang_19()

    # kernels' symbols hold numbers of the file system
    def plain(model: ProgramModel) -> ProgramModel:
        return replace(
            model, source="", regions=tuple(replace(r, kernel="") for r in model.regions)
        )

    made, saved = plain(model_of_source(EXAMPLES / f"{name}.c")), plain(model_named(name))
    assert rounded(asdict(made)) == rounded(asdict(saved))

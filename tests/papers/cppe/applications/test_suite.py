"""CPPE's Table II: footprints, types, sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.trace.geometry import Geometry
from tidegate.units import MiB
from tidegate.workloads import workloads
from tidegate.workloads.suites import members, suite

# Table II once more, in MB: it must not change unnoticed.
TABLE_II = {
    "I": {"HOT": 12, "LEU": 5.6, "2DC": 128, "3DC": 127.5},
    "II": {"BKP": 9, "PAT": 38.5, "DWT": 27, "KMN": 130, "SAD": 8.5},
    "III": {"NW": 32, "BFS": 37.2, "MVT": 64.1, "BIC": 64.1},
    "IV": {"SRD": 96, "HSD": 24, "MRQ": 5, "STN": 4},
    "V": {"HWL": 40.7, "SGM": 12, "HIS": 13.2, "SPV": 27.3},
    "VI": {"B+T": 34.7, "HYB": 104},
}
FOOTPRINT = {f"cppe-{name}": size for group in TABLE_II.values() for name, size in group.items()}
SHORT = {"iterations": 2, "frames": 2, "rounds": 2}  # enough to touch all there is
GEOMETRY = Geometry(4096, 65536)


def test_the_suite_is_table_ii() -> None:
    given = {member.name: member.kind for member in members("cppe")}
    assert given == {f"cppe-{name}": kind for kind, group in TABLE_II.items() for name in group}
    assert len(given) == 23
    assert all("Table II" in member.source for member in members("cppe"))


@pytest.mark.parametrize("name", FOOTPRINT)
def test_default_size_is_the_suites(name: str) -> None:
    (member,) = (member for member in members("cppe") if member.name == name)
    assert workloads.make(name).bytes == member.bytes
    # B+T's queries touch 2 % less than there is.
    assert member.bytes / MiB == pytest.approx(FOOTPRINT[name], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOOTPRINT)
def test_what_is_touched_is_table_iis_footprint(name: str) -> None:
    kind = workloads.find(name)
    frames = {"frames": 5} if name == "cppe-LEU" else {}
    trace = kind(**{k: v for k, v in SHORT.items() if k in kind.options()} | frames).trace(GEOMETRY)
    touched = np.zeros(trace.pages, bool)
    for launch in trace.launches():
        for segment in launch.segments:
            touched[segment.page] = True
    assert touched.sum() * 4096 / MiB == pytest.approx(FOOTPRINT[name], rel=0.02)


@pytest.mark.parametrize("scale", [1 / 8, 1 / 2, 2])
def test_sizes_scale(scale: float) -> None:
    for spec, member in zip(suite("cppe", scale), members("cppe"), strict=True):
        total = sum(workloads.make(spec).sizes().values())
        assert total == pytest.approx(scale * member.bytes, rel=0.04), spec
        assert total <= scale * member.bytes + 1, spec

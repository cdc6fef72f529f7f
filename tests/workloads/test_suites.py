from __future__ import annotations

import pytest

from tidegate.errors import TidegateError, UnknownName
from tidegate.workloads import workloads
from tidegate.workloads.suites import GB, members, suite, suites

# ObservUVM, Table II, in GB, once more: it must not change unnoticed.
TABLE_II = {
    "MM": 10.1,
    "GMM": 12.0,
    "SRK": 9.6,
    "SR2": 8.3,
    "HEL": 7.9,
    "2DC": 18.0,
    "GMV": 23.6,
    "LU": 12.0,
    "BLK": 10.0,
    "SPM": 8.0,
    "AN": 10.3,
    "SN": 19.8,
    "BTR": 5.0,
    "BFS": 2.1,
}
DENSE = ["MM", "GMM", "SRK", "SR2", "HEL", "2DC", "GMV", "LU", "BLK", "AN", "SN"]


def test_observuvm_is_table_ii() -> None:
    assert {member.name: member.bytes / GB for member in members("observuvm")} == pytest.approx(
        TABLE_II
    )
    assert list(TABLE_II) == [member.name for member in members("observuvm")]
    assert all("Table II" in member.source for member in members("observuvm"))


@pytest.mark.parametrize("name", DENSE)
def test_default_footprint_is_table_iis(name: str) -> None:
    workload = workloads.make(name)
    assert workload.bytes == round(TABLE_II[name] * GB)
    assert (
        0.99 * TABLE_II[name] * GB <= sum(workload.sizes().values()) <= 1.01 * TABLE_II[name] * GB
    )


@pytest.mark.parametrize("name", DENSE)
@pytest.mark.parametrize("scale", [1 / 8, 1 / 2, 2])
def test_another_scale_keeps_the_ratios_of_objects(name: str, scale: float) -> None:
    full = workloads.make(name).sizes()
    (spec,) = [spec for spec in suite("observuvm", scale) if spec.startswith(f"{name}(")]
    other = workloads.make(spec).sizes()
    assert list(other) == list(full)
    for part, size in full.items():
        # A vector beside a square matrix is the exception: it grows with the side.
        if part not in ("x", "y"):
            assert other[part] == pytest.approx(scale * size, rel=0.005, abs=8)


def test_specs_are_workloads() -> None:
    assert suite("observuvm")[0] == f"MM(bytes={round(10.1 * GB)})"
    for name in suites():
        for spec in suite(name, 1 / 8):
            if spec.split("(")[0] in workloads.names():
                assert workloads.make(spec).bytes < 4 * GB


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownName):
        suite("observvm")
    with pytest.raises(TidegateError, match="scale"):
        suite("observuvm", 0)

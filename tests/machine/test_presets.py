"""The presets: their numbers are those of the notes on the UVM driver, and each says where it is
from.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tidegate.machine import load_machine, machine, preset_names
from tidegate.units import GiB, KiB, MiB
from tidegate.validate.ledger import saved_cards

FOLDER = Path(machine.__file__).parent / "presets"
NAMES = ["a100-pcie3-ssd", "gh200", "gpgpusim-28sm", "rtx3090-pcie4", "v100-nvlink2"]
# cards with measured runs: their constants are tested by tests/validate
CARDS = {"a100-40-pcie4", "gtx1080-pcie3", "rtx5070ti-pcie5", "rtx5090-pcie5", "t4-pcie3"}
# by spec sheet alone
SHEETS = {"rtx4090-pcie4", "a100-80-pcie4", "h100-pcie5", "l4-pcie4", "mi300x-pcie5"}
GB, US = 10**9, 1000.0


def test_all_are_there():
    assert set(NAMES) | CARDS | SHEETS == set(preset_names())


@pytest.mark.parametrize("name", sorted(SHEETS))
def test_cards_by_spec_sheet_say_so(name):
    """No cost of the driver is said to be measured, and advice says the same of the file."""
    m = load_machine(name)
    assert m.description.endswith("driver costs not measured")
    costs = (
        "batch_overhead",
        "region_overhead",
        "unmap_per_kib",
        "copy_overhead",
        "evict_overhead",
    )
    for cost in costs:
        assert m.sources[f"driver.{cost}"].startswith("L: ")
    assert name not in saved_cards()
    assert m.rate("bf16") > m.near.flops
    assert m.near.bytes < 24 * GiB or m.near.bytes >= 80 * GB


# name: SMs, memory GB/s, link inward and outward GB/s, near bytes, page, region
TABLE = {
    "rtx3090-pcie4": (82, 936, 22, 22, 24 * GiB, 64 * KiB, 2 * MiB),
    "a100-pcie3-ssd": (108, 1555, 12.3, 11.3, 40 * GB, 64 * KiB, 64 * KiB),
    "v100-nvlink2": (80, 900, 45.9, 45.9, 16_900 * GB // 1000, 64 * KiB, 2 * MiB),
    "gpgpusim-28sm": (28, 528, 16, 16, 64 * MiB, 4 * KiB, 64 * KiB),
    "gh200": (132, 3400, 375, 297, 96 * GB, 64 * KiB, 2 * MiB),
}


@pytest.mark.parametrize("name", NAMES)
def test_numbers(name):
    m = load_machine(name)
    assert (
        m.near.sms,
        m.near.bandwidth,
        m.link.inward,
        m.link.outward,
        m.near.bytes,
        m.geometry.page,
        m.geometry.region,
    ) == TABLE[name]
    assert m.name == name
    assert m.near.slots == m.near.sms * m.near.blocks_per_sm


# batch_faults, and µs: batch_overhead, region_overhead, unmap_per_kib, run_overhead
DRIVER = {
    "rtx3090-pcie4": (256, 20, 10, 0.19, 1.5),
    "a100-pcie3-ssd": (256, 20, 10, 0.05, 1.5),
    "v100-nvlink2": (256, 20, 10, 0.034, 1.5),
    "gpgpusim-28sm": (16, 20, 0, 0, 0),  # 20 µs, flat
    "gh200": (256, 20, 10, 0.05, 1.5),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_cost_of_a_fault(name):
    m = load_machine(name)
    assert m.driver.batch_faults == DRIVER[name][0]
    costs = (
        m.driver.batch_overhead,
        m.driver.region_overhead,
        m.driver.unmap_per_kib,
        m.link.run_overhead,
    )
    assert costs == pytest.approx([us * US for us in DRIVER[name][1:]])
    assert not m.driver.pipelined  # by default the fetch waits for the eviction


def test_power9_unmaps_in_batches_for_prefetches_and_evictions_have_a_cost():
    """uvm_migrate.c: a third of the bandwidth on the fault path, 20 to 30 % less for prefetches."""
    driver = load_machine("v100-nvlink2").driver
    assert driver.unmap_per_kib == pytest.approx(0.034 * US)
    assert driver.unmap_prefetched_per_kib == pytest.approx(0.004 * US)
    assert (driver.evict_overhead, driver.evict_maps) == (pytest.approx(20 * US), True)


@pytest.mark.parametrize("name", NAMES)
def test_constants_are_possible(name):
    m = load_machine(name)
    assert max(m.link.inward, m.link.outward) <= m.link.both <= m.link.inward + m.link.outward
    assert 0 < m.link.remote_share <= 1
    assert m.link.inward < m.near.bandwidth
    assert m.near.flops > 1000
    assert "faults" in m.offers


def test_both_directions_at_once():
    assert load_machine("rtx3090-pcie4").link.both == 39.8


def test_the_ssd_of_the_a100():
    storage = load_machine("a100-pcie3-ssd").storage
    assert (storage.read, storage.write) == (3.5, 1.7)
    assert (storage.host_page, storage.page_read, storage.lookup) == (50 * US, 130 * US, 50)
    assert all(load_machine(name).storage is None for name in NAMES if name != "a100-pcie3-ssd")


@pytest.mark.parametrize(
    ("name", "offers"),
    [
        ("rtx3090-pcie4", ("faults", "samples")),
        ("v100-nvlink2", ("faults", "samples")),
        ("gh200", ("faults", "samples")),
        ("gpgpusim-28sm", ("faults", "touch bits")),
        ("a100-pcie3-ssd", ("faults", "samples", "touch bits", "everything")),
    ],
)
def test_what_the_hardware_shows(name, offers):
    assert load_machine(name).offers == offers


@pytest.mark.parametrize("name", NAMES)
def test_every_constant_has_a_source(name):
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    assert table.pop("description").strip()
    constants = {"offers": table.pop("offers")}
    constants |= {
        f"{part}.{key}": given for part, keys in table.items() for key, given in keys.items()
    }
    sources = load_machine(name).sources
    assert sources.keys() == constants.keys()
    for key, given in constants.items():
        assert given.keys() == {"value", "source"}, key
        confidence, colon, text = sources[key].partition(": ")
        assert confidence in ("H", "M", "L"), key
        assert colon, key
        assert text.strip(), key


def test_what_a_policy_outside_the_driver_costs():
    assert load_machine("rtx3090-pcie4").driver.decision == 1 * US


@pytest.mark.parametrize("name", [n for n in NAMES if n != "rtx3090-pcie4"])
def test_what_a_policy_outside_the_driver_costs_elsewhere(name):
    assert "driver.decision" in load_machine(name).sources

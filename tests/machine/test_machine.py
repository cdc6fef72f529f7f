"""Machines from users' own files."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from tidegate.errors import TidegateError
from tidegate.machine import Machine, load_machine, preset_names

PLAIN = """
[geometry]
page = "4KiB"
region = 65536

[near]
sms = 46
blocks_per_sm = 8
bytes = "12 GiB"
bandwidth = "504GB/s"
flops = "29.5 TFLOPS"

[link]
inward = "12GB/s"
outward = "11.5GB/s"
both = "22GB/s"
run_overhead = "1.5us"
remote_share = "90%"
remote_latency = "0.0015ms"

[driver]
batch_faults = 256
batch_overhead = "20µs"
region_overhead = "1e4ns"
unmap_per_kib = 0
"""


@pytest.fixture
def plain(tmp_path) -> Path:
    file = tmp_path / "plain.toml"
    file.write_text(PLAIN)
    return file


def test_plain_values_are_enough(plain):
    m = load_machine(plain)
    assert m == load_machine(str(plain))
    assert (m.name, m.description, m.offers, m.sources) == ("plain", "", ("faults",), {})
    assert (m.geometry.page, m.geometry.region) == (4096, 65536)
    assert (m.near.slots, m.near.bytes, m.near.bandwidth, m.near.flops) == (
        368,
        12 << 30,
        504,
        29_500,
    )
    assert (m.link.inward, m.link.outward, m.link.both, m.link.remote_share) == (12, 11.5, 22, 0.9)
    assert (m.link.run_overhead, m.link.remote_latency) == (1500, 1500)
    assert (m.driver.batch_overhead, m.driver.region_overhead, m.driver.unmap_per_kib) == (
        20_000,
        10_000,
        0,
    )


def test_what_may_be_left_out(plain):
    m = load_machine(plain)
    assert (
        m.near.latency,
        m.near.launch_overhead,
        m.driver.decision,
        m.driver.pipelined,
        m.storage,
    ) == (0, 0, 0, False, None)


KEYS = [line.split(" = ")[0] for line in PLAIN.splitlines() if " = " in line]


@pytest.mark.parametrize("key", [k for k in KEYS if k not in ("page", "region")])
def test_what_may_not_be_left_out_is_named(plain, key):
    plain.write_text(re.sub(rf"(?m)^{key} = .*\n", "", PLAIN))
    with pytest.raises(TidegateError, match=rf"plain\.toml: \w+\.{key} is missing"):
        load_machine(plain)


@pytest.mark.parametrize("part", ["geometry", "near", "link", "driver"])
def test_missing_tables_are_named(plain, part):
    plain.write_text(re.sub(rf"\[{part}\]\n(.+\n)*", "", PLAIN))
    with pytest.raises(TidegateError, match=rf"table \[{part}\] is missing"):
        load_machine(plain)


@pytest.mark.parametrize("part", ["geometry", "near", "link", "driver"])
def test_unknown_keys_are_refused(plain, part):
    plain.write_text(PLAIN.replace(f"[{part}]", f"[{part}]\nlatencies = 1"))
    with pytest.raises(TidegateError, match=rf"unknown key of \[{part}\] 'latencies'"):
        load_machine(plain)


def test_the_nearest_key_is_offered(plain):
    plain.write_text(PLAIN.replace("bandwidth", "bandwith"))
    with pytest.raises(TidegateError, match="'bandwith'; did you mean 'bandwidth'"):
        load_machine(plain)


def test_sources_are_kept_but_make_no_difference(plain):
    before = load_machine(plain)
    plain.write_text(PLAIN.replace("sms = 46", 'sms = { value = 46, source = "the box" }'))
    after = load_machine(plain)
    assert after.sources == {"near.sms": "the box"}
    assert after == before
    assert hash(after) == hash(before)
    assert after.constants() == before.constants()


def test_a_source_may_be_left_out(plain):
    plain.write_text(PLAIN.replace("sms = 46", "sms = { value = 46 }"))
    assert load_machine(plain).near.sms == 46


def test_a_name_of_its_own(plain):
    plain.write_text('name = "box"\ndescription = "under the desk"\n' + PLAIN)
    assert (load_machine(plain).name, load_machine(plain).description) == ("box", "under the desk")


def test_a_machine_is_itself():
    m = load_machine("gh200")
    assert load_machine(m) is m


def test_a_machine_cannot_be_changed_by_accident():
    with pytest.raises(dataclasses.FrozenInstanceError):
        load_machine("gh200").near.sms = 1


@pytest.mark.parametrize("name", preset_names())
def test_slots_and_pipeline_can_be_changed_on_purpose(name):
    m = load_machine(name)
    assert m.with_slots(7).near.slots == 7
    assert m.with_pipeline(True).driver.pipelined
    assert m.with_slots(7).link == m.link
    assert m.near.slots != 7


@pytest.mark.parametrize("name", preset_names())
def test_every_constant_names_a_run(name):
    """Machines that differ anywhere differ in ``constants``."""
    m = load_machine(name)
    for part in ("near", "link", "driver"):
        values = getattr(m, part)
        for field in dataclasses.fields(values):
            value = getattr(values, field.name)
            changed = {"region": "page", "page": "region", "arrival": "slot", "slot": "arrival"}
            changed |= {True: False, False: True}
            another = changed[value] if isinstance(value, str | bool) else (value or 0) + 1
            other = dataclasses.replace(values, **{field.name: another})
            assert dataclasses.replace(m, **{part: other}).constants() != m.constants()


def test_unknown_names():
    with pytest.raises(TidegateError, match="unknown machine 'gh20'; did you mean 'gh200'"):
        load_machine("gh20")
    with pytest.raises(TidegateError, match=r"no machine file gh20\.toml"):
        load_machine("gh20.toml")


def test_constants_are_plain_data():
    import json

    assert (
        json.loads(json.dumps(load_machine("a100-pcie3-ssd").constants()))["storage"]["read"] == 3.5
    )
    assert isinstance(load_machine("gh200"), Machine)

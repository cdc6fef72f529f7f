"""A launch with a duration takes that long when all is near, however its blocks are cut."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.machine.machine import load_machine
from traces import PAGES, Given, Kernel, Touch, machine, reads, run_of

blocks = st.lists(
    st.lists(
        st.builds(
            Touch, st.integers(0, 3 * PAGES - 1), st.booleans(), st.integers(0, 4096), st.just(0)
        ),
        max_size=30,
    ),
    min_size=1,
    max_size=60,
).filter(any)


def second_launch(trace: Given, slots: int) -> float:
    """Return how long the second launch takes; the first one brings everything."""
    launches = run_of(trace, machine(slots), 3, prefetch="region").launches
    assert launches["faults"][1] == 0
    return float(launches["end"][1] - launches["start"][1])


def warm(kernel: Kernel) -> Given:
    return Given([Kernel([reads(range(3 * PAGES))]), kernel], [3 * PAGES])


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    blocks=blocks,
    slots=st.sampled_from((1, 2, 7, 64)),
    width=st.sampled_from((1, 3, 100)),
    cuts=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    duration=st.sampled_from((10.0, 12_345.0, 1e6, 3e9)),
)
def test_it_takes_its_duration(blocks, slots, width, cuts, duration):
    kernel = Kernel(blocks, width, 0.0, cuts, {"duration": duration})
    assert second_launch(warm(kernel), slots) == pytest.approx(duration, rel=1e-6)


def test_many_thousand_blocks():
    kernel = Kernel([reads([n % (3 * PAGES)]) for n in range(20_001)], told={"duration": 5e6})
    assert second_launch(warm(kernel), 64) == pytest.approx(5e6, rel=1e-6)


def test_the_overhead_of_a_launch_is_part_of_its_duration():
    run = run_of(warm(Kernel([reads([0])], told={"duration": 7000.0})), machine(), 3)
    assert run.launches["start"][1] == run.launches["end"][0]


@pytest.mark.parametrize(
    ("flops", "dtype", "expected"),
    [
        (1e9, "fp32", 1e9 / 1024),
        (1e9, "bf16", 1e9 / 4096),
        (1e9, "fp16", 1e9 / 1024),  # no rate of its own: FP32's
        (1.0, "bf16", 3 * PAGES * 4096 / 512),  # the bandwidth is the limit
    ],
)
def test_operations_and_bandwidth_give_a_duration(flops, dtype, expected):
    on = machine(4)
    on = dataclasses.replace(on, rates=dataclasses.replace(on.rates, bf16=4096.0))
    kernel = Kernel([reads(range(3 * PAGES))], told={"flops": flops, "dtype": dtype})
    launches = run_of(warm(kernel), on, 3, prefetch="region").launches
    assert launches["end"][1] - launches["start"][1] == pytest.approx(expected, rel=1e-6)


def test_rates_of_presets():
    assert load_machine("rtx3090-pcie4").rate("bf16") == 71e3
    assert load_machine("v100-nvlink2").rate("bf16") == load_machine("v100-nvlink2").near.flops

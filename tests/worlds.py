"""Random machines and traces, for hypothesis."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from hypothesis import strategies as st

from tidegate.machine.machine import Machine, load_machine, preset_names
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Copy
from traces import Given, Kernel, Touch, machine


@st.composite
def machines(draw: Any) -> Machine:
    """Draw a machine whose constants are sums of powers of two, which add up exactly.

    Each of the driver's mechanisms is on or off.
    """
    one_of = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    blocks_per_sm = one_of(1, 1, 2)
    return machine(
        slots=draw(st.integers(1, 8)) * blocks_per_sm,
        blocks_per_sm=blocks_per_sm,
        utlb_sms=draw(st.integers(1, 3)),
        utlb_faults=draw(st.none() | st.integers(1, 6)),
        block_faults=draw(st.none() | st.integers(1, 6)),
        batch_faults=draw(st.integers(1, 8)),
        pipelined=draw(st.booleans()),
        victims_mapped=draw(st.booleans()),
        bandwidth=one_of(4.0, 64.0, 512.0),
        flops=one_of(64.0, 1024.0),
        latency=one_of(0.0, 2.0, 4096.0),
        launch_overhead=one_of(0.0, 4000.0),
        inward=one_of(2.0, 16.0),
        outward=one_of(1.0, 8.0, 16.0),
        both=one_of(2.0, 16.0, 32.0),
        run_overhead=one_of(0.0, 1536.0),
        run_overhead_outward=one_of(0.0, 2048.0),
        remote_share=one_of(0.5, 1.0),
        remote_latency=one_of(0.0, 640.0),
        batch_overhead=one_of(0.0, 20_000.0),
        region_overhead=one_of(0.0, 10_000.0),
        unmap_per_kib=one_of(0.0, 48.0),
        unmap_prefetched_per_kib=one_of(None, 16.0),
        evict_overhead=one_of(0.0, 4096.0),
        copy_overhead=one_of(0.0, 1024.0),
        first_overhead=one_of(0.0, 32_768.0),
        fault_bytes=one_of(None, 512, 4096),
        asynchronous=draw(st.booleans()),
        round_tails=draw(st.booleans()),
        decision=one_of(0.0, 1024.0),
        frame=one_of("region", "page"),
    )


@st.composite
def observing(draw: Any) -> Machine:
    """Draw such a machine with few counters and a cost of observation."""
    on = draw(machines())
    driver = dataclasses.replace(
        on.driver,
        counters=draw(st.integers(1, 8)),
        sample=draw(st.sampled_from((0.0, 8192.0))),
        notification=draw(st.sampled_from((0.0, 16384.0))),
        batch_notifications=draw(st.integers(1, 3)),
    )
    return dataclasses.replace(on, driver=driver)


@st.composite
def presets(draw: Any) -> Machine:
    """Draw a machine that comes with Tidegate, with few slots and small batches."""
    real = load_machine(draw(st.sampled_from(preset_names()))).with_slots(draw(st.integers(1, 8)))
    return dataclasses.replace(
        real, driver=dataclasses.replace(real.driver, batch_faults=draw(st.integers(1, 8)))
    )


@st.composite
def kernels(draw: Any, pages: list[int], page: int = 4096) -> Kernel:
    """Draw blocks over these pages: mostly neighbours, now and then the same page or any."""
    seed, blocks = draw(st.integers(0, 10**6)), draw(st.integers(1, 20))
    rng = random.Random(seed)
    made, at = [], rng.randrange(len(pages))
    for _ in range(blocks):
        block = []
        for _ in range(rng.choice((0, 1, 2, 3, 6, 10))):
            at = rng.choice((at, at + 1, at + 1, at + 2, rng.randrange(len(pages)))) % len(pages)
            block.append(
                Touch(
                    pages[at],
                    rng.random() < 0.3,
                    rng.choice((0, 1, 64, 512, page)),
                    rng.randrange(4),
                )
            )
        made.append(block)
    cuts = draw(st.lists(st.integers(0, blocks), max_size=3))
    return Kernel(
        made,
        draw(st.sampled_from((1, 1, 2, 5, 16))),
        draw(st.sampled_from((0.0, 0.25, 8.0))),
        tuple(cuts),
    )


GEOMETRIES = tuple(
    Geometry(page, page * n)
    for page, n in ((4096, 1), (4096, 2), (4096, 8), (1024, 16), (65536, 4))
)


@st.composite
def traces(draw: Any, geometries: tuple[Geometry, ...] = GEOMETRIES) -> Given:
    """Draw a few launches over up to three objects."""
    geometry = draw(st.sampled_from(geometries))
    objects = draw(st.lists(st.integers(1, 3 * geometry.pages_per_region), min_size=1, max_size=3))
    pages = [
        p
        for o in Given([], objects, geometry).objects
        for p in range(o.first_page, o.first_page + o.pages)
    ]
    made = draw(st.lists(kernels(pages, geometry.page), min_size=1, max_size=3))
    if not any(block for kernel in made for block in kernel.blocks):
        made.append(Kernel([[Touch(pages[0], bytes=geometry.page)]]))
    return Given(made, objects, geometry)


@st.composite
def lives(draw: Any) -> Given:
    """Draw such a trace with unwritten and read-mostly objects, frees and copies."""
    trace = draw(traces())
    named = st.sampled_from([o.name for o in trace.objects])
    unwritten, mostly = draw(st.sets(named)), draw(st.sets(named))
    trace.first_touch = draw(st.booleans() | st.just(True))
    trace.objects = tuple(
        dataclasses.replace(
            o, host=() if o.name in unwritten else None, read_mostly=o.name in mostly
        )
        for o in trace.objects
    )
    span = st.tuples(st.integers(0, trace.pages - 1), st.integers(1, trace.pages)).map(
        lambda s: (s[0], min(trace.pages, s[0] + s[1]))
    )
    copy = st.builds(
        lambda s, to, wait: Copy(s[0], s[1] - s[0], to, wait),
        span,
        st.sampled_from(("near", "near", "far")),
        st.booleans(),
    )
    told = st.fixed_dictionaries(
        {
            "frees": st.lists(span, max_size=2).map(tuple),
            "copies": st.lists(copy, max_size=2).map(tuple),
        }
    )
    trace.kernels = [dataclasses.replace(k, told=draw(told)) for k in trace.kernels]
    return trace

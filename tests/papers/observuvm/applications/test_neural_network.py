from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.options import Option
from tidegate.papers.observuvm.applications.neural_network import (
    FIRST_HALF,
    SECOND_HALF,
    Layer,
    Network,
)
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from workloads.read_traces import Uses, read
from workloads.wave_checks import check_waves

IMAGES = 7
MAPS, PIXELS = 4, 5


class Small(Network):
    """A network of each kind of layer: a × 6 maps → b → c → d → e, with PIXELS to a map."""

    name = "small"
    bytes = Option(
        4 * (4 * 6 * 9 + 4 * 2 * 9 + IMAGES * PIXELS * (6 + 4 + 4 + 4 + 4)), "as large as it is"
    )
    weights = {"w1": 4 * 6 * 9, "w2": 4 * 2 * 9}  # noqa: RUF012
    activations = {"a": 6 * PIXELS, **dict.fromkeys("bcde", MAPS * PIXELS)}  # noqa: RUF012
    layers = [  # noqa: RUF012
        Layer("conv", "a", "b", MAPS, 10.0, "w1"),
        Layer("norm", "b", "c", MAPS, 20.0, reach=1),
        Layer("pool", "c", "d", MAPS, 30.0, reach=0),
        Layer(
            "half",
            "d",
            "e",
            MAPS // 2,
            40.0,
            "w2",
            reads=FIRST_HALF,
            writes=FIRST_HALF,
            part=FIRST_HALF,
        ),
        Layer(
            "half",
            "d",
            "e",
            MAPS // 2,
            40.0,
            "w2",
            reads=SECOND_HALF,
            writes=SECOND_HALF,
            part=SECOND_HALF,
        ),
        Layer("spread", "e", "b", PIXELS, 50.0, "w1", spread=True),
    ]


def block_uses(parts: list[Uses], number: int, image: int, k: int) -> None:
    """Return what block k of an image uses in layer ``number``, float by float."""
    reads, writes = parts

    def maps(uses: Uses, name: str, which: range, of: int, reference: int, write: int = 0) -> None:
        for f in which:
            for pixel in range(PIXELS):
                uses.element(name, (image * of + f) * PIXELS + pixel, 0, reference, write)

    def weights(name: str, which: range, each: int) -> None:
        for f in which:
            for i in range(each):
                reads.element(name, f * each + i, 0, 1)

    own = range(k, k + 1)
    if number == 0:
        weights("w1", own, 6 * 9)
        maps(reads, "a", range(6), 6, 0)
        maps(writes, "b", own, MAPS, 2, 1)
    elif number == 1:
        maps(reads, "b", range(max(0, k - 1), min(MAPS, k + 2)), MAPS, 0)
        maps(writes, "c", own, MAPS, 2, 1)
    elif number == 2:
        maps(reads, "c", own, MAPS, 0)
        maps(writes, "d", own, MAPS, 2, 1)
    elif number in (3, 4):
        group = MAPS // 2 * (number - 3)
        weights("w2", range(group + k, group + k + 1), 2 * 9)
        maps(reads, "d", range(group, group + MAPS // 2), MAPS, 0)
        maps(writes, "e", range(group + k, group + k + 1), MAPS, 2, 1)
    else:
        weights("w1", range(4), 6 * 9)
        maps(reads, "e", range(MAPS), MAPS, 0)
        maps(writes, "b", range(MAPS), MAPS, 2, 1)


def waves_of(trace: Trace, number: int, first: int, stop: int, wave: int) -> list[list[Uses]]:
    blocks = [
        (image, k) for image in range(first, stop) for k in range(Small.layers[number].blocks)
    ]
    found = []
    for begin in range(0, len(blocks), wave):
        parts = [Uses(trace), Uses(trace)]
        for image, k in blocks[begin : begin + wave]:
            block_uses(parts, number, image, k)
        found.append(parts)
    return found


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    batches=st.integers(1, 9),
    buffers=st.sampled_from(["own", "shared"]),
    wave=st.integers(1, 30),
    lanes=st.integers(1, 8),
    page=st.integers(2, 12).map((1).__lshift__),
)
def test_each_wave_uses_what_its_blocks_do(
    batches: int, buffers: str, wave: int, lanes: int, page: int
) -> None:
    network = Small(batches=batches, buffers=buffers, wave=wave, lanes=lanes)
    trace = network.trace(Geometry(page, 4 * page))
    launches = iter(read(trace))
    assert network.images == IMAGES
    for batch in range(batches):
        first, stop = batch * IMAGES // batches, (batch + 1) * IMAGES // batches
        if buffers == "shared":
            first, stop = 0, IMAGES
        for number, layer in enumerate(Small.layers if first < stop else ()):
            launch = next(launches)
            assert launch.name == layer.kernel
            check_waves(
                launch,
                waves_of(trace, number, first, stop, wave),
                min(lanes, wave, (stop - first) * layer.blocks),
            )
            flops = layer.flops * (stop - first) / network.efficiency
            assert launch.intensity * launch.bytes.sum(dtype=np.int64) == pytest.approx(flops)
    assert next(launches, None) is None


def test_another_size_keeps_the_ratios() -> None:
    full, double = Small().sizes(), Small(bytes=2 * Small.bytes.default).sizes()
    assert sum(full.values()) == Small.bytes.default
    assert double == {name: 2 * size for name, size in full.items()}
    assert Small(bytes=2 * Small.bytes.default).images == 2 * IMAGES

from __future__ import annotations

import pytest

from tidegate.workloads import workloads
from workloads.read_traces import pages_of, program, read


def test_shapes_are_the_published_ones() -> None:
    network = workloads.make("SN")
    assert sum(network.weights.values()) == 1_244_448  # 1.25 million with the biases
    activations = network.activations
    assert activations["conv1"] == 96 * 111 * 111
    assert [activations[f"fire{i}"] for i in range(2, 10)] == [
        128 * 55 * 55,
        128 * 55 * 55,
        256 * 55 * 55,
        256 * 27 * 27,
        384 * 27 * 27,
        384 * 27 * 27,
        512 * 27 * 27,
        512 * 13 * 13,
    ]
    macs = sum(layer.flops for layer in network.layers if layer.weights) / 2
    assert macs == pytest.approx(861e6, rel=0.01)  # as usually given for SqueezeNet v1.0
    assert 1000 < network.images < 1030


def test_layers_follow_one_another() -> None:
    layers = workloads.make("SN").layers
    made = {"input"}
    for layer in layers:
        assert layer.source in made
        made.add(layer.target)
    assert made == set(workloads.make("SN").activations)
    assert sorted(layer.weights for layer in layers if layer.weights) == sorted(
        workloads.make("SN").weights
    )


def test_all_pages_are_used_and_weights_are_only_read() -> None:
    trace = program("SN", bytes="300MB")
    launches = read(trace)
    used = set().union(*(launch.page.tolist() for launch in launches))
    assert used == pages_of(trace, *(o.name for o in trace.objects))
    written = set().union(*(launch.page[launch.write == 1].tolist() for launch in launches))
    activations = set(workloads.make("SN").activations) - {"input"}
    assert written == pages_of(trace, *activations)


def test_expand_layers_write_the_halves_of_their_module() -> None:
    trace = program("SN", bytes="2GB")
    one, three = (next(x for x in read(trace) if x.name == name) for name in ("fire4e1", "fire4e3"))
    pages = pages_of(trace, "fire4")
    first, second = (set(x.page[x.write == 1].tolist()) for x in (one, three))
    assert first | second == pages
    images = workloads.make("SN(bytes=2GB)").images
    assert len(first & second) <= 2 * images, "only where the halves meet within a page"

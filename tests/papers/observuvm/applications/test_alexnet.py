from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tidegate.workloads import workloads
from workloads.read_traces import pages_of, program, read


def test_shapes_are_the_published_ones() -> None:
    network = workloads.make("AN")
    assert sum(network.weights.values()) == 60_954_656  # 61 million, without the biases
    assert network.activations["conv1"] == 290_400
    macs = sum(layer.flops for layer in network.layers if layer.weights) / 2
    assert macs == pytest.approx(724e6, rel=0.01)  # as usually given for AlexNet with groups
    assert 1900 < network.images < 1930


def test_every_activation_is_written_by_one_layer_and_read_by_the_next() -> None:
    layers = workloads.make("AN").layers
    assert layers[0].source == "input"
    assert layers[-1].target == "fc8"
    for before, layer in pairwise(layers):
        assert layer.source in (before.target, before.source)


def test_all_pages_are_used_and_weights_are_only_read() -> None:
    trace = program("AN", bytes="300MB", batches=2)
    launches = read(trace)
    assert len(launches) == 2 * 22
    used = set().union(*(launch.page.tolist() for launch in launches))
    assert used == pages_of(trace, *(o.name for o in trace.objects))
    written = set().union(*(launch.page[launch.write == 1].tolist() for launch in launches))
    activations = [o.name for o in trace.objects if o.name not in workloads.make("AN").weights]
    assert written == pages_of(trace, *activations) - pages_of(trace, "input")


def test_weights_are_used_by_every_batch_and_activations_by_their_own() -> None:
    trace = program("AN", bytes="1GB", batches=4)
    batches = np.array_split(np.array(read(trace), dtype=object), 4)
    pages = [set().union(*(launch.page.tolist() for launch in batch)) for batch in batches]
    weights = pages_of(trace, *workloads.make("AN").weights)
    assert all(weights <= mine for mine in pages)
    both = (pages[0] & pages[1]) - weights
    assert len(both) <= 14, "only where two batches meet within a page"


def test_shared_buffers_are_used_by_every_batch() -> None:
    trace = program("AN", bytes="300MB", batches=3, buffers="shared")
    launches = read(trace)
    for one, two in zip(launches[:22], launches[22:44], strict=True):
        np.testing.assert_array_equal(one.page, two.page)

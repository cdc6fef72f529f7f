"""Importers: the trace touches what the file says, in every format; damaged files are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate.analysis.curves import lru_curve
from tidegate.analysis.flat import lru_misses
from tidegate.errors import TidegateError
from tidegate.trace.exporters import EXPORTERS
from tidegate.trace.geometry import Geometry
from tidegate.trace.importers import IMPORTERS, import_trace, recognise
from trace_importers_files import ADDRESSES, BASE, KEYS, Access, kv_cache, moe, nsight

PAGE = Geometry().page
ONE_ADDRESS_A_LINE = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
accesses = st.lists(
    st.builds(
        Access,
        st.integers(0, 3),
        st.integers(0, 1 << 25).map(lambda n: BASE + 16 * n),
        st.sampled_from([1, 2, 4, 8, 16]),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


def touches(trace):
    """Return (launch, block, address of the page, write) of each touch, in order."""
    found = []
    bases = {o.first_page: int(o.name, 16) * trace.geometry.page for o in trace.objects}
    starts = np.array(sorted(bases))
    for number, launch in enumerate(trace.launches()):
        for s in launch.segments:
            blocks = np.repeat(np.arange(s.blocks), np.diff(s.starts))
            for block, page, write in zip(blocks, s.page, s.write, strict=True):
                first = int(starts[np.searchsorted(starts, page, side="right") - 1])
                address = bases[first] + (int(page) - first) * trace.geometry.page
                found.append((number, int(block), address, bool(write)))
    return found


def refusal(path, name):
    """Return why a file cannot be imported; nothing if it can."""
    try:
        list(import_trace(path, format=name).launches())
    except TidegateError as error:
        return str(error)
    return ""


def merged(rows):
    """Leave out a row that equals the one before."""
    return [row for i, row in enumerate(rows) if i == 0 or row != rows[i - 1]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ADDRESSES)
@ONE_ADDRESS_A_LINE
@given(given_accesses=accesses)
def test_the_trace_touches_what_the_file_says(name, given_accesses, tmp_path_factory):
    path = ADDRESSES[name](tmp_path_factory.mktemp("f") / "file", given_accesses)
    assert recognise(path).name == name
    trace = import_trace(path)
    expected = [(a.block, a.address // PAGE * PAGE, a.write) for a in given_accesses]
    if name == "lackey":  # one block
        expected = [(0, *rest) for _, *rest in expected]
    elif name in ("uvm-tools", "nsight"):  # a fault stands alone
        expected = [(i, *rest) for i, (_, *rest) in enumerate(expected)]
    blocks = sorted({block for block, *_ in expected})
    expected = [
        (blocks.index(block), *rest)
        for wanted in blocks
        for block, *rest in expected
        if block == wanted
    ]
    # sites may differ where the file has opcodes
    assert merged([t[1:] for t in touches(trace)]) == merged(expected)


@pytest.mark.parametrize("name", KEYS)
@ONE_ADDRESS_A_LINE
@given(keys=st.lists(st.integers(0, 2**63), min_size=2, max_size=60))
def test_each_key_is_a_page(name, keys, tmp_path_factory):
    path = KEYS[name](tmp_path_factory.mktemp("f") / "file", keys)
    trace = import_trace(path)
    pages = [p for launch in trace.launches() for s in launch.segments for p in s.page.tolist()]
    order = sorted(set(keys))
    assert pages == [order.index(k) for k in keys]  # a repeat is a request, too
    assert trace.objects[0].pages == len(order) == trace.regions


@pytest.mark.oracle
@pytest.mark.parametrize("name", KEYS)
@given(keys=st.lists(st.integers(0, 40), min_size=2, max_size=200))
def test_the_curve_is_that_of_keys(name, keys, tmp_path_factory):
    """By region too, which is what ``analyze`` takes: flat LRU's misses equal libCacheSim's."""
    trace = import_trace(KEYS[name](tmp_path_factory.mktemp("f") / "file", keys))
    curve = lru_curve(trace)
    assert curve.touches == len(keys)
    for capacity, misses in zip(curve.capacities.tolist(), curve.misses.tolist(), strict=True):
        assert misses == lru_misses(np.array(keys), capacity)


@pytest.mark.parametrize("page", [4096, 65536])
def test_an_access_across_pages_touches_both(tmp_path, page):
    path = ADDRESSES["lackey"](tmp_path / "f", [Access(0, BASE + page - 4, 8, False)])
    trace = import_trace(path, geometry=Geometry(page, 16 * page))
    (segment,) = next(trace.launches()).segments
    assert (np.diff(segment.page), segment.bytes.tolist()) == ([1], [4, 4])


def test_far_addresses_are_objects_of_their_own(tmp_path):
    path = ADDRESSES["lackey"](
        tmp_path / "f", [Access(0, BASE, 8, False), Access(0, BASE + (1 << 40), 8, True)]
    )
    assert len(import_trace(path).objects) == 2


def test_experts_are_objects_and_launches_are_layers(tmp_path):
    path = moe(tmp_path / "log.jsonl", [(0, 0, [1, 2]), (0, 1, [3]), (1, 0, [1])])
    trace = import_trace(path, expert_bytes="1MiB")
    assert [o.name for o in trace.objects] == [
        "layer 0 expert 1",
        "layer 0 expert 2",
        "layer 1 expert 3",
    ]
    launches = [
        (launch.name, sum(s.touches for s in launch.segments)) for launch in trace.launches()
    ]
    assert launches == [("layer 0", 32), ("layer 1", 16), ("layer 0", 16)]


def test_a_prefix_that_was_computed_is_read_and_a_new_one_written(tmp_path):
    path = kv_cache(tmp_path / "t.jsonl", [([0, 1], 0), ([0, 2], 3)])
    trace = import_trace(path, token_bytes="64KiB", block_tokens=1)
    written = [[bool(w) for s in launch.segments for w in s.write] for launch in trace.launches()]
    assert written == [[True, True], [False, True, True, True, True]]


def test_faults_without_a_kernel_table_are_one_launch(tmp_path):
    path = nsight(tmp_path / "r.sqlite", [Access(0, BASE, 4, False)], kernels=False)
    assert [launch.name for launch in import_trace(path).launches()] == ["before the first kernel"]


@pytest.mark.parametrize("name", sorted(EXPORTERS))
def test_what_is_exported_can_be_imported(name, tmp_path):
    given_accesses = [Access(0, BASE + PAGE * p, 8, False) for p in (0, 3, 1, 3, 0)]
    trace = import_trace(ADDRESSES["lackey"](tmp_path / "in", given_accesses))
    EXPORTERS[name](trace, tmp_path / "out", lambda touches: None)
    columns = {"columns": "key=page"} if name == "csv" else {}
    again = import_trace(tmp_path / "out", format=name, **columns)
    pages = [p for launch in again.launches() for s in launch.segments for p in s.page.tolist()]
    assert pages == [0, 2, 1, 2, 0]


@pytest.mark.parametrize("name", sorted({*ADDRESSES, *KEYS}))
@pytest.mark.parametrize("keep", [0.3, 0.77, 0.99])
def test_a_truncated_file_is_refused_or_read_up_to_there(name, keep, tmp_path):
    if name in ADDRESSES:
        given_accesses = [Access(i % 3, BASE + 4096 * i, 8, False) for i in range(300)]
        path = ADDRESSES[name](tmp_path / "f", given_accesses)
    else:
        path = KEYS[name](tmp_path / "f", list(range(300)))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    assert "\n" not in refusal(path, name)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("", None, "is empty"),
        ("hello\n", None, "no format that Tidegate recognises"),
        (" L zz,8\n", "lackey", "line 1"),
        (" L 10,99999999999\n", "lackey", "line 1"),
        ('{"token": 0, "layer": -1, "experts": [1]}\n', "moe", "line 1"),
        ('{"hash_ids": [-5]}\n', "kv-cache", "hash ids must be 0 to"),
        ('{"hash_ids": [9223372036854775808]}\n', "kv-cache", "hash ids must be 0 to"),
        ('{"hash_ids": "x"}\n', "kv-cache", "line 1"),
        ("time,obj_id\n1,\n", "csv", "a key is missing"),
        ("obj_id,size\n1,-4\n", "csv", "sizes must be whole numbers"),
        ("a,b\n1,2\n", "csv", "say which holds the key"),
        ("x", "lacky", "did you mean 'lackey'"),
    ],
)
def test_wrong_files_are_refused_in_one_line(text, name, expected, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(TidegateError, match=expected) as caught:
        list(import_trace(path, format=name).launches())
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@given(data=st.binary(max_size=600))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_trace_or_an_error_of_one_line(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("f") / "file"
    path.write_bytes(data)
    for name in (None, *IMPORTERS):
        assert "\n" not in refusal(path, name)


def test_notes_say_what_is_not_recorded():
    assert all("hits" in " ".join(IMPORTERS[n].notes) for n in ("nsight", "uvm-tools"))
    json.dumps([i.title for i in IMPORTERS.values()])

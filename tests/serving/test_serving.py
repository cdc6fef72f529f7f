"""Caches of keys and values: tiers by oracles, times by hand, wrong files and policies."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.flat import fifo_misses, lru_misses
from tidegate.cli import invoke
from tidegate.errors import PolicyError, TidegateError
from tidegate.machine.machine import load_machine
from tidegate.serving.cache import MISSED, serve
from tidegate.serving.report import Model, Server, make_report, row_of
from tidegate.serving.requests import Requests, read_requests

CONVERSATION = Path(__file__).parents[3] / "shared" / "data" / "mooncake-conversation.jsonl"
A100 = load_machine("a100-pcie3-ssd")


def requests_of(*prompts: list[int]) -> Requests:
    """Return requests of whole blocks."""
    sizes = [len(p) for p in prompts]
    return Requests(
        "given",
        np.array([b for p in prompts for b in p], np.int32),
        np.cumsum([0, *sizes]),
        np.array(sizes) * Model().block_tokens,
        np.arange(len(prompts), dtype=float),
    )


uses = st.lists(st.integers(0, 12), min_size=1, max_size=80)


@pytest.mark.oracle
@given(uses, st.integers(1, 14))
def test_one_tier_is_a_flat_cache(blocks: list[int], room: int) -> None:
    requests = requests_of(blocks)
    ids = np.array(blocks)
    for policy, misses in (("lru", lru_misses), ("fifo", fifo_misses)):
        found = serve(requests, policy, (room, 0, 0))
        assert found.hits(MISSED) == misses(ids, room)


@pytest.mark.oracle
@given(uses, st.integers(1, 5), st.integers(0, 5), st.integers(0, 5))
def test_lru_over_tiers_is_one_lru_cut_in_pieces(
    blocks: list[int], near: int, middle: int, ssd: int
) -> None:
    """Each tier holds the next part of the list by last use."""
    stack: OrderedDict[int, None] = OrderedDict()
    expected = []
    for block in blocks:
        distance = list(reversed(stack)).index(block) if block in stack else None
        cuts = (near, near + middle, near + middle + ssd)
        tier = MISSED if distance is None else sum(distance >= cut for cut in cuts)
        expected.append(MISSED if tier == 3 else tier)
        stack[block] = None
        stack.move_to_end(block)
    found = serve(requests_of(blocks), "lru", (near, middle, ssd))
    assert found.tiers.tolist() == expected


@pytest.mark.oracle
def test_a_real_conversation() -> None:
    """The hit ratios of a plain LRU over its blocks, known to four digits."""
    if not CONVERSATION.exists():
        pytest.skip("the trace is not in this checkout; it lies beside it where there is one")
    requests = read_requests(CONVERSATION)
    assert (len(requests), len(requests.blocks), requests.distinct) == (12_031, 288_500, 182_790)
    for room, ratio in ((1000, 0.0445), (30_000, 0.3257), (182_790, 0.3664)):
        found = serve(requests, "lru", (room, 0, 0))
        assert round(1 - found.hits(MISSED) / len(requests.blocks), 4) == ratio


@pytest.mark.closed_form
def test_prefixes_end_at_the_first_block_that_is_missing() -> None:
    requests = requests_of([0, 1, 2], [0, 1, 2, 3], [0, 9, 2], [], [5])
    found = serve(requests, "lru", (20, 0, 0))
    assert found.prefix.tolist() == [0, 3, 1, 0, 0]
    assert found.tiers.tolist() == [-1, -1, -1, 0, 0, 0, -1, 0, -1, 0, -1]


@pytest.mark.closed_form
def test_times_are_of_bringing_and_computing() -> None:
    """Three blocks in host memory, two on the SSD, one to compute: the rates of the machine."""
    model = Model()
    server = Server(
        A100, model, (3 * model.block_bytes, 3 * model.block_bytes, 9 * model.block_bytes)
    )
    filled = requests_of([0, 1], [2, 3, 4], [5, 6, 7], [4, 3, 2, 1, 0, 8])
    found = serve(filled, "lru", server.blocks)
    assert found.tiers[-6:].tolist() == [1, 1, 1, 2, 2, MISSED]
    assert A100.storage is not None
    flops = 2 * model.parameters * model.block_tokens / (A100.rate("bf16") * model.efficiency)
    expected = (
        3 * model.block_bytes / A100.link.inward + 2 * model.block_bytes / A100.storage.read + flops
    )
    assert server.seconds(filled, found)[-1] == pytest.approx(expected / 1e9)


def test_a_prompt_that_is_found_whole_computes_its_last_token() -> None:
    server = Server(A100, Model(), (1 << 30, 0, 0))
    twice = requests_of([0], [0])
    seconds = server.seconds(twice, serve(twice, "lru", server.blocks))
    assert 0 < seconds[1] < seconds[0] / 100


def test_more_memory_is_worth_something_where_it_is_short() -> None:
    model = Model()
    loop = requests_of(*[[i, i + 1] for _ in range(6) for i in range(0, 40, 2)])
    server = Server(A100, model, (39 * model.block_bytes, 0, 0))
    report = make_report(loop, server, ["lru", "mru"])
    assert report.best.policy == "mru"  # a loop that is larger than memory
    assert report.rows[0].all_hits == 0
    assert report.bound >= report.best.all_hits
    assert report.worth[0].seconds > 0
    assert [blocks for blocks, *_ in report.curve][-1] == loop.distinct


def test_bytes_are_those_of_blocks() -> None:
    model = Model()
    server = Server(A100, model, (2 * model.block_bytes, 4 * model.block_bytes, 0))
    row = row_of(requests_of([0, 1, 2, 3], [0]), server, "lru")
    assert row.bytes_in == (0, model.block_bytes, 0)
    assert row.bytes_out == (3 * model.block_bytes, 0, 0)


# Wrong input


def test_policies_that_a_server_cannot_serve() -> None:
    requests = requests_of([0, 1, 2, 0])
    for name, said in (("belady", "sees the future"), ("mhpe", "touch bits")):
        with pytest.raises(TidegateError, match=said):
            serve(requests, name, (2, 0, 0))
    with pytest.raises(TidegateError, match="room for a block"):
        serve(requests, "lru", (0, 2, 0))


def test_a_victim_that_is_not_there(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from tidegate.policy import EvictionPolicy\n\n\nclass Absent(EvictionPolicy):\n"
        "    def victim(self):\n        return 99\n"
    )
    with pytest.raises(PolicyError, match="named block 99, which is not in its tier"):
        serve(requests_of([0, 1, 2]), f"{mine}:Absent", (1, 0, 0))


def written(path: Path, *rows: Any) -> str:
    file = path / "requests.jsonl"
    file.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))
    return str(file)


GOOD = {"timestamp": 5, "input_length": 900, "output_length": 3, "hash_ids": [7, 8]}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, GOOD, "", GOOD | {"timestamp": 1005})
    assert invoke(["serve-cache", file, "--near", "1GiB", "--eviction", "lru", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["requests"], data["uses"], data["distinct"]) == (2, 4, 2)
    assert data["policies"][0]["all_hits"] == data["bound"] == 0.5
    assert invoke(["serve-cache", file, "--near", "1GiB", "--middle", "1GiB", "--ssd", "1GiB"]) == 0
    assert "a GiB more of ssd saves" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (["{"], [], "line 1: expected a request with hash_ids"),
        ([GOOD, {"hash_ids": ["x"]}], [], "line 2: expected a request"),
        ([GOOD | {"input_length": -1}], [], "line 1"),
        ([GOOD | {"hash_ids": []}], [], "has no requests with hash_ids"),
        ([GOOD], ["--near", "1MiB"], "holds no block of 64.0 MiB"),
        ([GOOD], ["--ssd", "1GiB", "--machine", "rtx3090-pcie4"], "has no SSD"),
        ([GOOD], ["--eviction", "nothing"], "unknown eviction 'nothing'"),
    ],
)
def test_wrong_input_is_one_line(
    rows: list[Any],
    options: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["serve-cache", written(tmp_path, *rows), *options]) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert len(printed.strip().splitlines()) == 1

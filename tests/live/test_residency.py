"""What others can ask a running arena: which regions are near, and nothing that changes it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time

import pytest

from live.test_reliable import SMALL
from tidegate.live import Arena
from tidegate.live.arena.running import running_arenas

pytestmark = pytest.mark.live
REGION = 128 << 10


def ours() -> dict:
    """Return the arena of this process; on a busy machine it may not answer in time at first."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        for arena in running_arenas(residency=True):
            if arena["process"] == os.getpid():
                return arena
    raise AssertionError("the arena does not answer")


@pytest.mark.closed_form
def test_near_regions_are_seen() -> None:
    """Four frames: the last four regions that were written are near."""
    with Arena(**SMALL, eviction="lrm") as arena:  # type: ignore[arg-type]
        array = arena.empty(16 * REGION, "u1", name="mine")
        small = arena.empty(REGION // 8, "u1", name="small")
        small[0] = 1
        for region in range(16):
            array[region * REGION : (region + 1) * REGION] = 1
        found = ours()
        mine, other = found["residency"]
        assert found["user"] == os.getuid()
        assert (mine["name"], mine["regions"], mine["bytes"]) == ("mine", 16, 16 * REGION)
        assert mine["near"] == "0" * 12 + "9" * 4
        assert (other["name"], other["near"]) == ("small", "0")


def test_a_part_of_a_region_is_a_digit_between() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        array = arena.empty(2 * REGION, "u1", name="mine")
        array[0] = 1  # one of eight pages
        page = arena.empty(100, "u1", name="page")
        page[0] = 1  # the only one
        found = {array["name"]: array["near"] for array in ours()["residency"]}
        assert found == {"mine": "20", "page": "9"}


def test_many_regions_share_digits() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        array = arena.empty(1025 * REGION, "u1", name="large")
        array[-1] = 1
        near = ours()["residency"][0]["near"]
        assert len(near) == 342  # three regions for each digit
        assert set(near[:-1]) == {"0"}
        assert near[-1] != "0"


def test_others_change_nothing() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        array = arena.empty(REGION, "u1", name="mine")
        array[:] = 7
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(200)
            peer.connect("\0" + ours()["name"])
            peer.send(json.dumps({"do": "remove", "id": 0}).encode())
            with contextlib.suppress(ConnectionResetError):
                assert peer.recv(1 << 17) == b""  # the supervisor has hung up
        assert [o["name"] for o in ours()["residency"]] == ["mine"]
        assert int(array[REGION - 1]) == 7

"""Random verbs, writes and killed pagers: every byte stays what the program wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from live.test_reliable import SMALL, SOAK
from live.writers import kill_pager
from tidegate.errors import TidegateError
from tidegate.live import Arena
from tidegate.policies.interface.visibility import TouchBits
from tidegate.policies.registries import eviction, prefetch

pytestmark = pytest.mark.live

PAGE, REGION, REGIONS = 16 << 10, 128 << 10, 16
OPERATIONS = 4000 if SOAK else 400


def sees_touch_bits(registry: object) -> list[str]:
    return [n for n in registry.names() if isinstance(registry.find(n).sees, TouchBits)]  # type: ignore


TOUCH_BITS = [
    *((policy, "region") for policy in sees_touch_bits(eviction)),
    *(("lrm", spec) for spec in sees_touch_bits(prefetch)),
]


@pytest.mark.slow
@pytest.mark.parametrize("ask", [False, True], ids=["policy", "program"])
@pytest.mark.parametrize(("policy", "spec"), TOUCH_BITS)
def test_a_remote_page_that_a_prefetch_covers_keeps_its_bytes(
    policy: str, spec: str, ask: bool
) -> None:
    """Whether the policy or the program asks for the prefetch."""
    with Arena(**SMALL, eviction=policy, prefetch="none" if ask else spec) as arena:  # type: ignore
        a = arena.empty(16 * REGION, "u1")
        arena.advise(a, "far")
        a[:PAGE] = 7
        arena.advise(a, None)
        a[5 * PAGE] = 1
        if ask:
            arena.prefetch(a[:REGION])
        arena.settle()
        assert (a[:PAGE] == 7).all()
        a[REGION:] = 1  # and it is written back when it leaves
        assert (a[:PAGE] == 7).all()


@pytest.mark.parametrize(
    "kills", [pytest.param(False, marks=pytest.mark.slow), True], ids=["", "killed"]
)
@pytest.mark.parametrize(
    ("policy", "spec"), [*TOUCH_BITS, ("lru", "tree"), ("tournament", "fdp+rgp"), ("mru", "region")]
)
def test_no_sequence_of_verbs_changes_a_byte(
    policy: str, spec: str, kills: bool, tmp_path: Path
) -> None:
    draw = np.random.default_rng(len(policy) + 7 * len(spec) + kills)
    path = tmp_path / "data"
    np.zeros(REGIONS * REGION, "u1").tofile(path)
    with Arena(**SMALL, eviction=policy, prefetch=spec) as arena:  # type: ignore[arg-type]
        arrays = [arena.open(path, "u1", mode="r+"), arena.empty(REGIONS * REGION, "u1")]
        shadows = [np.zeros(REGIONS * REGION, "u1") for _ in arrays]
        done: list[str] = []
        for _ in range(OPERATIONS):
            which, page = int(draw.integers(2)), int(draw.integers(REGIONS * REGION // PAGE - 12))
            part = slice(page * PAGE, (page + int(draw.integers(1, 12))) * PAGE)
            a, shadow = arrays[which], shadows[which]
            verb = draw.choice(
                ["write", "read", "far", "near", "prefetch", "pin", "flush", "kill", "discard"]
            )
            done.append(f"{verb} {which}[{page}:{part.stop // PAGE}]")
            if verb == "write":
                a[part.start : part.stop : PAGE // 2] = shadow[
                    part.start : part.stop : PAGE // 2
                ] = draw.integers(1, 256)
            elif verb == "read":
                assert (a[part] == shadow[part]).all(), done[-20:]
            elif verb in ("far", "near"):
                arena.advise(a[part], "far" if verb == "far" else None)
            elif verb == "prefetch":
                arena.prefetch(a[part])
            elif verb == "discard":
                if which == 1:
                    arena.discard(a[part])
                    whole = slice(-(-part.start // REGION) * REGION, part.stop // REGION * REGION)
                    shadow[whole] = 0
            elif verb == "pin":
                with arena.pin(a[part.start : part.start + PAGE]) as pinned:
                    pinned[:] = shadow[part.start : part.start + PAGE] = draw.integers(1, 256)
            elif verb == "flush":
                arena.flush()
                assert (np.fromfile(path, "u1") == shadows[0]).all(), done[-20:]
            elif kills and draw.random() < 0.3:
                kill_pager(arena._supervisor.pid)
        for a, shadow in zip(arrays, shadows, strict=True):
            assert (a == shadow).all(), done[-20:]
    assert (np.fromfile(path, "u1") == shadows[0]).all()


def test_discarded_data_are_zeros_and_are_not_written_back() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        a = arena.empty(REGION + PAGE // 2, "u1")
        a[:] = 7
        arena.discard(a)  # its last page is its own, too
        assert not a.any()
        a[:] = 7
        arena.discard(a[1:])  # the first page is shared with an element that stays
        assert a[0] == 7
        assert a[:REGION].all()
        before = arena.stats()["bytes_out"]
        arena.discard(a)
        b = arena.empty(4 * REGION, "u1")
        assert b.sum() == 0
        assert arena.stats()["bytes_out"] == before


def test_what_cannot_be_discarded(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(REGION))
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        with pytest.raises(TidegateError, match="is a file"):
            arena.discard(arena.open(path, "u1"))
        with pytest.raises(TidegateError, match="contiguous"):
            arena.discard(arena.empty(4 * REGION, "u1")[::2])
        with pytest.raises(TidegateError, match="not of this arena"):
            arena.discard(np.zeros(REGION, "u1"))


def test_verbs_take_arrays_only() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        for verb in (arena.prefetch, arena.share, arena.discard):
            with pytest.raises(TidegateError, match="expected an array of this arena, got list"):
                verb([1])  # type: ignore[arg-type]

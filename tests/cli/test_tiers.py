"""Three tiers at the command line and from Python: --tiering, and what it refuses."""

from __future__ import annotations

import pytest

import tidegate as library
from tidegate.errors import TidegateError
from tidegate.policy import Tier, TierPolicy

SMALL = "cyclic(bytes=8MiB, passes=3)"  # 128 pages of 64 KiB
TIERS = ("--tiering", "tier-order", "--near", "1MiB", "--middle", "4MiB")
MINE = '''
from tidegate.policy import Option, Tier, TierPolicy

class Odd(TierPolicy):
    """Odd pages go to the middle."""

    beyond = Option(0, "pages below go far", least=0)

    def place(self, page):
        return Tier.MIDDLE if page % 2 and page >= self.beyond else Tier.FAR
'''


def test_run_says_what_ran_and_where_the_time_went(works):
    out = works("run", SMALL, *TIERS).out
    assert ", assumed · tier-order, victims by clock · a100-pcie3-ssd" in out
    assert "8.00 MiB over 1.00 MiB near and 4.00 MiB middle: 1.60 times both" in out
    for word in (
        "compute",
        "storage read",
        "touches",
        "misses",
        "evictions",
        "SSD read",
        "SSD written",
    ):
        assert word in out


def test_run_as_json_and_csv(works):
    data = works("run", SMALL, *TIERS, "--json").json
    s = data["summary"]
    # the oldest is always the next to be used
    assert (s["touches"], s["middle_hits"], s["far_reads"]) == (384, 0, 384)
    assert (s["near_bytes"], s["middle_bytes"]) == (1 << 20, 4 << 20)
    assert len(data["launches"]["name"]) == len(data["launches"]["far_reads"]) > 0
    row = works("run", SMALL, *TIERS, "--csv").csv[0]
    assert row["tiering"] == "tier-order"
    assert row["far_reads"] == "384"


def test_capacities_by_default_are_gmts(works):
    s = works("run", "cyclic(bytes=100MiB)", "--tiering", "bam", "--json").json["summary"]
    assert (s["near_bytes"], s["middle_bytes"]) == (10 << 20, 0)
    s = works(
        "run",
        "cyclic(bytes=100MiB)",
        "--tiering",
        "tier-order",
        "--oversubscribe",
        "300%",
        "--json",
    ).json["summary"]
    assert (s["near_bytes"], s["middle_bytes"]) == (25 << 20, 100 << 20)


def test_what_is_dirty_at_the_end_is_written_unless_one_says_so(works):
    flushed, left = (
        works("run", "stencil(bytes=8MiB)", *TIERS, *more, "--json").json
        for more in ((), ("--no-flush",))
    )
    assert flushed["summary"]["far_writes"] > left["summary"]["far_writes"]
    assert flushed["summary"]["time_ns"] > left["summary"]["time_ns"]
    assert any("not written" in note for note in left["notes"])


@pytest.mark.parametrize("eviction", ["lru-ideal", "belady", "tournament"])
def test_another_eviction_policy_in_place_of_clock(works, eviction):
    assert f"victims by {eviction}" in works("run", SMALL, *TIERS, "--eviction", eviction).out


def test_a_run_is_kept_and_the_same_again(works):
    of_its_own = "cyclic(bytes=18MiB, passes=2)"  # no other test runs it
    one, other, anew = (
        works("run", of_its_own, *TIERS, *more, "--json").json for more in ((), (), ("--no-cache",))
    )
    assert [run.pop("from_store") for run in (one, other, anew)] == [False, True, False]
    assert one == other == anew


@pytest.mark.slow
@pytest.mark.parametrize("format", ["png", "svg"])
def test_pictures(works, tmp_path, format):
    works("run", SMALL, *TIERS, "--plot", f"run.{format}")
    works(
        "compare",
        SMALL,
        "--tiering",
        "bam,tier-reuse",
        "--near",
        "1MiB,2MiB",
        "--plot",
        f"race.{format}",
    )
    assert (tmp_path / f"run.{format}").stat().st_size > 5000
    assert (tmp_path / f"race.{format}").stat().st_size > 5000


def test_compare_races_placements_with_the_bound(works):
    rows = works(
        "compare", SMALL, "--tiering", "bam,tier-reuse", "--near", "1MiB,2MiB", "--csv"
    ).csv
    assert [r["policy"] for r in rows] == ["bam", "tier-reuse", "tier-belady"] * 2
    assert [r["near_bytes"] for r in rows] == [str(2 << 20)] * 3 + [str(1 << 20)] * 3
    assert rows[0]["speedup"] == "1.0"
    for size in (rows[:3], rows[3:]):
        assert int(size[2]["far_reads"]) == min(int(r["far_reads"]) for r in size)
    assert (
        "tier-belady"
        not in works("compare", SMALL, "--tiering", "bam,tier-reuse", "--no-belady").out
    )


def test_ones_own_placement(works, refused, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    assert (
        "Odd(beyond=64), victims by clock"
        in works("run", SMALL, *TIERS[2:], "--tiering", "mine.py:Odd(beyond=64)").out
    )
    assert "Even" in refused("run", SMALL, "--tiering", "mine.py:Even")
    (tmp_path / "bad.py").write_text(MINE.replace("return Tier.MIDDLE", "return 9"))
    message = refused("run", SMALL, *TIERS[2:], "--tiering", "bad.py:Odd")
    assert "answered place() with something else than Tier.STAY, MIDDLE or FAR" in message


def test_list_names_the_placements(works):
    rows = [r for r in works("list", "policies", "--json").json if r["kind"] == "tiering"]
    assert {"bam", "tier-order", "tier-random", "tier-reuse", "hmm", "tier-belady"} <= {
        r["policy"] for r in rows
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tiering", "tier-reusee"), "unknown tiering 'tier-reusee'; did you mean 'tier-reuse'?"),
        (("--tiering", "tier-reuse(window=0)"), "window"),
        (("--tiering", "tier-reuse(full=never)"), "full"),
        (("--tiering", "tier-order", "--near", "1KiB"), "near memory must hold at least one page"),
        (("--tiering", "tier-order", "--near", "much"), "'much'"),
        (("--tiering", "tier-order", "--near", "1MiB", "--oversubscribe", "50%"), "give one"),
        (
            ("--tiering", "tier-order", "--oversubscribe", "-50%"),
            "oversubscribe must be at least 0%",
        ),
        (("--tiering", "tier-order", "--middle", "some"), "'some'"),
        (
            ("--tiering", "tier-order", "--slots", "0"),
            "slots must be a whole number, at least 1, got 0",
        ),
        (
            ("--tiering", "tier-order", "--machine", "rtx3090-pcie4"),
            "must have [storage] for tiers",
        ),
        (("--tiering", "tier-order", "--prefetch", "tree"), "prefetch and tiering were both given"),
        (
            ("--tiering", "tier-order", "--geometry", "4KiB/64KiB"),
            "geometry and tiering were both given",
        ),
        (("--tiering", "tier-belady", "--eviction", "mru"), "chooses victims itself"),
        (("--tiering", "tier-order", "--checked"), "checked and tiering were both given"),
        (("--middle", "1GiB"), "middle was given without tiering"),
        (("--no-flush",), "flush was given without tiering"),
    ],
)
def test_bad_input_gets_one_line(refused, words, message):
    assert message in refused("run", SMALL, *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tiering", "bam,bam"), "--tiering has bam twice"),
        (("--tiering", ","), "--tiering must name one or several"),
        (("--tiering", "bam,nothing"), "unknown tiering 'nothing'"),
        (("--tiering", "bam", "--eviction", "lrm,mru"), "tiering needs one eviction"),
        (("--tiering", "bam", "--system", "uvm"), "tiering and system were both given"),
        (("--tiering", "bam", "--near", "1MiB", "--oversubscribe", "50%"), "give one"),
        (("--middle", "1GiB"), "middle was given without tiering"),
    ],
)
def test_bad_races_get_one_line(refused, words, message):
    assert message in refused("compare", SMALL, *words)


def test_from_python():
    class Mine(TierPolicy):
        def place(self, page: int) -> int:
            return Tier.MIDDLE if page % 3 else Tier.STAY

    run = library.run(SMALL, tiering=Mine(), near="1MiB", middle="8MiB")
    assert run.counts["stays"] > 0
    assert run.facts["tiering"] == "Mine"
    assert abs(run.time - sum(run.parts.values())) < 1
    assert run.objects["pages_near"].sum() == 16
    assert run.plot() is not None
    race = library.compare(SMALL, tiering=["bam", Mine], near=["1MiB"])
    assert race.policies == ["bam", "Mine", "tier-belady"]
    with pytest.raises(TidegateError, match="unknown tiering"):
        library.run(SMALL, tiering="none")

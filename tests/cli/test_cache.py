"""tidegate cache, and what output says of runs from the store."""

from __future__ import annotations

from pathlib import Path

import pytest

NAME = "0123456789abcdef" * 2
OURS = {
    "runs": f"runs/01/{NAME}.json",
    "recordings": f"recordings/01/{NAME}.npz",
    "readings": f"variants/parts/{NAME}.parquet",
    "compiled": f"compiled/{NAME}/policies/LRU-1",
    "traces": f"traces/{NAME}.columns",
}
OTHERS = ["runs/mine.csv", "runs/01/notes.json", "variants/a.json", "compiled/x/y", "own.txt"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TIDEGATE_CACHE", str(folder))
    return folder


@pytest.fixture
def filled(cache: Path) -> Path:
    for name in [*OURS.values(), *OTHERS]:
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_text("x" * 100)
    return cache


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_it_shows_what_is_stored(works, filled):
    shown = works("cache", "--json").json
    assert [(h["kind"], h["files"], h["bytes"]) for h in shown] == [(k, 1, 100) for k in OURS]
    out = works("cache").out
    assert str(filled) in out
    assert "readings" in out


def test_an_empty_cache_is_no_error(works, cache):
    assert all(h["files"] == 0 for h in works("cache", "--json").json)
    works("cache", "clear")
    assert not cache.exists()


@pytest.mark.parametrize("kinds", [(), ("runs",), ("compiled", "readings"), ("runs", "runs")])
def test_clear_removes_these_kinds_and_nothing_else(works, filled, kinds):
    removed = works("cache", "clear", *kinds, "--json").json
    wanted = set(kinds) or set(OURS)
    assert {h["kind"] for h in removed} == wanted
    assert sum(h["bytes"] for h in removed) == 100 * len(wanted)
    assert files(filled) == {*OTHERS, *(f for kind, f in OURS.items() if kind not in wanted)}


def test_an_unknown_kind_is_refused(refused, filled):
    assert "did you mean 'runs'?" in refused("cache", "clear", "rnus")


SAID = "from the store; --no-cache computes it anew"


def test_run_says_that_it_is_from_the_store(works, small, cache):
    words = ("run", small, "--slots", "1")
    assert SAID not in works(*words).out
    assert works(*words).out.splitlines()[-1] == SAID
    assert works(*words, "--json").json["from_store"]
    assert works(*words, "--csv").csv[0]["from_store"] == "true"
    assert SAID not in works(*words, "--no-cache").out
    assert not works(*words, "--no-cache", "--json").json["from_store"]


def test_compare_says_how_many_are_from_the_store(works, small, cache):
    works("run", small, "--eviction", "mru")
    words = ("compare", small, "-e", "mru,fifo", "--no-belady")
    last = works(*words).out.splitlines()[-1]
    assert last == "1 of 2 runs are from the store; --no-cache computes them anew"
    assert [row["from_store"] for row in works(*words, "--json").json] == [True, True]
    assert [row["from_store"] for row in works(*words, "--csv", "--no-cache").csv] == ["false"] * 2


def test_python_shows_it_too(small, cache):
    import tidegate

    first, again = (tidegate.run(small) for _ in range(2))
    assert "from the store" not in repr(first)
    assert repr(again).endswith(", from the store>")
    assert "from the store" in again._repr_html_()
    assert "from the store" in repr(tidegate.compare(small, ["lrm"], bound=False))

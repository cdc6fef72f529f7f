import numpy as np
import pytest

from tidegate.analysis import Sequence, analyze, belady_curve, lru_curve, shards_curve
from tidegate.errors import TidegateError


def test_one_pass_says_what_each_part_says(small, id_sequences):
    trace = small(id_sequences["zipf"], cuts=[5_000, 1, 30_000])
    told: list[int] = []
    found = analyze(trace, "page", shards=0.2, progress=told.append)
    assert told == [5_000, 1, 30_000, 24_999]
    assert found.touches == 60_000
    assert found.distinct == len(np.unique(id_sequences["zipf"])) == found.footprint["distinct"][-1]
    assert np.array_equal(found.curve.misses, lru_curve(trace, "page").misses)
    assert np.array_equal(found.shards_curve.misses, shards_curve(trace, 0.2, unit="page").misses)
    assert found.histogram["touches"].sum() == 60_000
    assert analyze(trace, "page").shards_curve is None


@pytest.mark.parametrize(
    "read",
    [
        analyze,
        lru_curve,
        lambda t: shards_curve(t, 0.5),
        lambda t: belady_curve(t, [1]),
        lambda t: analyze(t, shards=0.5),
    ],
)
@pytest.mark.parametrize("objects", [True, False])
def test_an_empty_trace_is_refused(small, read, objects):
    trace = small([], room=64)
    if not objects:
        trace.objects = ()
    with pytest.raises(TidegateError, match=r"^trace small is empty: it touches nothing$"):
        read(trace)


@pytest.mark.slow
@pytest.mark.parametrize("shards", [None, 0.5])
@pytest.mark.parametrize("pages", [[5], [5, 5], list(range(40)) * 3])
def test_the_figure_can_be_drawn(small, tmp_path, pages, shards):
    path = analyze(
        small(np.array(pages) * 32), shards=1.0 if len(pages) < 9 and shards else shards
    ).plot(tmp_path / "a.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_figure_says_its_units(small):
    from tidegate.analysis.plot import figure

    panels = figure(analyze(small(np.arange(4000)), "page")).axes
    assert [axes.get_xlabel() for axes in panels] == [
        "memory (MiB)",
        "other memory touched since (at least)",
        "touches",
    ]
    assert panels[2].get_ylabel() == "memory touched so far (MiB)"
    large = figure(analyze(small(np.arange(0, 40_000, 32)))).axes
    assert large[0].get_xlabel() == "memory (GiB)"


@pytest.mark.parametrize("name", ["missing/a.png", "a.nonsense"])
def test_a_figure_that_cannot_be_written_says_so(small, tmp_path, name):
    with pytest.raises(TidegateError, match=r"^cannot write .*"):
        analyze(small([1])).plot(tmp_path / name)


def test_iterating_twice_gives_the_same(small):
    sequence = Sequence(small([1, 2, 3], cuts=[1]), "page")
    assert [c.tolist() for c in sequence] == [c.tolist() for c in sequence]

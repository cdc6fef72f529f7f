"""Pictures: every axis says what it shows, whatever there is to show."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from tidegate.display.figures import save_figure
from tidegate.errors import TidegateError
from tidegate.experiments import Comparison, Run, compare
from tidegate.experiments.plots import plot_comparison, plot_run
from tidegate.experiments.two_tiers import PARTS
from traces import Given, Kernel, machine, one_block, reads, run_of

# such as matplotlib's about limits that are the same
pytestmark = pytest.mark.filterwarnings("error")

LOOP = one_block(reads([*range(64)] * 3), [64])
RUNS = {
    "evicting": lambda: run_of(LOOP, machine(4), 4),
    "it fits": lambda: run_of(LOOP, machine(4), 8),
    "one touch": lambda: run_of(one_block(reads([0]), [1]), machine(), 1),
    "no faults, all remote": lambda: run_of(LOOP, machine(4), 4, placement="host"),
    "everything at once": lambda: run_of(
        LOOP, machine(4, pipelined=True), 4, eviction="lru-ideal", prefetch="tree", dirty_only=True
    ),
    "many launches": lambda: run_of(Given([Kernel([reads(range(64))])] * 50, [64]), machine(2), 3),
}


def drawn(figure: Figure) -> str:
    """Draw it for real: some mistakes show only then."""
    out = io.StringIO()
    figure.savefig(out, format="svg")
    return out.getvalue()


def bars(axes) -> dict[str, float]:
    """The width of each labelled bar, added up."""
    return {c.get_label(): sum(bar.get_width() for bar in c) for c in axes.containers}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_s_axes_are_labelled(name):
    run = RUNS[name]()
    figure = plot_run(run)
    rates, memory, parts, faults = figure.axes
    assert (rates.get_ylabel(), faults.get_ylabel(), memory.get_ylabel()) == (
        "GB/s",
        "faults per ms",
        "frames in use",
    )
    assert memory.get_xlabel() == parts.get_xlabel()
    assert parts.get_xlabel() in ("time (µs)", "time (ms)", "time (s)")
    assert [t.get_text() for t in rates.get_legend().get_texts()] == [
        "link in",
        "link out",
        "faults",
    ]
    assert [t.get_text() for t in parts.get_yticklabels()] == [run.facts["eviction"]]
    assert "given" in figure.get_suptitle()
    assert len(drawn(figure)) > 10_000


@pytest.mark.parametrize(
    "name", ["evicting", "it fits", "no faults, all remote", "everything at once"]
)
def test_the_bars_are_the_parts_of_time(name):
    run = RUNS[name]()
    axes = plot_run(run).axes[2]
    scale = {"time (µs)": 1e3, "time (ms)": 1e6}[axes.get_xlabel()]
    assert bars(axes) == pytest.approx(
        {p.replace("_", " "): ns / scale for p, ns in run.parts.items() if ns}
    )


def test_the_rates_add_up_to_what_was_moved():
    run = RUNS["evicting"]()
    rates = plot_run(run).axes[0]
    for line, moved in zip(
        rates.lines, (run.summary["bytes_in"], run.summary["bytes_out"]), strict=True
    ):
        step = (
            np.diff(line.get_xdata()).mean() * 1e6
            if run.time >= 1e6
            else np.diff(line.get_xdata()).mean() * 1e3
        )
        assert line.get_ydata().sum() * step == pytest.approx(moved)


def test_a_remote_run_says_so():
    run = RUNS["no faults, all remote"]()
    assert run.counts["faults"] == 0
    assert "remote access" in bars(plot_run(run).axes[2])


@pytest.fixture(scope="module")
def race() -> Comparison:
    return compare(
        LOOP,
        ["lrm", "mru", "random(seed=2)"],
        machine=machine(4),
        near=[6 * 32768, 4 * 32768],
        cache=False,
        workers=1,
    )


def test_a_comparison_over_sizes(race):
    figure = plot_comparison(race)
    left, right = figure.axes
    assert (
        [t.get_text() for t in left.get_yticklabels()]
        == race.policies
        == ["lrm", "mru", "random(seed=2)", "belady"]
    )
    assert left.get_xlabel() == right.get_ylabel()
    assert right.get_xlabel() == "near memory (MiB)"
    assert "oversubscribed" in left.get_title()
    assert [t.get_text() for t in right.get_legend().get_texts()] == race.policies
    assert [sorted(line.get_xdata()) for line in right.lines] == [[4 / 32, 6 / 32]] * 4
    assert "given" in figure.get_suptitle()
    drawn(figure)


def test_a_comparison_s_bars_are_the_runs_at_one_size(race):
    left, right = plot_comparison(race).axes
    scale = {"time (µs)": 1e3, "time (ms)": 1e6}[left.get_xlabel()]
    near = race.sizes[len(race.sizes) // 2]
    assert sum(bars(left).values()) == pytest.approx(
        sum(race.run(p, near).time for p in race.policies) / scale
    )
    for policy, line in zip(race.policies, right.lines, strict=True):
        assert line.get_ydata() == pytest.approx(
            [race.run(policy, n).time / scale for n in race.sizes]
        )


@pytest.mark.parametrize(
    "how", [{}, {"placement": "host"}, {"bound": False}, {"near": [8 * 32768]}]
)
def test_a_comparison_at_one_size_shows_evictions(how):
    race = compare(LOOP, ["lrm"], machine=machine(2), cache=False, **how)
    left, right = plot_comparison(race).axes
    assert right.get_xlabel() == "evictions"
    assert [bar.get_width() for bar in right.patches] == [
        race.run(p, race.sizes[0]).counts["evictions"] for p in race.policies
    ]
    assert left.get_xlabel().startswith("time (")
    drawn(left.figure)


@pytest.mark.slow
def test_many_policies_have_room():
    race = compare(
        LOOP, [f"random(seed={i})" for i in range(30)], machine=machine(2), cache=False, workers=1
    )
    figure = plot_comparison(race)
    assert figure.get_figheight() > 12
    assert len(figure.axes[0].get_yticklabels()) == 31
    drawn(figure)


def test_prefetchers_are_told_apart():
    race = compare(
        LOOP,
        ["lrm"],
        ["none", "tree"],
        machine=machine(2),
        near=[4 * 32768, 6 * 32768],
        cache=False,
        workers=1,
    )
    left, _ = plot_comparison(race).axes
    assert [t.get_text() for t in left.get_yticklabels()] == [
        "lrm + none",
        "lrm + tree",
        "belady + none",
        "belady + tree",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg", "html", "PNG"])
def test_plot_writes_and_answers_the_figure(tmp_path, suffix):
    run = RUNS["evicting"]()
    assert isinstance(run.plot(tmp_path / f"run.{suffix}"), Figure)
    assert isinstance(run.plot(str(tmp_path / f"again.{suffix}")), Figure)
    assert {p.name for p in tmp_path.iterdir()} == {f"run.{suffix}", f"again.{suffix}"}
    assert isinstance(run.plot(), Figure)


def test_names_are_no_markup(tmp_path):
    figure = Figure()
    save_figure(figure, tmp_path / "x.html", title="<script>&")
    assert "<title>&lt;script&gt;&amp;</title>" in (tmp_path / "x.html").read_text()


def test_where_a_figure_cannot_be_written(tmp_path):
    for name in ("x.pdf", "x", "nowhere/x.png"):
        with pytest.raises(TidegateError, match="cannot write"):
            save_figure(Figure(), tmp_path / name, "")
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_a_table():
    run: Run = RUNS["evicting"]()
    html = run._repr_html_()
    assert "<b>given, assumed · lrm + none + um" in html
    assert '<img src="data:image/png;base64,' in html
    for part in PARTS:
        assert (part.replace("_", " ") in html) == bool(run.parts[part])


def test_placements_that_take_as_long_are_all_seen():
    """Lines on top of one another have rings of different sizes."""
    race = compare(
        "cyclic(bytes=8MiB, passes=2)", tiering=["bam", "tier-order"], near=["1MiB", "2MiB"]
    )
    lines = {line.get_label(): line for line in race.plot().axes[-1].get_lines()}
    assert lines["bam"].get_markersize() > lines["tier-order"].get_markersize()
    assert {
        line.get_markerfacecolor() for name, line in lines.items() if name != "tier-belady"
    } == {"none"}


@pytest.mark.slow
def test_no_two_of_many_lines_look_alike_and_the_legend_is_beside_them():
    race = compare(
        LOOP,
        ["lrm", "mru", *(f"random(seed={i})" for i in range(28))],
        machine=machine(2),
        near=[4 * 32768, 6 * 32768],
        cache=False,
        workers=1,
    )
    figure = plot_comparison(race)
    axes = figure.axes[1]
    looks = {(x.get_color(), x.get_linestyle(), x.get_marker()) for x in axes.lines}
    assert len(looks) == len(axes.lines) == 31
    drawn(figure)
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1


def test_what_fits_is_said_to_fit_in_the_picture():
    race = compare(LOOP, ["lrm"], machine=machine(2), near=[64 * 32768], cache=False)
    assert "(it fits)" in plot_comparison(race).axes[0].get_title()


@pytest.mark.slow
def test_several_workloads_have_a_row_of_pictures_each():
    race = compare(["cyclic(bytes=8MiB, passes=1|2)", "stream(bytes=8MiB)"], "lrm", near="4MiB")
    titles = [axes.get_title() for axes in plot_comparison(race).axes[::2]]
    assert len(titles) == 3
    for title, workload in zip(titles, race.workloads, strict=True):
        assert title.startswith(workload)

"""tidegate reproduce: a paper's figures and claims beside what we measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output, run_options
from tidegate.cli.progress import Bar

if TYPE_CHECKING:
    from tidegate.reproduce.report import Reproduction

app = typer.Typer(
    help="Reproduce a paper: its figures and the ledger of its claims, or all papers on one page."
)

READINGS = 1024  # combinations of open readings that --robustness tries

Quick = Annotated[bool, typer.Option("--quick", help="A reduced grid, in about a minute.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes; one per core by default.")
]
Robustness = Annotated[
    bool,
    typer.Option(
        "--robustness", help="Also the share of open readings under which each claim holds."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Also write it: a page (.html), or a folder with page, figures and tables."
    ),
]


@app.command("observuvm")
def observuvm(
    quick: Quick = False,
    oversubscribe: Annotated[
        str, typer.Option("--oversubscribe", help="How much larger than near memory.")
    ] = "50%",
    observed: Annotated[int, typer.Option("--observed", help="Regions observed at a time.")] = 100,
    samples: Annotated[
        int, typer.Option("--samples", help="Pages sampled per region; 0 adapts the number.")
    ] = 0,
    scale: Annotated[
        str | None, typer.Option("--scale", help="Of the paper's sizes, e.g. 1/8.")
    ] = None,
    robustness: Robustness = False,
    workers: Workers = None,
    no_cache: run_options.NoCache = False,
    as_json: output.AsJson = False,
    out: Out = None,
) -> None:
    """ObservUVM (ISCA'26): 14 applications under 9 systems.

    tidegate reproduce observuvm --quick --out report.html
    """
    from tidegate import units
    from tidegate.reproduce.observuvm import Setup

    base = Setup.quick() if quick else Setup()
    setup = Setup(
        oversubscribe=oversubscribe,
        observed=observed,
        samples=samples,
        scale=base.scale if scale is None else units.fraction(scale),
        readings=READINGS if robustness else 0,
    )
    _reproduce({"observuvm": setup}, workers, no_cache, as_json, out)


@app.command("cppe")
def cppe(
    quick: Quick = False,
    level: Annotated[
        str, typer.Option("--level", help="Shares of the footprint that fit, with commas.")
    ] = "75%,50%",
    t1: Annotated[
        int, typer.Option("--t1", help="Untouched pages of an interval from which LRU takes over.")
    ] = 32,
    t2: Annotated[int, typer.Option("--t2", help="Those of the first four intervals.")] = 40,
    t3: Annotated[
        int, typer.Option("--t3", help="The forward distance grows while it is no more than this.")
    ] = 32,
    interval: Annotated[int, typer.Option("--interval", help="Pages in an interval.")] = 64,
    chunk: Annotated[str, typer.Option("--chunk", help="Size of a chunk, e.g. 32KiB.")] = "64KiB",
    scale: Annotated[str, typer.Option("--scale", help="Of the paper's sizes, e.g. 1/2.")] = "1",
    robustness: Robustness = False,
    workers: Workers = None,
    no_cache: run_options.NoCache = False,
    as_json: output.AsJson = False,
    out: Out = None,
) -> None:
    """CPPE (IPDPS'20): 23 applications under 9 systems, with 75 % and 50 % of each in near memory.

    tidegate reproduce cppe --t1 16 --out report.html
    """
    from tidegate import units
    from tidegate.reproduce.cppe import Setup

    base = Setup.quick() if quick else Setup()
    levels = base.levels if quick and level == "75%,50%" else tuple(run_options.split(level))
    setup = Setup(
        levels=levels,
        t1=t1,
        t2=t2,
        t3=t3,
        interval=interval,
        chunk=chunk,
        scale=units.fraction(scale),
        readings=READINGS if robustness else 0,
        crossing=base.crossing,
    )
    _reproduce({"cppe": setup}, workers, no_cache, as_json, out)


@app.command("gmt")
def gmt(
    quick: Quick = False,
    factor: Annotated[
        float | None,
        typer.Option("--factor", help="Footprint over both tiers; Table 2's without it."),
    ] = None,
    ratio: Annotated[float, typer.Option("--tier2-ratio", help="Tier-2 over Tier-1.")] = 4.0,
    near: Annotated[
        str | None,
        typer.Option("--near", help="Tier-1, e.g. 512MiB; with --factor footprints follow."),
    ] = None,
    scale: Annotated[
        str | None, typer.Option("--scale", help="Of the suite's sizes, e.g. 1/8.")
    ] = None,
    robustness: Robustness = False,
    workers: Workers = None,
    no_cache: run_options.NoCache = False,
    as_json: output.AsJson = False,
    out: Out = None,
) -> None:
    """GMT (ASPLOS'24): 9 applications over three tiers, under 7 systems.

    tidegate reproduce gmt --factor 4 --tier2-ratio 8
    """
    from tidegate import units
    from tidegate.reproduce.gmt import Setup

    base = Setup.quick() if quick else Setup()
    setup = Setup(
        factor=factor,
        ratio=ratio,
        near=near,
        scale=base.scale if scale is None else units.fraction(scale),
        readings=READINGS if robustness else 0,
    )
    _reproduce({"gmt": setup}, workers, no_cache, as_json, out)


@app.command("hybrid")
def hybrid(
    quick: Quick = False,
    applications: Annotated[
        str | None, typer.Option("--applications", help="Some of the eight, with commas.")
    ] = None,
    fitting: Annotated[
        str | None, typer.Option("--fitting", help="Sizes that fit 16 GB, in GB, with commas.")
    ] = None,
    larger: Annotated[str | None, typer.Option("--larger", help="Sizes that do not.")] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", help="Density from which objects are prefetched.")
    ] = 0.5,
    loops: Annotated[
        str, typer.Option("--loops", help="How often programs loop: rodinia, own or long.")
    ] = "rodinia",
    unmap: Annotated[
        float | None,
        typer.Option(
            "--unmap", help="µs per KiB for taking a page from the CPU; the machine's without it."
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option("--scale", help="Of all sizes, near memory's too; 1/32 without it."),
    ] = None,
    robustness: Robustness = False,
    workers: Workers = None,
    no_cache: run_options.NoCache = False,
    as_json: output.AsJson = False,
    out: Out = None,
) -> None:
    """Compiler-assisted hybrid memory (SC'19): 8 applications of 4 to 112 GB on a GPU of 16 GB,
    under 10 schemes.

    tidegate reproduce hybrid --scale 1 --applications cfd --out report.html
    """
    from tidegate import units
    from tidegate.reproduce.hybrid import Setup
    from tidegate.reproduce.hybrid.open_points import ROBUST_READINGS

    base = Setup.quick() if quick else Setup()
    setup = Setup(
        fitting=base.fitting if fitting is None else _numbers("--fitting", fitting),
        larger=base.larger if larger is None else _numbers("--larger", larger),
        scale=base.scale if scale is None else units.fraction(scale),
        threshold=threshold,
        largest=base.largest,
        loops=loops,
        unmap=unmap,
        readings=ROBUST_READINGS if robustness else 0,
        applications=base.applications
        if applications is None
        else tuple(run_options.split(applications)),
    )
    _reproduce({"hybrid": setup}, workers, no_cache, as_json, out)


@app.command("leu")
def leu(
    quick: Quick = False,
    oversubscribe: Annotated[
        str, typer.Option("--oversubscribe", help="How much larger than near memory.")
    ] = "50%",
    scale: Annotated[
        str | None, typer.Option("--scale", help="Of the reduced sizes, e.g. 1/2.")
    ] = None,
    workers: Workers = None,
    no_cache: run_options.NoCache = False,
    as_json: output.AsJson = False,
    out: Out = None,
) -> None:
    """Statistical caching (MEMSYS'19): LEU's examples, miss-ratio curves, and every eviction policy
    beside Belady.

    tidegate reproduce leu --out report.html
    """
    from dataclasses import replace

    from tidegate import units
    from tidegate.reproduce.leu import Setup

    base = Setup.quick() if quick else Setup()
    setup = replace(
        base, scale=1.0 if scale is None else units.fraction(scale), oversubscribe=oversubscribe
    )
    _reproduce({"leu": setup}, workers, no_cache, as_json, out)


def _numbers(option: str, text: str) -> tuple[float, ...]:
    from tidegate.errors import TidegateError

    try:
        return tuple(float(part) for part in run_options.split(text))
    except ValueError:
        raise TidegateError(f"{option} {text}: expected sizes in GB such as 4,9,14") from None


@app.command("all")
def everything(
    quick: Quick = False,
    workers: Workers = None,
    no_cache: run_options.NoCache = False,
    as_json: output.AsJson = False,
    out: Out = None,
) -> None:
    """Every paper, on one page.

    tidegate reproduce all --out report.html
    """
    from tidegate.reproduce import PAPERS, find_paper

    setups = {
        name: find_paper(name).Setup.quick() if quick else find_paper(name).Setup()
        for name in PAPERS
    }
    _reproduce(setups, workers, no_cache, as_json, out)


def _reproduce(
    setups: dict[str, Any], workers: int | None, no_cache: bool, as_json: bool, out: Path | None
) -> None:
    """Run one paper after another, then show and write what came of them."""
    from tidegate.reproduce import find_paper
    from tidegate.reproduce.report import check_destination, write_report

    if out is not None:
        check_destination(out)
    papers = {name: find_paper(name) for name in setups}
    with Bar(
        f"reproduce {', '.join(setups)}", sum(papers[n].size(s) for n, s in setups.items()), "runs"
    ) as bar:
        done = [
            papers[name].reproduce(setup, workers=workers, cache=not no_cache, progress=bar.advance)
            for name, setup in setups.items()
        ]
    # before anything is printed: whoever reads that may go away
    written = [] if out is None else write_report(done, out)
    if as_json:
        output.print_json([r.to_json() for r in done])
        return
    for reproduction in done:
        _show(reproduction)
    if written:
        print(
            f"written to {written[0]}"
            + (f" and {len(written) - 1} files beside it" if len(written) > 1 else "")
        )


def _show(r: Reproduction) -> None:
    """Figures as tables, then the ledger."""
    from rich.console import Console

    from tidegate.reproduce.report import show_cell

    print(f"{r.title}\n{r.setup}")
    for note in r.notes:
        print(note)
    for e in r.exhibits:
        print(f"\n“{e.words}”")
        output.print_table(
            e.table.columns,
            [[show_cell(v) for v in row] for row in e.table.rows()],
            f"{e.name}: {e.title}",
        )
        for note in e.notes:
            print(note)
    console = Console(width=None if Console().is_terminal else 160, highlight=False, markup=False)
    console.print(r.ledger.table())

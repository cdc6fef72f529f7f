"""tidegate reproduce: a paper's figures and claims beside what we measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import asked, output
from tidegate.cli.progress import Bar

if TYPE_CHECKING:
    from tidegate.experiments.report import Reproduction

app = typer.Typer(
    help="Reproduce a paper: its figures and the ledger of its claims, or all papers on one page.", no_args_is_help=True
)

READINGS = 1024  # combinations of open readings that --robustness tries

Quick = Annotated[bool, typer.Option("--quick", help="A reduced grid, in about a minute.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Processes; one per core by default.")]
Out = Annotated[
    Path | None, typer.Option("--out", help="Also write it: a page (.html), or a folder with page, figures and tables.")
]


@app.command("observuvm")
def observuvm(
    quick: Quick = False,
    oversubscribe: Annotated[str, typer.Option("--oversubscribe", help="How much larger than near memory.")] = "50%",
    observed: Annotated[int, typer.Option("--observed", help="Regions observed at a time.")] = 100,
    samples: Annotated[int, typer.Option("--samples", help="Pages sampled per region; 0 adapts the number.")] = 0,
    scale: Annotated[str | None, typer.Option("--scale", help="Of the paper's sizes, e.g. 1/8.")] = None,
    robustness: Annotated[
        bool, typer.Option("--robustness", help="Also the share of open readings under which each claim holds.")
    ] = False,
    workers: Workers = None,
    no_cache: asked.NoCache = False,
    as_json: output.AsJson = False,
    out: Out = None,
) -> None:
    """ObservUVM (ISCA'26): 14 applications under 9 systems.

    tidegate reproduce observuvm --quick --out report.html
    """
    from tidegate import units
    from tidegate.experiments.reproduce.observuvm import Setup

    base = Setup.quick() if quick else Setup()
    setup = Setup(
        oversubscribe=oversubscribe, observed=observed, samples=samples,
        scale=base.scale if scale is None else units.fraction(scale), readings=READINGS if robustness else 0,
    )  # fmt: skip
    _reproduce({"observuvm": setup}, workers, no_cache, as_json, out)


@app.command("all")
def everything(
    quick: Quick = False,
    workers: Workers = None,
    no_cache: asked.NoCache = False,
    as_json: output.AsJson = False,
    out: Out = None,
) -> None:
    """Every paper, on one page.

    tidegate reproduce all --out report.html
    """
    from tidegate.experiments.reproduce import PAPERS, find_paper

    setups = {name: find_paper(name).Setup.quick() if quick else find_paper(name).Setup() for name in PAPERS}
    _reproduce(setups, workers, no_cache, as_json, out)


def _reproduce(setups: dict[str, Any], workers: int | None, no_cache: bool, as_json: bool, out: Path | None) -> None:
    """Run one paper after another, then show and write what came of them."""
    from tidegate.experiments.report import check_destination, write_report
    from tidegate.experiments.reproduce import find_paper

    if out is not None:
        check_destination(out)
    papers = {name: find_paper(name) for name in setups}
    with Bar(f"reproduce {', '.join(setups)}", sum(papers[n].size(s) for n, s in setups.items()), "runs") as bar:
        done = [
            papers[name].reproduce(setup, workers=workers, cache=not no_cache, progress=bar.advance)
            for name, setup in setups.items()
        ]
    if as_json:
        output.print_json([r.to_json() for r in done])
    else:
        for reproduction in done:
            _show(reproduction)
    if out is not None:
        written = write_report(done, out)
        if not as_json:
            print(f"written to {written[0]}" + (f" and {len(written) - 1} files beside it" if len(written) > 1 else ""))


def _show(r: Reproduction) -> None:
    """Figures as tables, then the ledger."""
    from rich.console import Console

    from tidegate.experiments.report import show_cell

    print(f"{r.title}\n{r.setup}")
    for note in r.notes:
        print(note)
    for e in r.exhibits:
        print(f"\n“{e.words}”")
        output.print_table(e.table.columns, [[show_cell(v) for v in row] for row in e.table.rows()], f"{e.name}: {e.title}")
        for note in e.notes:
            print(note)
    console = Console(width=None if Console().is_terminal else 160, highlight=False, markup=False)
    console.print(r.ledger.table())

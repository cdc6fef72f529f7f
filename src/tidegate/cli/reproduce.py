"""tidegate reproduce: a paper's figures and claims beside what is measured.

A paper's command has an option for each field that its ``Setup`` declares with ``option``. Papers
are imported when their command is used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tidegate.cli import output, run_options
from tidegate.cli.output import ProgressBar
from tidegate.cli.usage import Verbs

if TYPE_CHECKING:
    from tidegate.papers.report import Reproduction
    from tidegate.papers.setup import Setup

EVERY = "all"

Quick = Annotated[bool, typer.Option("--quick", help="A reduced grid, in about a minute.")]
Robustness = Annotated[
    bool,
    typer.Option(
        "--robustness", help="Also the share of open readings under which each claim holds."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        help="The page to write (.html), or a folder for the page, figures and tables.",
    ),
]


class _Commands(Mapping[str, Any]):
    """A command for each paper, and one for all."""

    def __iter__(self) -> Iterator[str]:
        from tidegate.papers import paper_names

        return iter((*paper_names(), EVERY))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> Any:
        if name not in list(self):
            raise KeyError(name)
        alone = Verbs(add_completion=False)
        alone.command(name)(every_paper if name == EVERY else _command_of(name))
        return typer.main.get_command(alone)


class PaperCommands(TyperGroup):
    """The group of all papers' commands."""

    def __init__(self, **attributes: Any):
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]


app = Verbs(
    cls=PaperCommands,
    help="Reproduce a paper: its figures and the ledger of its claims, or all papers on one page.",
)


@app.callback()
def group() -> None:
    """Make Typer see a group, though its commands are found later."""


def _command_of(name: str) -> Callable[..., None]:
    """Return the command of one paper; its signature is made from the paper's setup."""
    from tidegate.papers import find_setup

    Setup = find_setup(name)
    options = Setup.options()

    def command(
        quick: bool,
        workers: int | None,
        no_cache: bool,
        as_json: bool,
        out: Path | None,
        robustness: bool = False,
        **given: Any,
    ) -> None:
        changed = {o.field: o.read(given[o.field]) for o in options if given[o.field] is not None}
        if robustness:
            changed.setdefault("readings", Setup.tried)
        setup = replace(Setup.quick() if quick else Setup(), **changed)
        _reproduce({name: setup}, workers, no_cache, as_json, out)

    parameters: dict[str, tuple[Any, Any]] = {"quick": (Quick, False)}
    for o in options:
        default = f" \\[default: {o.shown}]" if o.shown else ""  # --quick may have another one
        declared = typer.Option(o.flag, help=f"{o.help}{default}", show_default=False)
        parameters[o.field] = (Annotated[o.kind | None, declared], None)
    if Setup.tried:
        parameters["robustness"] = (Robustness, False)
    parameters |= {"workers": (run_options.Workers, None), "no_cache": (run_options.NoCache, False)}
    parameters |= {"as_json": (output.AsJson, False), "out": (Out, None)}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=hint)
            for field, (hint, value) in parameters.items()
        ]
    )
    command.__annotations__ = {field: hint for field, (hint, _) in parameters.items()}
    help = inspect.cleandoc(Setup.__doc__ or "")
    command.__doc__ = f"{help}\n\ntidegate reproduce {name} {Setup.example}"
    return command


def every_paper(
    quick: Quick = False,
    workers: run_options.Workers = None,
    no_cache: run_options.NoCache = False,
    as_json: output.AsJson = False,
    out: Out = None,
) -> None:
    """Every paper, on one page.

    tidegate reproduce all --out report.html
    """
    from tidegate.papers import find_setup, paper_names

    setups = {name: find_setup(name) for name in paper_names()}
    chosen = {name: setup.quick() if quick else setup() for name, setup in setups.items()}
    _reproduce(chosen, workers, no_cache, as_json, out)


def _reproduce(
    setups: Mapping[str, Setup],
    workers: int | None,
    no_cache: bool,
    as_json: bool,
    out: Path | None,
) -> None:
    """Run one paper after another, then show and write the results."""
    from tidegate.papers import find_paper
    from tidegate.papers.report import check_destination, write_report

    if out is not None:
        check_destination(out)
    papers = {name: find_paper(name) for name in setups}
    total = sum(papers[name].size(setup) for name, setup in setups.items())
    with ProgressBar(f"reproduce {', '.join(setups)}", total, "runs") as bar:
        done = [
            papers[name].reproduce(setup, workers=workers, cache=not no_cache, progress=bar.advance)
            for name, setup in setups.items()
        ]
    # before anything is printed, because a closed pipe ends the printing
    written = [] if out is None else write_report(done, out)
    if as_json:
        output.print_json(
            [{**r.to_json(), "runs": r.runs, "from_store": r.from_store} for r in done]
        )
        return
    for reproduction in done:
        _show(reproduction)
    if written:
        beside = f" and {len(written) - 1} files beside it" if len(written) > 1 else ""
        print(f"written to {written[0]}{beside}")


def _show(r: Reproduction) -> None:
    """Print figures as tables, then the ledger."""
    from tidegate.papers.report import show_cell

    output.print_text("\n".join((r.title, r.setup, *r.notes)))
    for e in r.exhibits:
        print()
        output.print_text(f"“{e.words}”")
        rows = [[show_cell(v) for v in row] for row in e.table.rows()]
        output.print_table(e.table.columns, rows, f"{e.name}: {e.title}")
        for note in e.notes:
            output.print_text(note)
    output.print_tables([r.ledger.table()])
    output.print_stored(r.from_store, r.runs)

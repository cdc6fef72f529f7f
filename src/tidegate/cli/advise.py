"""tidegate advise: will it fit, what is memory worth, what should I do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.cli.compile import ClangOptions, Define, Include, Standard, clang_options
from tidegate.cli.output import ProgressBar
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.advice import Advice, Subject
    from tidegate.machine.machine import Machine

Program = Annotated[
    str,
    typer.Argument(
        help=(
            "A recording or trace (step.parquet), a PyTorch script (train.py), a ready model "
            "('gpt-1.3b(batch=4)'), a source (nn.c), a Makefile or its folder, a saved model of "
            "compile, or a workload."
        ),
        show_default=False,
    ),
]
Machines = Annotated[
    str | None,
    typer.Option(
        "--machine",
        help="A preset or your own TOML file, or several, with commas; by default rtx3090-pcie4.",
    ),
]
KINDS = {
    "torch": "a PyTorch module with hooks, or managed memory by an allocator of its own",
    "cuda": "a header of prefetches by launch",
    "openmp": "a header of directives",
    "preload": "a library for a CUDA program as it is, and its plan",
    "arena": "with --live, the call that makes an Arena",
}
"""Kinds of code, and what each is."""
Emit = Annotated[
    str | None,
    typer.Option(
        "--emit",
        help="Code for the advice, with commas. "
        + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())
        + ".",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", help="The page to write, e.g. advice.html; code is written beside it."
    ),
]
Live = Annotated[
    bool, typer.Option("--live", help="A NumPy script: which policy and how much RAM for an Arena.")
]


def advise(
    program: Program,
    near: o.NearOrMachines = None,
    machine: Machines = None,
    emit: Emit = None,
    out: Out = None,
    live: Live = False,
    values: o.Variables = None,
    include: Include = None,
    define: Define = None,
    std: Standard = None,
    clang: ClangOptions = None,
    workers: o.Workers = None,
    no_cache: o.NoCache = False,
    as_json: output.AsJson = False,
) -> None:
    """Say whether a program fits, what more memory is worth and what to do, with the code for it.

    Every candidate is simulated on a trace of the program: the plain driver, published systems,
    placements of objects, and plans by tensor. Ctrl-C ends with what is known until then.

    tidegate advise step.parquet --near 24GiB
    tidegate advise 'gpt-1.3b(batch=4)' --machine rtx3090-pcie4,gh200 --emit torch --out advice.html
    """
    from tidegate.advice.advice import MACHINE
    from tidegate.machine.machine import load_machine

    kinds = _kinds(emit)
    _check_outputs(kinds, out, as_json)
    options = clang_options(include, define, std, clang)
    if live:
        _refuse_with_live(machine=machine, out=out, set=values, workers=workers, clang=options)
        _advise_live(program, near, kinds, as_json)
        return
    if "arena" in kinds:
        raise TidegateError("--emit arena is for NumPy scripts: give --live, too")
    machines = [load_machine(name) for name in o.split_option("machine", machine) or [MACHINE]]
    found = [
        _advise(program, near, on, values or [], options, workers, not no_cache) for on in machines
    ]
    _show(found, kinds, out, as_json)


def _refuse_with_live(**given: object) -> None:
    """Refuse options that advice on a NumPy script has no use for."""
    for name, value in given.items():
        if value:
            raise TidegateError(f"--{name} and --live were both given; leave out --{name}")


def _kinds(emit: str | None) -> list[str]:
    """Return the kinds of code that were asked for."""
    from tidegate.errors import UnknownName

    kinds = o.split_option("emit", emit) or []
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("code for --emit", kind, tuple(KINDS))
    return kinds


def _check_outputs(kinds: list[str], out: Path | None, as_json: bool) -> None:
    """Refuse what cannot be written, before any work."""
    if out is not None:
        from tidegate.display.figures import check_output

        check_output(out, (".html",))
    elif len(kinds) > 1 or (kinds and as_json):
        raise TidegateError(
            f"--emit {','.join(kinds)} needs --out: code is written beside that page; "
            "without it, give one kind and no --json"
        )


def _advise(
    program: str,
    near: str | None,
    machine: Machine,
    values: list[str],
    options: list[str],
    workers: int | None,
    cache: bool,
) -> Advice:
    from tidegate import units
    from tidegate.advice import Simulator, advise_on, find_subject
    from tidegate.cli.plan import parse_values

    room = machine.near.bytes if near is None else units.size(near)
    with ProgressBar(f"read {program}", unit="launches") as bar, output.user_code():
        subject = find_subject(program, room, machine, parse_values(values), bar.advance, options)
    with _Steps(subject) as steps:
        return advise_on(
            subject, machine, room, Simulator(workers, cache, steps.advance), steps.begin
        )


def _advise_live(script: str, near: str | None, kinds: list[str], as_json: bool) -> None:
    from tidegate import units
    from tidegate.advice.live import RUNS, advise_live

    if kinds not in ([], ["arena"]):
        raise TidegateError(f"--live emits arena only, got {','.join(kinds)}")
    room = units.size("256MiB" if near is None else near)
    with ProgressBar(f"advise on {script}", total=RUNS, unit="runs") as bar:
        found = advise_live(script, room, bar.advance)
    if kinds:
        print(found.code(), end="")
    elif as_json:
        output.print_json(found.to_data())
    else:
        output.print_text("\n".join(found.sentences()))
        output.print_tables([found.table()])


class _Steps:
    """A bar for each step."""

    def __init__(self, subject: Subject):
        self._subject, self._bar = subject, ProgressBar(f"advise on {subject.name}", unit="runs")

    def __enter__(self) -> _Steps:
        self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(None, None, None)

    def begin(self, what: str, trials: int) -> None:
        self._bar.__exit__(None, None, None)
        self._bar = ProgressBar(f"{self._subject.name}: {what}", total=trials, unit="runs")

    def advance(self) -> None:
        self._bar.advance()


def _show(found: list[Advice], kinds: list[str], out: Path | None, as_json: bool) -> None:
    from tidegate.advice.emit import emit
    from tidegate.advice.words import sentences, tables, to_data

    if out is not None:
        written = _write(found, kinds, out)
    elif kinds:
        _put(emit(found[0], kinds[0]), found[0].subject)
        return
    if as_json:
        output.print_json([to_data(advice) for advice in found])
        return
    for advice in found:
        output.print_text("\n".join(sentences(advice)))
        output.print_tables(tables(advice))
        for note in advice.notes:
            output.print_text(f"note: {note}")
    if out is not None:
        output.print_text(f"written to {', '.join(map(str, written))}")


def _put(files: dict[str, str], program: Subject) -> None:
    """Print a file of code; several are written here, named after the program."""
    if len(files) == 1:
        print(*files.values(), end="")
    else:
        output.write_files(files, Path(program.name), program.notes)


def _write(found: list[Advice], kinds: list[str], out: Path) -> list[Path]:
    """Write the page, and the code for the first machine beside it."""
    from tidegate.advice.emit import emit
    from tidegate.advice.page import page
    from tidegate.files import write_atomically

    codes = {
        out.with_suffix(ending): code
        for kind in kinds
        for ending, code in emit(found[0], kind).items()
    }
    files = {out: page(found, {path.name: code for path, code in codes.items()}), **codes}
    for path, content in files.items():
        write_atomically(path, content)
    return list(files)

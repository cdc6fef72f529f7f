"""The command line: ``tidegate VERB``.

One module per verb; heavy imports wait until a verb runs.
"""

from __future__ import annotations

import functools
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from tidegate.cli import (
    advise,
    analyze,
    cache,
    calibrate,
    compare,
    compile,
    completion,
    doctor,
    emit,
    examples,
    listing,
    live,
    plan,
    record,
    reproduce,
    run,
    serve_cache,
    studio,
    sweep,
    trace,
    validate,
)
from tidegate.cli.output import prepare_streams
from tidegate.cli.usage import Debugging, Verbs, explain, welcome
from tidegate.display.tables import printable
from tidegate.interrupts import INTERRUPTED, raising_interrupts

app = Verbs(
    name="tidegate",
    help=(
        "Run programs larger than their fast memory: race eviction, prefetch and placement "
        "policies on a simulated GPU."
    ),
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
app.command("run")(run.run)
app.command("compare")(compare.compare)
app.command("advise")(advise.advise)
app.command("analyze")(analyze.analyze)
app.command("compile")(compile.compile)
app.command("plan")(plan.plan)
app.command("emit")(emit.emit)
app.command("calibrate")(calibrate.calibrate)
app.command("list")(listing.list_names)
app.command("validate")(validate.validate)
app.command("serve-cache")(serve_cache.serve_cache)
app.command("doctor")(doctor.doctor)
app.command("studio")(studio.studio)
app.command("completion")(completion.completion)
app.add_typer(trace.app, name="trace")
app.add_typer(record.app, name="record")
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(sweep.app, name="sweep")
app.add_typer(live.app, name="live")
app.add_typer(cache.app, name="cache")
app.add_typer(examples.app, name="examples")


def _version(wanted: bool) -> None:
    if wanted:
        from tidegate import __version__

        print(__version__)
        raise typer.Exit()


@app.callback()
def start(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the whole traceback of an error.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and stop.", is_eager=True, callback=_version
        ),
    ] = False,
) -> None:
    """Note ``--debug``, which may also be typed last (see ``VerbCommand``)."""
    context.obj.wanted = debug
    if context.invoked_subcommand is None:
        welcome()


def main() -> None:
    """Run the command line. A mistake of the user is one line and exit code 2; a traceback needs
    --debug.
    """
    prepare_streams()
    completion.prepare_completion()
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    from tidegate.errors import TidegateError

    debugging = Debugging()
    try:
        with raising_interrupts(), warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code = _command().main(arguments, "tidegate", standalone_mode=False, obj=debugging)
        sys.stdout.flush()
        if code == INTERRUPTED:  # Typer handles Ctrl-C silently
            raise KeyboardInterrupt
        return int(code or 0)
    except TyperException as error:
        return _fail(explain(error), error, debugging)
    except TidegateError as error:
        return _fail(str(error), error, debugging)
    except (KeyboardInterrupt, typer.Abort):
        print("tidegate: stopped; nothing was written", file=sys.stderr)
        # CPython remembers a Ctrl-C that came inside an exec of text and would end by SIGINT; this
        # clears it
        exec("")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        text = f"{error.strerror or error}: {error.filename or 'standard output'}"
        return _fail(text, error, debugging)
    except RecursionError as error:
        return _fail(
            f"{error}; is a file nested very deeply? --debug shows where", error, debugging
        )
    except MemoryError as error:
        return _fail(
            f"not enough memory: {error}; try a smaller workload, or a larger page with --geometry",
            error,
            debugging,
        )


@functools.cache
def _command() -> Any:
    """Return the verbs with their options, which take Typer 30 ms to make."""
    return typer.main.get_command(app)


def _show_warning(message: object, *place: object) -> None:
    """Print a warning as one line on standard error."""
    print(f"tidegate: {printable(str(message))}", file=sys.stderr)


def _fail(message: str, error: BaseException, debugging: Debugging) -> int:
    if debugging.wanted:
        raise error
    print("tidegate: " + " ".join(printable(message).split()), file=sys.stderr)
    return 2

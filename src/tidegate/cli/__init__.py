"""The command line: ``tidegate VERB``. One module per verb; heavy imports wait until a verb runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from tidegate.cli import analyze, compare, listing, run, trace

app = typer.Typer(
    name="tidegate",
    help="Run programs larger than their fast memory: race eviction, prefetch and placement policies on a simulated GPU.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("compare")(compare.compare)
app.command("analyze")(analyze.analyze)
app.command("list")(listing.list_names)
app.add_typer(trace.app, name="trace")

_debug = False


@app.callback()
def start(
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    global _debug
    _debug = debug
    if version:
        from tidegate import __version__

        print(__version__)
        raise typer.Exit()


def main() -> None:
    """Run the command line. What the user can put right is one line and exit code 2; a traceback is for --debug."""
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: list[str]) -> int:
    """Run one command and answer its exit code."""
    from tidegate.errors import TidegateError

    try:
        code = app(args=arguments or ["--help"], prog_name="tidegate", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except TyperException as error:
        return _fail(f"{error.format_message().splitlines()[0]} See 'tidegate --help'.", error)
    except TidegateError as error:
        return _fail(str(error), error)
    except (KeyboardInterrupt, typer.Abort):
        print("tidegate: stopped; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        return _fail(f"{error.strerror or error}: {error.filename or 'standard output'}", error)
    except MemoryError as error:
        return _fail(f"not enough memory: {error}; try a smaller workload, or a larger page with --geometry", error)


def _fail(message: str, error: BaseException) -> int:
    if _debug:
        raise error
    print("tidegate: " + " ".join(message.split()), file=sys.stderr)
    return 2

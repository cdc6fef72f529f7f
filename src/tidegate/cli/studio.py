"""tidegate studio: look into runs on a web page of this machine."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from tidegate.errors import TidegateError

LEAST_MEMORY, MOST_MEMORY = 1 << 20, 1 << 40  # for recordings

Things = Annotated[
    list[str] | None,
    typer.Argument(
        help=(
            "A trace, a run (its key or its --json), a report of reproduce --json, a plan, a "
            "policy's file, or a folder of such. Without any, everything that is stored."
        ),
        show_default=False,
    ),
]
AllowFiles = Annotated[
    bool, typer.Option("--allow-files", help="Let the page name any file, also code to execute.")
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the address.")]
Port = Annotated[
    int | None,
    typer.Option("--port", min=1, max=65535, help="Of 127.0.0.1; by default 8719 or the next."),
]
Memory = Annotated[str, typer.Option("--memory", help="For recordings that are kept.")]


def studio(
    things: Things = None,
    allow_files: AllowFiles = False,
    port: Port = None,
    memory: Memory = "512MiB",
    no_browser: NoBrowser = False,
) -> None:
    """Look into runs: races, heat maps, two runs side by side, curves, plans, papers and live
    arenas, on a web page that only this machine and this user can open. Ctrl-C ends it.

    tidegate studio
    tidegate studio trace.parquet
    """
    from tidegate import units

    kept = units.size(memory)
    if not LEAST_MEMORY <= kept <= MOST_MEMORY:
        raise TidegateError(f"memory must be from 1MiB to 1TiB, got {memory}; such as 512MiB")
    require_studio()
    from tidegate.studio.serve import make_studio, serve

    made, view = make_studio(things or (), allow_files=allow_files, memory=kept)
    serve(made, view, port=port, browser=not no_browser)


def require_studio() -> None:
    """Raise an error where the extra is not installed."""
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise TidegateError(
            f"studio needs {' and '.join(missing)}, got none of it; "
            "install it with pip install 'tidegate[studio]'"
        )

"""Serving: what to open, which port, and the browser."""

from __future__ import annotations

import contextlib
import re
import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tidegate.errors import TidegateError
from tidegate.studio.api import Studio
from tidegate.studio.guard import Guard, opening_page
from tidegate.studio.library import MEMORY, Allowed, Library
from tidegate.studio.papers import read_json

PORT = 8719  # the first that is tried
_KEY = re.compile(r"[0-9a-f]{32}")
_TRACES = (".parquet",)


def make_studio(
    given: Sequence[str] = (), *, allow_files: bool = False, memory: int = MEMORY
) -> tuple[Studio, str]:
    """Return a studio with these things opened, and the view to begin with.

    A thing is a trace, a run (its key, or what ``run --json`` printed), a report of ``reproduce
    --json``, a plan of ``plan --emit json``, a policy's file, or a folder of such.
    """
    files = [Path(text) for text in given if not _KEY.fullmatch(text)]
    for folder in [file for file in files if file.is_dir()]:
        files += [f for f in sorted(folder.iterdir()) if f.suffix in (*_TRACES, ".json", ".py")]
    files = [file for file in files if not file.is_dir()]
    allowed = Allowed(tuple(files), allow_files)
    studio = Studio(Library(memory), allowed)
    view = ""
    for text in filter(_KEY.fullmatch, given):
        studio.library.run(text)
        view = view or f"run/{text}"
    for file in files:
        view = view or open_file(studio, file)
    return studio, view


def open_file(studio: Studio, file: Path) -> str:
    """Open one file; return the view that shows it."""
    if not file.is_file():
        raise TidegateError(
            f"file must exist, got {file}; give a trace, a run, a report or a folder"
        )
    if file.suffix == ".py":
        studio.opened.setdefault("policies", []).append(str(file))
        return "race"
    if file.suffix != ".json":
        studio.opened.setdefault("traces", []).append(str(file))
        return f"race?workload={file}"
    data = read_json(file)
    if isinstance(data, dict) and isinstance(data.get("key"), str):
        studio.library.run(data["key"])
        return f"run/{data['key']}"
    if isinstance(data, dict) and "places" in data:
        studio.opened["plan"] = data
        return "plan"
    return f"papers/{studio.papers.open(data, str(file))[0]}"


def serve(
    studio: Studio,
    view: str = "",
    *,
    port: int | None = None,
    browser: bool = True,
    say: Callable[[str], Any] = print,
) -> None:
    """Serve until Ctrl-C, on 127.0.0.1 only."""
    import uvicorn

    token = secrets.token_urlsafe(32)
    with _listen(port) as listener, contextlib.ExitStack() as opened:
        number = listener.getsockname()[1]
        app = Guard(studio.app(), token, number)
        config = uvicorn.Config(
            app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1
        )
        say(f"tidegate studio: {_address(number, token, view)}")
        if browser:
            page = opened.enter_context(opening_page(_address(number, app.once, view)))
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(page.as_uri())
        with contextlib.suppress(KeyboardInterrupt):  # the way to end it
            uvicorn.Server(config).run(sockets=[listener])


def _address(port: int, token: str, view: str) -> str:
    return f"http://127.0.0.1:{port}/?token={token}" + (f"#{view}" if view else "")


def _listen(port: int | None) -> socket.socket:
    """Return a socket that listens on the given port, or on the first free one."""
    for number in [PORT, *range(PORT + 1, PORT + 10), 0] if port is None else [port]:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", number))
            listener.listen(64)
            return listener
        except OSError as error:
            listener.close()
            failed = error
    raise TidegateError(f"port {port} must be free, got one that is not: {failed.strerror}")

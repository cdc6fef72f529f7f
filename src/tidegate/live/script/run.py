"""Running a script that knows nothing of arenas: ``python -m tidegate.live.script.run ORDERS
script.py arguments...``.

The script is this process's ``__main__``: its output, its exit code and its signals are its own.
Its large arrays come from an arena (``allocator.py``). At the very end a summary goes to stderr,
and what was recorded to a file. Heavy imports wait until Ctrl-C has somewhere to go.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import logging
import os
import pkgutil
import runpy
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.interrupts import starting

if TYPE_CHECKING:
    from tidegate.live.arena.arena import Arena
    from tidegate.live.script.allocator import ArenaAllocator


@dataclass
class Orders:
    """What the command line asked for. ``arena``: the arguments of ``Arena``."""

    arena: dict[str, Any]
    min_array: int
    record: str | None = None
    quiet: bool = False

    def command(self, script: str, arguments: list[str]) -> list[str]:
        """The command that runs the script so."""
        return [
            sys.executable,
            "-m",
            "tidegate.live.script.run",
            json.dumps(asdict(self)),
            script,
            *arguments,
        ]


def main() -> int:
    """Until the script begins a Ctrl-C ends us there and then: nothing has to be put away, and no
    KeyboardInterrupt can be raised where nobody catches it. The supervisor sees that we are
    gone."""
    orders, script = Orders(**json.loads(sys.argv[1])), _Script(sys.argv[2])
    try:
        with starting():
            from tidegate.live.arena.arena import Arena
            from tidegate.live.script.allocator import ArenaAllocator

            arena = Arena(record=orders.record is not None, **orders.arena)
            allocator = ArenaAllocator(arena, orders.min_array)
            _follow_threads(allocator)
            owner = os.getpid()
            # registered before the script's own, so called after them; a forked child has nothing
            # to say
            atexit.register(
                lambda: _end(arena, allocator, orders, script) if os.getpid() == owner else None
            )
            sys.argv = sys.argv[2:]
            sys.excepthook = _without_us(script.path, sys.excepthook)
            begin = script.prepare()
    except TidegateError as error:
        print(f"tidegate: {str(error).replace('geometry=', '--geometry')}", file=sys.stderr)
        return 2
    script.run(begin)
    return 0


class _Script:
    """The script, as Python itself would run it.

    ``well``: did it end without an error and with exit code 0?
    """

    def __init__(self, path: str):
        self.path = os.path.abspath(path)
        self.well = False

    def prepare(self) -> Callable[[], Any]:
        """Compile it. What is answered runs it."""
        sys.path[0] = str(Path(self.path).resolve().parent)
        if pkgutil.get_importer(self.path) is None:
            return partial(exec, self._code(), self._module().__dict__)
        # an archive, with a __main__.py inside
        return partial(runpy.run_path, self.path, run_name="__main__")

    def run(self, begin: Callable[[], Any]) -> None:
        try:
            begin()
            self.well = True
        except SystemExit as end:
            self.well = end.code in (None, 0)
            raise

    def _module(self) -> ModuleType:
        """It stays ``__main__``: threads that outlive the script's last line look for its names
        there.
        """
        module = ModuleType("__main__")
        loader = SourceFileLoader("__main__", self.path)
        vars(module).update(
            __file__=self.path,
            __cached__=None,
            __loader__=loader,
            __package__=None,
            __annotations__={},
            __builtins__=sys.modules["builtins"],
        )
        sys.modules["__main__"] = module
        return module

    def _code(self) -> CodeType:
        with io.open_code(self.path) as file:
            compiled = pkgutil.read_code(file)  # type: ignore[attr-defined]
        if compiled is not None:
            return compiled  # type: ignore[no-any-return]
        with io.open_code(self.path) as file:
            return compile(file.read(), self.path, "exec", dont_inherit=True)


def _follow_threads(allocator: ArenaAllocator) -> None:
    """Threads begin with NumPy's own allocator; there is no public place to say otherwise."""
    begin = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def begin_with_ours(thread: threading.Thread) -> None:
        allocator.set_in_this_thread()
        begin(thread)

    threading.Thread._bootstrap_inner = begin_with_ours  # type: ignore[attr-defined]


def _end(arena: Arena, allocator: ArenaAllocator, orders: Orders, script: _Script) -> None:
    """The arena itself is not closed: what the script still holds may be used until the process is
    gone.
    """
    allocator.stop()
    saved = orders.record is None
    try:
        if not orders.quiet:
            print(_summary(arena.stats()), file=sys.stderr, flush=True)
        if orders.record is not None:
            _save(arena, orders.record)
            saved = True
    except TidegateError as error:
        print(f"tidegate: {error}", file=sys.stderr, flush=True)
    finally:
        arena.leave_open()
        if script.well and not saved:
            _exit_after_all(2)


def _exit_after_all(code: int) -> None:
    """From atexit there is no other way to another exit code."""
    logging.shutdown()  # registered before us, so it would have come after us
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def _save(arena: Arena, path: str) -> None:
    from tidegate.live.script.recording import RecordedTrace
    from tidegate.trace import save_trace

    trace = RecordedTrace(arena)
    save_trace(trace, path)
    print(
        f"tidegate: recorded {len(trace):,} faults and notifications in {path}; replay them with tidegate run {path}",
        file=sys.stderr,
        flush=True,
    )


def _summary(s: dict[str, Any]) -> str:
    size = units.show_size
    policies = " + ".join(s[kind] for kind in ("eviction", "prefetch", "tiering") if kind in s)
    return (
        f"tidegate: {units.counted(s['arrays'], 'array')} in {size(s['near_limit'])} of near memory, {policies}: "
        f"{s['faults']:,} faults, {s['evictions']:,} evictions, {size(s['bytes_in'])} in, {size(s['bytes_out'])} out, "
        f"{s['seconds']:.1f} s"
    )


def _without_us(script: str, hook: Callable[..., Any]) -> Callable[..., Any]:
    """A traceback that begins where the script does; if it did not begin, there is none."""

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        at = trace
        while at is not None and not at.tb_frame.f_code.co_filename.startswith(script):
            at = at.tb_next
        hook(kind, error.with_traceback(at), at)

    return show


if __name__ == "__main__":
    sys.exit(main())

"""Run a script whose large arrays are to come from an arena, unknown to it.

    python -m tidegate.live.script.run OPTIONS script.py arguments...

The script is this process's ``__main__``: its output, its exit code and its signals are its own.
At the very end a summary goes to stderr, and the recording, if any, to a file. Heavy imports wait
until Ctrl-C is handled.
"""

from __future__ import annotations

import atexit
import io
import json
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
from tidegate.display.tables import printable
from tidegate.errors import TidegateError
from tidegate.interrupts import exiting_on_interrupt
from tidegate.live.arena.process import set_exit_code

LEAST_ARRAY = 1 << 20  # bytes: smaller arrays stay plain

if TYPE_CHECKING:
    from tidegate.live.arena.arena import Arena
    from tidegate.live.script.allocator import ArenaAllocator
    from tidegate.live.script.catch import Catcher, CaughtBlocks
    from tidegate.live.script.recording import RecordedTrace


@dataclass
class ScriptOptions:
    """Options of the command line. ``arena``: arguments of ``Arena``."""

    arena: dict[str, Any]
    min_array: int
    record: str | None = None
    quiet: bool = False
    catch: str | None = None
    room: int = 0  # bytes for what is caught
    stats: str | None = None  # a file for the arena's figures, as JSON

    def command(self, script: str, arguments: list[str]) -> list[str]:
        """Return the command that runs the script with these options."""
        options = json.dumps(asdict(self))
        return [sys.executable, "-P", "-m", "tidegate.live.script.run", options, script, *arguments]


def main() -> int:
    """Open the arena and run the script.

    Until the script begins, a Ctrl-C ends the process at once: the supervisor cleans up.
    """
    options, script = ScriptOptions(**json.loads(sys.argv[1])), _Script(sys.argv[2])
    try:
        with exiting_on_interrupt():
            from tidegate.live.arena.arena import Arena
            from tidegate.live.script.allocator import ArenaAllocator

            if options.catch is not None:
                from tidegate.live.script.catch import Catcher, leave_children_alone

                leave_children_alone()
            arena = Arena(record=options.record is not None, **options.arena)
            allocator = ArenaAllocator(arena, options.min_array)
            _set_in_new_threads(allocator)
            catcher = None
            if options.catch is not None:
                catcher = Catcher(arena, options.catch, options.min_array, options.room)
            owner = os.getpid()
            # registered before the script's own functions, so called after them
            end = partial(_end, arena, allocator, catcher, options, script)
            atexit.register(lambda: end() if os.getpid() == owner else None)
            sys.argv = sys.argv[2:]
            sys.excepthook = _without_our_frames(script.path, sys.excepthook)
            begin = script.prepare()
    except TidegateError as error:
        _print(str(error).replace("geometry=", "--geometry"))
        return 2
    script.run(begin)
    return 0


class _Script:
    """The script, as Python itself would run it. ``succeeded``: it ended with exit code 0."""

    def __init__(self, path: str):
        self.path = os.path.abspath(path)
        self.succeeded = False

    def prepare(self) -> Callable[[], Any]:
        """Compile the script and return a function that runs it."""
        sys.path.insert(0, str(Path(self.path).resolve().parent))  # -P has left it out
        if pkgutil.get_importer(self.path) is None:
            return partial(exec, self._code(), self._module().__dict__)
        # an archive with a __main__.py inside
        return partial(runpy.run_path, self.path, run_name="__main__")

    def run(self, begin: Callable[[], Any]) -> None:
        try:
            begin()
            self.succeeded = True
        except SystemExit as end:
            self.succeeded = end.code in (None, 0)
            raise

    def _module(self) -> ModuleType:
        """Make the module ``__main__``; threads may need it after the script's last line."""
        module = ModuleType("__main__")
        vars(module).update(
            __file__=self.path,
            __cached__=None,
            __loader__=SourceFileLoader("__main__", self.path),
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


def _set_in_new_threads(allocator: ArenaAllocator) -> None:
    """Set the allocator in threads, too, which begin with NumPy's; there is no public hook."""
    begin = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def begin_with_allocator(thread: threading.Thread) -> None:
        allocator.set_in_this_thread()
        begin(thread)

    threading.Thread._bootstrap_inner = begin_with_allocator  # type: ignore[attr-defined]


def _end(
    arena: Arena,
    allocator: ArenaAllocator,
    catcher: Catcher | None,
    options: ScriptOptions,
    script: _Script,
) -> None:
    """Print the summary and save the recording. The arena stays open: arrays are still in use."""
    allocator.stop()
    caught = catcher.stop() if catcher is not None else None
    saved = options.record is None
    try:
        if not options.quiet:
            _print(_summary(arena.stats()))
            if caught is not None:
                _print(_caught_summary(options.catch or "", caught))
        if options.stats is not None and script.succeeded:
            Path(options.stats).write_text(json.dumps(arena.stats()), "utf-8")
        _finish(arena)
        if options.record is not None:
            trace = _save(arena, options.record)
            saved = True
            if not options.quiet:
                _print(
                    f"recorded {len(trace):,} faults and notifications in {options.record}; "
                    f"replay them with tidegate run {options.record}"
                )
    except TidegateError as error:
        _print(str(error))
    finally:
        arena.leave_open()
        if script.succeeded and not saved:
            set_exit_code(2)


def _finish(arena: Arena) -> None:
    """Print what a policy's own check finds; the exit code stays the script's."""
    try:
        arena.finish()
    except TidegateError as error:
        _print(f"warning: {error}")


def _save(arena: Arena, path: str) -> RecordedTrace:
    """Write the recording and return it."""
    from tidegate.live.script.recording import RecordedTrace
    from tidegate.trace import save_trace

    trace = RecordedTrace(arena)
    save_trace(trace, path)
    return trace


def _print(line: str) -> None:
    print(f"tidegate: {printable(line)}", file=sys.stderr, flush=True)


def _summary(s: dict[str, Any]) -> str:
    size = units.show_size
    replaced = {kind: f" (in place of {name})" for kind, name in s["replaced"].items()}
    kinds = [kind for kind in ("eviction", "prefetch", "tiering") if kind in s]
    policies = " + ".join(s[kind] + replaced.get(kind, "") for kind in kinds)
    return (
        f"{units.counted(s['arrays'], 'array')} in {size(s['near_limit'])} of near memory, "
        f"{policies}: {s['faults']:,} faults, {s['notifications']:,} notifications, "
        f"{s['evictions']:,} evictions, {size(s['bytes_in'])} in, {size(s['bytes_out'])} out, "
        f"{s['seconds']:.1f} s"
    )


def _caught_summary(what: str, caught: CaughtBlocks) -> str:
    said = f"caught {units.counted(caught.blocks, 'large block')} of {what}"
    if caught.blocks:
        said += f", {units.show_size(caught.most)} at a time at most"
    if caught.outside:
        outside = units.counted(caught.outside, "block")
        said += f"; {outside} stayed in ordinary memory for want of room, give a larger --room"
    return said


def _without_our_frames(script: str, hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return an excepthook whose tracebacks begin in the script."""

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        at = trace
        while at is not None and not at.tb_frame.f_code.co_filename.startswith(script):
            at = at.tb_next
        hook(kind, error.with_traceback(at), at)

    return show


if __name__ == "__main__":
    sys.exit(main())

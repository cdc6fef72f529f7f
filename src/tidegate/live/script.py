"""Running a script that knows nothing of arenas: ``python -m tidegate.live.script ORDERS script.py arguments...``.

The script is this process's ``__main__``: its output, its exit code and its signals are its own. Its large arrays come from
an arena (``allocator.py``). At the very end a summary goes to stderr, and what was recorded to a file.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.live.allocator import ArenaAllocator
from tidegate.live.arena import Arena
from tidegate.live.recorded import RecordedTrace


@dataclass
class Orders:
    """What the command line asked for. ``arena``: the arguments of ``Arena``."""

    arena: dict[str, Any]
    min_array: int
    record: str | None = None
    quiet: bool = False

    def command(self, script: str, arguments: list[str]) -> list[str]:
        """The command that runs the script so."""
        return [sys.executable, "-m", "tidegate.live.script", json.dumps(asdict(self)), script, *arguments]


def main() -> int:
    orders, script = Orders(**json.loads(sys.argv[1])), sys.argv[2]
    try:
        arena = Arena(record=orders.record is not None, **orders.arena)
    except TidegateError as error:
        print(f"tidegate: {error}", file=sys.stderr)
        return 2
    allocator = ArenaAllocator(arena, orders.min_array)
    _follow_threads(allocator)
    owner = os.getpid()
    # registered before the script's own, so called after them; a forked child has nothing to say
    atexit.register(lambda: _end(arena, allocator, orders) if os.getpid() == owner else None)
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(script).resolve().parent)
    sys.excepthook = _without_us(script, sys.excepthook)
    runpy.run_path(script, run_name="__main__")
    return 0


def _follow_threads(allocator: ArenaAllocator) -> None:
    """Threads begin with NumPy's own allocator; there is no public place to say otherwise."""
    begin = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def begin_with_ours(thread: threading.Thread) -> None:
        allocator.set_in_this_thread()
        begin(thread)

    threading.Thread._bootstrap_inner = begin_with_ours  # type: ignore[attr-defined]


def _end(arena: Arena, allocator: ArenaAllocator, orders: Orders) -> None:
    """The arena itself is not closed: what the script still holds may be used until the process is gone."""
    allocator.stop()
    try:
        if not orders.quiet:
            print(_summary(arena.stats()), file=sys.stderr, flush=True)
        if orders.record is not None:
            _save(arena, orders.record)
    except TidegateError as error:
        print(f"tidegate: {error}", file=sys.stderr, flush=True)
    arena.leave_open()


def _save(arena: Arena, path: str) -> None:
    from tidegate.trace import save_trace

    trace = RecordedTrace(arena)
    save_trace(trace, path)
    print(f"tidegate: recorded {len(trace):,} faults and notifications in {path}; replay them with tidegate run {path}",
          file=sys.stderr, flush=True)  # fmt: skip


def _summary(s: dict[str, Any]) -> str:
    size = units.show_size
    return (
        f"tidegate: {s['arrays']:,} arrays in {size(s['near_limit'])} of near memory, {s['eviction']} + {s['prefetch']}: "
        f"{s['faults']:,} faults, {s['evictions']:,} evictions, {size(s['bytes_in'])} in, {size(s['bytes_out'])} out, "
        f"{s['seconds']:.1f} s"
    )


def _without_us(script: str, hook: Callable[..., Any]) -> Callable[..., Any]:
    """A traceback that begins where the script does."""

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        at = trace
        while at is not None and at.tb_frame.f_code.co_filename != script:
            at = at.tb_next
        hook(kind, error.with_traceback(at or trace), at or trace)

    return show


if __name__ == "__main__":
    sys.exit(main())

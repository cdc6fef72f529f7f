"""Large blocks that libraries take from malloc, in the script's arena: ``live run --catch``.

A preloaded library (catch.c) takes them from one object of the arena. It is compiled once with the
system's C compiler. Only libraries that allocate by malloc can be caught: PyTorch does, and Arrow
if it is told to; polars and DuckDB bring allocators of their own.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tidegate.errors import TidegateError, UnknownName
from tidegate.files import cache_folder, make_private
from tidegate.units import show_size

if TYPE_CHECKING:
    from tidegate.live.arena.arena import Arena

SOURCE = Path(__file__).with_name("catch.c")
# what is caught: part of the file name of the library that asks for the block
CALLERS = {"malloc": "", "torch": "libc10", "arrow": "libarrow"}
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-O2", "-shared", "-fPIC", "-fno-builtin-malloc", "-ldl", "-lpthread")
_PRELOAD = "LD_PRELOAD"


def leave_children_alone() -> None:
    """Do not preload the library in processes that this one starts."""
    os.environ.pop(_PRELOAD, None)


def check_caught(what: str) -> None:
    """Refuse what cannot be caught."""
    if what not in CALLERS:
        raise UnknownName("kind of memory to catch", what, list(CALLERS))


def prepare(what: str, environment: MutableMapping[str, str]) -> None:
    """Set the environment of a script's process so that its large blocks can be caught."""
    if environment.get(_PRELOAD):
        raise TidegateError(
            f"--catch preloads a library of its own, and {_PRELOAD} is set already; unset it"
        )
    environment[_PRELOAD] = str(library())
    if what != "torch":
        environment.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def library() -> Path:
    """Return the library, compiled now or earlier."""
    text = SOURCE.read_bytes()
    name = hashlib.sha256(text + platform.machine().encode()).hexdigest()[:32]
    target = cache_folder() / "compiled" / name / "catch.so"
    try:
        is_ours = make_private(target.parent)
    except OSError as error:
        raise TidegateError(f"--catch: {target.parent}: {error.strerror}") from error
    if not is_ours:
        raise TidegateError(
            f"--catch would load a library from {target.parent}, which others own or can write; "
            "give it to this user (chown, chmod go-w), or set TIDEGATE_CACHE"
        )
    if not target.exists():
        _compile(target)
    return target


def _compile(target: Path) -> None:
    compiler = os.environ.get("CC") or next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise TidegateError(
            "--catch needs a C compiler once, and there is none; install cc, or set CC"
        )
    made = target.with_name(f"catch-{os.getpid()}.so")
    command = [*compiler.split(), str(SOURCE), "-o", str(made), *_FLAGS]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise TidegateError(f"--catch: {compiler} cannot be run: {error.strerror}") from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise TidegateError(f"--catch: {compiler} cannot compile {SOURCE.name} here: {said}")
    os.replace(made, target)


class CaughtBlocks(NamedTuple):
    """What was caught: blocks, those for which there was no room, and bytes at a time."""

    blocks: int
    outside: int
    most: int


class Catcher:
    """Takes blocks of ``least`` bytes or more from ``room`` bytes of the arena, from now on."""

    def __init__(self, arena: Arena, what: str, least: int, room: int):
        if not arena.serves_system_calls:
            raise TidegateError(
                "--catch needs faults in system calls, because libraries read files into such "
                "memory; run it as root or see 'To grant access' in docs/live.md"
            )
        self.what, self._library = what, ctypes.CDLL(None)
        unit = arena.geometry.region
        if room < max(unit, least):
            raise TidegateError(
                f"--room must hold a region of {show_size(unit)} and a block of --min-array, "
                f"{show_size(least)}, or nothing is caught, got {show_size(room)}; give more"
            )
        units = room // unit
        _, address = arena.allocate(units * unit, f"{what} blocks")
        begin = self._library.tidegate_catch_begin
        begin.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 3, ctypes.c_char_p]
        if begin(address, units, unit, least, CALLERS[what].encode()):
            raise TidegateError("--catch: there is no memory for its tables")

    def stop(self) -> CaughtBlocks:
        """Catch no more; what was caught stays where it is."""
        counts = [ctypes.c_uint64() for _ in CaughtBlocks._fields]
        self._library.tidegate_catch_end(*map(ctypes.byref, counts))
        return CaughtBlocks(*(count.value for count in counts))

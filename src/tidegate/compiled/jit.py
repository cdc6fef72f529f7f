"""Compiling with Numba, cached by the source of all compiled rooms.

Numba's own cache notices changes of a function's file, but not of functions it calls in other
files: after an edit in ``driver.py`` the loop in ``gpu.py`` would still run the old driver. Here
every state of the source has a folder of its own, so what runs is always what is written. It also
works where the package cannot be written to.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba import int64
from numba.core.dispatcher import Dispatcher

from tidegate.files import cache_folder

_KEPT = 3  # states of the source whose compiled code is kept
# seconds: what was used since may be in use, by another checkout or a run that takes long
_IN_USE = 24 * 3600
# where compiled functions live, and how they are compiled
_COMPILED = ("compiled", "simulation", "policies", "workloads", "analysis", "live")


def jit(function: Callable[..., Any]) -> Any:
    """Compile with ``numba.njit`` and keep the result."""
    return _keeping(numba.njit, function)


def jit_inner(function: Callable[..., Any]) -> Any:
    """Compile into the compiled functions that use it: calls, and arrays they hand out, cost twins
    a tenth of their time.

    There is no way in from Python, which would take as long again to compile.
    """
    return _inner(function, forceinline=True)


def jit_bare(function: Callable[..., Any]) -> Any:
    """The same for functions that make no arrays: they count no references, which would cost more
    than their work.
    """
    return _inner(function, _nrt=False)


def jit_within(function: Callable[..., Any]) -> Any:
    """The same for functions that become part of each caller: a call costs more than their work, or
    there is one caller.
    """
    return _inner(function, _nrt=False, forceinline=True)


def _inner(function: Callable[..., Any], **options: Any) -> Any:
    return _keeping(
        numba.njit,
        function,
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )


def jit_inline(function: Callable[..., Any]) -> Any:
    """Compile into every caller, for a few lines in the middle of a hot loop."""
    return _keeping(numba.njit, function, inline="always")


class CFunction:
    """Compiled to a C function when it is first used, and kept."""

    def __init__(self, function: Callable[..., Any], signature: Any, **options: Any):
        self._function, self._signature, self._options = function, signature, options

    @functools.cached_property
    def address(self) -> int:
        """Where the compiled function is."""
        self._compiled = _keeping(
            functools.partial(numba.cfunc, self._signature), self._function, **self._options
        )
        return int(self._compiled.address or 0)


def jit_policy(function: Callable[[int, int], int]) -> CFunction:
    """Compile to the C function ``int64 (own, event)`` that a policy's twin is."""
    return CFunction(function, int64(int64, int64), error_model="numpy")


def _keeping(compiler: Any, function: Callable[..., Any], **options: Any) -> Any:
    """Compile, and keep the result if there is anywhere to keep it."""
    with _own_cache():
        try:
            compiled: Any = compiler(cache=True, **options)(function)
        except (
            RuntimeError,
            OSError,
        ):  # Numba found no place that can be written to, or it is full
            return compiler(**options)(function)
        if isinstance(compiled, Dispatcher):  # which compiles later
            vars(compiled)["_cache"] = _Forgiving(vars(compiled)["_cache"])
        return compiled


class _Forgiving:
    """Numba's cache, for which a full disk or a folder that is gone are no reason to fail."""

    def __init__(self, cache: Any):
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        with suppress(OSError):
            return self._cache.load_overload(signature, context)
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        with suppress(OSError):
            self._cache.save_overload(signature, data)


@functools.cache
def code_digest(*rooms: str) -> str:
    """A hash of the source of these rooms, or of the whole package but for the command line.

    >>> code_digest("simulation") == code_digest("policies")
    False
    """
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        room = file.relative_to(package).parts[0]
        if room in rooms or (not rooms and room != "cli"):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


@contextmanager
def _own_cache() -> Iterator[None]:
    """Numba looks up its cache folder when a function is decorated; others' functions keep theirs."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = _compiled_folder()
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _forget_old(states: Path) -> None:
    """Numba fails where a folder it writes to is gone, so none is taken from under a process that
    runs.
    """
    others = sorted(states.iterdir(), key=lambda f: f.stat().st_mtime, reverse=True)
    for old in others[_KEPT:]:
        if old.stat().st_mtime < time.time() - _IN_USE:
            shutil.rmtree(old, ignore_errors=True)


@functools.cache
def _compiled_folder() -> str:
    folder = cache_folder() / "compiled" / code_digest(*_COMPILED)
    with suppress(OSError):
        if not folder.exists():
            folder.mkdir(parents=True)
            _forget_old(folder.parent)
        os.utime(folder)
        if os.access(folder, os.W_OK):
            return str(folder)
    return ""  # nowhere to keep anything: Numba falls back on its own places

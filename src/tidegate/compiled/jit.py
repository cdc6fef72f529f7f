"""Compiling with Numba, cached by the source of all compiled rooms.

Numba's own cache notices changes of a function's file, but not of functions it calls in other
files: after an edit in ``driver.py`` the loop in ``slots.py`` would still run the old driver. Here
every state of the source has a folder of its own. That also works where the package folder is
read-only.
"""

from __future__ import annotations

import functools
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba import int64
from numba.core.dispatcher import Dispatcher
from numba.core.types import unliteral

from tidegate.compiled.linking import EntryCompiler, LinkedCompiler
from tidegate.compiled.own_process import prepare_numba
from tidegate.compiled.source_digest import code_digest
from tidegate.compiled.turns import own_turn
from tidegate.files import cache_folder, make_private

_KEPT = 3  # states of the source whose compiled code stays
_IN_USE = 24 * 3600  # seconds: a state used since then may be in use by another process
# rooms with compiled functions
_COMPILED = (
    *("compiled", "trace", "policies", "policy_compiler", "simulation", "analysis", "live"),
    *("workloads", "papers/*/applications/*"),
)

prepare_numba()


class UntrustedCache(UserWarning):
    """Others could have put code into the cache."""


def jit(function: Callable[..., Any]) -> Any:
    """Compile with ``numba.njit`` and cache the result."""
    return _cached(numba.njit, function)


def jit_unlocked(function: Callable[..., Any]) -> Any:
    """Compile a function that other threads run beside: it does not hold the interpreter's lock."""
    return _cached(numba.njit, function, nogil=True)


def jit_inner(function: Callable[..., Any]) -> Any:
    """Compile into the compiled functions that call it, which saves policies a tenth of their time.

    It cannot be called from Python: the wrapper would take as long again to compile.
    """
    return _inner(function, forceinline=True)


def jit_apart(function: Callable[..., Any]) -> Any:
    """Compile as one function for many compiled callers; inlined in each, LLVM would take long."""
    return _inner(function)


def jit_bare(function: Callable[..., Any]) -> Any:
    """Compile a function that makes no arrays, without reference counts, for compiled callers."""
    return _inner(function, _nrt=False)


def jit_within(function: Callable[..., Any]) -> Any:
    """Compile the same into each caller, where a call costs more than the work."""
    return _inner(function, _nrt=False, forceinline=True)


def _inner(function: Callable[..., Any], **options: Any) -> Any:
    """Compile for compiled callers. It is not cached: what is, are the callers with it in them."""
    # Numba hands ``forceinline`` on to all that a function calls, unless they say otherwise.
    options = {"forceinline": False} | options
    options |= {"error_model": "numpy", "pipeline_class": LinkedCompiler}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _once_for_constants(numba.njit(**options)(function))


def _once_for_constants(compiled: Any) -> Any:
    """Have compiled callers share one code; Numba compiles anew for every constant they give."""
    find = compiled.get_call_template

    def find_without_constants(args: Any, keywords: Any) -> Any:
        return find(
            tuple(unliteral(a) for a in args), {k: unliteral(v) for k, v in keywords.items()}
        )

    vars(compiled)["get_call_template"] = find_without_constants
    return compiled


def jit_inline(function: Callable[..., Any]) -> Any:
    """Compile into every caller, for a few lines in the middle of a hot loop."""
    return _cached(numba.njit, function, inline="always")


class CFunction:
    """A C function, compiled when it is first used, and cached."""

    def __init__(self, function: Callable[..., Any], signature: Any, **options: Any):
        self._function, self._signature, self._options = function, signature, options

    @functools.cached_property
    def address(self) -> int:
        """Address of the compiled function."""
        with own_turn(compiled_folder(), _name(self._function)):
            self._compiled = _cached(
                functools.partial(numba.cfunc, self._signature), self._function, **self._options
            )
        return int(self._compiled.address or 0)


def jit_policy(function: Callable[[int, int], int]) -> CFunction:
    """Compile to the C function ``int64 (own, event)`` that a policy's twin is."""
    return CFunction(function, int64(int64, int64), error_model="numpy")


def _cached(compiler: Any, function: Callable[..., Any], **options: Any) -> Any:
    """Compile, and cache the result if a folder can be written to."""
    options["pipeline_class"] = EntryCompiler
    if compiled_folder() is None:
        return compiler(**options)(function)
    with _own_cache():
        try:
            compiled: Any = compiler(cache=True, **options)(function)
        except (RuntimeError, OSError):  # no folder can be written to, or the disk is full
            return compiler(**options)(function)
        if isinstance(compiled, Dispatcher):  # which compiles later
            vars(compiled)["_cache"] = _TolerantCache(vars(compiled)["_cache"])
            vars(compiled)["compile"] = _in_turn(compiled.compile, _name(function))
            _once_for_constants(compiled)
        return compiled


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _in_turn(compile_now: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that compiles, or loads what another process has compiled meanwhile."""

    @functools.wraps(compile_now)
    def compile_in_turn(signature: Any) -> Any:
        with own_turn(compiled_folder(), name):
            return compile_now(signature)

    return compile_in_turn


class _TolerantCache:
    """Numba's cache, but a full disk or a missing folder is no error."""

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


@contextmanager
def _own_cache() -> Iterator[None]:
    """Set Numba's cache folder while a function is decorated; other packages keep theirs."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = compiled_folder()
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _remove_old(states: Path) -> None:
    """Remove old states, but none that a running process may use: Numba would fail."""
    others = sorted(states.iterdir(), key=lambda f: f.stat().st_mtime, reverse=True)
    for old in others[_KEPT:]:
        if old.stat().st_mtime < time.time() - _IN_USE:
            shutil.rmtree(old, ignore_errors=True)


@functools.cache
def compiled_folder() -> str | None:
    """Return the folder of compiled code; "" if it cannot be written to, for Numba then falls back
    on its own, beside the source; None if others could have put code there.
    """
    folder = cache_folder() / "compiled" / code_digest(*_COMPILED)
    with suppress(OSError):
        is_new = not folder.exists()
        if not make_private(folder):
            warnings.warn(
                f"compiled code in {folder} is not used, because others own it or can write there: "
                "give the folder to this user (chown, chmod go-w), or set TIDEGATE_CACHE",
                UntrustedCache,
                stacklevel=2,
            )
            return None
        if is_new:
            _remove_old(folder.parent)
        os.utime(folder)
        if os.access(folder, os.W_OK):
            return str(folder)
    return ""

"""NumPy's large arrays from an arena, in programs that know nothing of it (NEP 49: NumPy's allocator can be replaced).

    malloc   small ──▶ libc, as ever      large ──▶ the arena
    free     an address of the arena's ──▶ the object's pages are given back

NumPy asks these four functions for the memory of every array, so they are compiled, and only large arrays come back to
Python. NumPy keeps the allocator in a context variable: a thread has its own, which ``set_in_this_thread`` sets.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from typing import Any

from numba import int64, void
from numba.extending import intrinsic

from tidegate.errors import TidegateError
from tidegate.jit import CFunction
from tidegate.live.arena import Arena
from tidegate.policies.compiled import words_at

_SET_HANDLER = 304  # in NumPy's table of C functions, since 1.22
# What the compiled functions know: the arena's addresses, from which size on it is asked, and whom to call.
_LOW, _HIGH, _LEAST, _TAKE, _GIVE, _MOVE, _MALLOC, _CALLOC, _REALLOC, _FREE, _WORDS = range(11)
_NEVER = 1 << 62
_CAPSULE = b"mem_handler"  # NumPy's name for it; the capsule points to it


def _call_at(context: Any, address: Any, a: Any, b: Any) -> Any:
    """Call the C function at an address. One argument too many does no harm."""
    from llvmlite import ir

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        function = builder.inttoptr(args[0], ir.FunctionType(word, [word, word]).as_pointer())
        return builder.call(function, args[1:])

    return int64(int64, int64, int64), codegen


_call: Any = intrinsic(_call_at)  # type: ignore[arg-type]


def _malloc(own: int, size: int) -> int:
    w = words_at(own, _WORDS)
    return _call(w[_TAKE], size, 0) if size >= w[_LEAST] else _call(w[_MALLOC], size, 0)


def _calloc(own: int, count: int, size: int) -> int:
    w = words_at(own, _WORDS)
    large = size > 0 and count >= w[_LEAST] // size and count * size >= w[_LEAST]
    return _call(w[_TAKE], count * size, 0) if large else _call(w[_CALLOC], count, size)


def _realloc(own: int, address: int, size: int) -> int:
    w = words_at(own, _WORDS)
    if w[_LOW] <= address < w[_HIGH] or size >= w[_LEAST]:
        return _call(w[_MOVE], address, size)
    return _call(w[_REALLOC], address, size)


def _free(own: int, address: int, size: int) -> None:
    w = words_at(own, _WORDS)
    if w[_LOW] <= address < w[_HIGH]:
        if w[_LEAST] < _NEVER:
            _call(w[_GIVE], address, 0)
    else:
        _call(w[_FREE], address, 0)


_COMPILED = (
    CFunction(_malloc, int64(int64, int64)),
    CFunction(_calloc, int64(int64, int64, int64)),
    CFunction(_realloc, int64(int64, int64, int64)),
    CFunction(_free, void(int64, int64, int64)),
)


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("own", ctypes.c_void_p),
                ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
                ("free", ctypes.c_void_p))  # fmt: skip


class ArenaAllocator:
    """Arrays of ``least`` bytes or more come from ``arena``, from now on and in this thread."""

    def __init__(self, arena: Arena, least: int):
        self._arena, self._libc = arena, ctypes.CDLL(None)
        self._libc.malloc_usable_size.argtypes, self._libc.malloc_usable_size.restype = [ctypes.c_void_p], ctypes.c_size_t
        self._libc.free.argtypes = [ctypes.c_void_p]
        self._given: dict[int, tuple[int, int]] = {}  # an array's address: the object's number and bytes
        self._said = False
        self._words = (ctypes.c_int64 * _WORDS)()
        self._words[_LOW], self._words[_HIGH] = arena.addresses
        self._words[_LEAST] = least
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        self._kept = [kind(f) for f in (self._take, self._give, self._move)]
        for at, function in zip((_TAKE, _GIVE, _MOVE), self._kept, strict=True):
            self._words[at] = _address(function)
        for at, name in ((_MALLOC, "malloc"), (_CALLOC, "calloc"), (_REALLOC, "realloc"), (_FREE, "free")):
            self._words[at] = _address(getattr(self._libc, name))
        self._capsule = self._make_capsule()
        os.register_at_fork(after_in_child=self.stop)
        self.set_in_this_thread()

    def set_in_this_thread(self) -> None:
        """Every thread has an allocator of its own."""
        ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
        ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        functions = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
        table = ctypes.pythonapi.PyCapsule_GetPointer(functions, None)
        set_handler = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_SET_HANDLER]
        ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(set_handler)(self._capsule)

    def stop(self) -> None:
        """Large arrays are ordinary ones again. What the arena gave is neither moved nor given back: the program ends."""
        self._words[_LEAST] = _NEVER

    # What the compiled functions call

    def _take(self, size: int, _: int) -> int:
        try:
            ident, address = self._arena.allocate(size, _caller())
        except TidegateError as error:
            if not self._said:
                print(f"tidegate: {error}", file=sys.stderr, flush=True)
                self._said = True
            return 0  # NumPy raises MemoryError
        self._given[address] = ident, size
        return address

    def _give(self, address: int, _: int) -> int:
        self._arena.release(self._given.pop(address)[0])
        return 0

    def _move(self, address: int, size: int) -> int:
        """realloc, from or to the arena."""
        ours = address in self._given
        before = self._given[address][1] if ours else self._libc.malloc_usable_size(address)
        if not (found := self._take(size, 0)):
            return 0
        ctypes.memmove(found, address, min(before, size))
        if ours:
            self._give(address, 0)
        else:
            self._libc.free(address)
        return found

    def _make_capsule(self) -> Any:
        self._handler = _Handler(b"tidegate", 1, ctypes.addressof(self._words), *(f.address for f in _COMPILED))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._handler), _CAPSULE, None)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _caller() -> str:
    """The line that makes the array: the innermost frame that is neither ours nor NumPy's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _of_a_library(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _of_a_library(file: str) -> bool:
    return file == __file__ or f"{os.sep}numpy{os.sep}" in file or file.startswith("<")

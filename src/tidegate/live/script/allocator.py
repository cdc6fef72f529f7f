"""NumPy's large arrays from an arena, in programs that do not know of it.

NumPy's allocator can be replaced (NEP 49):

    malloc   small ──▶ libc      large ──▶ the arena
    free     an address of the arena ──▶ noted; given back when the next large array is made

NumPy calls these four functions for every array, so they are compiled; only large arrays call
Python. Python writes its answer to a cell: an exception in place of a returned value would be taken
for an address. NumPy could not pass a Ctrl-C on, so it is raised again when NumPy is done. ``free``
may be called in the middle of an exception, where no Python may run, so it only notes the address.
NumPy keeps the allocator in a context variable: each thread has its own (``set_in_this_thread``).
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from numba import int64, void
from numba.extending import intrinsic

from tidegate.compiled.addresses import words_at
from tidegate.compiled.jit import CFunction, jit_inner
from tidegate.errors import TidegateError
from tidegate.live.arena.arena import LONGEST_NAME, Arena

_SET_HANDLER = 304  # in NumPy's table of C functions, since 1.22
# Words that the compiled functions read: the arena's addresses, the least size it is used for, and
# the functions to call.
_LOW, _HIGH, _LEAST, _TAKE, _MOVE, _MALLOC, _CALLOC, _REALLOC, _FREE = range(9)
_INTERRUPT, _STOPPED, _FREED, _NOTES = range(9, 13)
_WORDS = 13
_NEVER = 1 << 62
_REFUSED = -1  # an answer; 0: there is none yet
_MOST_NOTES = 1 << 20  # freed addresses, in a ring; more at a time are lost
_CAPSULE = b"mem_handler"  # NumPy's name for the capsule
_LIBC = {_MALLOC: "malloc", _CALLOC: "calloc", _REALLOC: "realloc", _FREE: "free"}


def _call_at(context: Any, address: Any, a: Any, b: Any, c: Any) -> Any:
    """Call the C function at an address; surplus arguments do no harm."""
    from llvmlite import ir

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        function = builder.inttoptr(args[0], ir.FunctionType(word, [word, word, word]).as_pointer())
        return builder.call(function, args[1:])

    return int64(int64, int64, int64, int64), codegen


_call: Any = intrinsic(_call_at)  # type: ignore[arg-type]


@jit_inner
def _ask(w: Any, function: int, a: int, b: int) -> int:
    """Return the address that Python answers, or 0."""
    cell = _call(w[_CALLOC], 1, 8, 0)
    answer = words_at(cell, 1)
    _call(w[function], a, b, cell)
    if answer[0] == 0:  # a Ctrl-C came before it could be caught
        w[_STOPPED] = 1
        _call(w[function], a, b, cell)
    found = max(answer[0], 0)
    _call(w[_FREE], cell, 0, 0)
    if w[_STOPPED] != 0:
        w[_STOPPED] = 0
        _call(w[_INTERRUPT], 0, 0, 0)
    return found


def _malloc(own: int, size: int) -> int:
    w = words_at(own, _WORDS)
    return _ask(w, _TAKE, size, 0) if size >= w[_LEAST] else _call(w[_MALLOC], size, 0, 0)


def _calloc(own: int, count: int, size: int) -> int:
    w = words_at(own, _WORDS)
    large = size > 0 and count >= w[_LEAST] // size and count * size >= w[_LEAST]
    return _ask(w, _TAKE, count * size, 0) if large else _call(w[_CALLOC], count, size, 0)


def _realloc(own: int, address: int, size: int) -> int:
    w = words_at(own, _WORDS)
    if w[_LOW] <= address < w[_HIGH] or size >= w[_LEAST]:
        return _ask(w, _MOVE, address, size)
    return _call(w[_REALLOC], address, size, 0)


def _free(own: int, address: int, size: int) -> None:
    w = words_at(own, _WORDS)
    if w[_LOW] <= address < w[_HIGH]:
        words_at(w[_NOTES], _MOST_NOTES)[w[_FREED] % _MOST_NOTES] = address
        w[_FREED] += 1
    else:
        _call(w[_FREE], address, 0, 0)


_COMPILED = (
    CFunction(_malloc, int64(int64, int64)),
    CFunction(_calloc, int64(int64, int64, int64)),
    CFunction(_realloc, int64(int64, int64, int64)),
    CFunction(_free, void(int64, int64, int64)),
)


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("own", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class ArenaAllocator:
    """Takes arrays of ``least`` bytes or more from ``arena``, from now on and in this thread."""

    def __init__(self, arena: Arena, least: int):
        self._arena, self._libc = arena, ctypes.CDLL(None)
        self._libc.malloc_usable_size.argtypes = [ctypes.c_void_p]
        self._libc.malloc_usable_size.restype = ctypes.c_size_t
        self._libc.free.argtypes = [ctypes.c_void_p]
        self._given: dict[int, tuple[int, int]] = {}  # by address: the object's number and bytes
        self._refusal_shown = False
        self._lock = threading.RLock()
        self._words = (ctypes.c_int64 * _WORDS)()
        self._words[_LOW], self._words[_HIGH] = arena.addresses
        self._words[_LEAST] = least
        kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        self._callbacks = [kind(self._deferring_interrupts(f)) for f in (self._take, self._move)]
        for at, function in zip((_TAKE, _MOVE), self._callbacks, strict=True):
            self._words[at] = _address(function)
        for at, name in _LIBC.items():
            self._words[at] = _address(getattr(self._libc, name))
        self._words[_INTERRUPT] = _address(ctypes.pythonapi.PyErr_SetInterrupt)
        # a mapping takes memory only where it is used
        self._notes = (ctypes.c_int64 * _MOST_NOTES).from_buffer(mmap.mmap(-1, 8 * _MOST_NOTES))
        self._words[_NOTES], self._notes_read = ctypes.addressof(self._notes), 0
        self._capsule = self._make_capsule()
        os.register_at_fork(after_in_child=self._use_libc)
        self.set_in_this_thread()

    def set_in_this_thread(self) -> None:
        """Make this the allocator of the calling thread."""
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = (
            ctypes.c_void_p,
            [ctypes.py_object, ctypes.c_char_p],
        )
        functions = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
        table = ctypes.cast(pointer_of(functions, None), ctypes.POINTER(ctypes.c_void_p))
        set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
        set_handler(self._capsule)

    def stop(self) -> None:
        """Take large arrays from libc again; those of the arena stay where they are."""
        self._use_libc()
        self._release_freed()

    def _use_libc(self) -> None:
        self._words[_LEAST] = _NEVER

    # Called by the compiled functions

    def _deferring_interrupts(
        self, callback: Callable[[int, int, int], None]
    ) -> Callable[[int, int, int], None]:
        def called(a: int, b: int, cell: int) -> None:
            try:
                callback(a, b, cell)
            except KeyboardInterrupt:
                self._words[_STOPPED] = 1  # without an answer we are called again

        return called

    def _take(self, size: int, _: int, cell: int) -> None:
        _answer(cell, self._allocate(size))

    def _move(self, address: int, size: int, cell: int) -> None:
        """realloc, from or to the arena."""
        given = self._given.get(address)
        before = given[1] if given is not None else self._libc.malloc_usable_size(address)
        found = self._allocate(size)
        if found:
            ctypes.memmove(found, address, min(before, size))
        # the old memory may go after the answer, not before: we may be called again
        _answer(cell, found)
        if found and given is not None:
            self._release(address)
        elif found:
            self._libc.free(address)

    def _release_freed(self) -> None:
        with self._lock:  # each note is read once: its address may be another array's soon
            self._notes_read = max(self._notes_read, self._words[_FREED] - _MOST_NOTES)
            while self._notes_read < self._words[_FREED]:
                address = self._notes[self._notes_read % _MOST_NOTES]
                self._notes_read += 1
                self._release(address)

    def _release(self, address: int) -> None:
        if (given := self._given.pop(address, None)) is not None:
            self._arena.release(given[0])

    def _allocate(self, size: int) -> int:
        """Return an address in the arena, or 0, for which NumPy raises MemoryError.

        The first Ctrl-C waits until NumPy is done.
        """
        while True:
            try:
                self._release_freed()
                ident, address = self._arena.allocate(size, _caller())
            except TidegateError as error:
                if not self._refusal_shown:
                    print(f"tidegate: {error}", file=sys.stderr, flush=True)
                    self._refusal_shown = True
                return 0
            except KeyboardInterrupt:
                if self._words[_STOPPED]:
                    return 0
                self._words[_STOPPED] = 1
                continue
            self._given[address] = ident, size
            return address

    def _make_capsule(self) -> Any:
        functions = (f.address for f in _COMPILED)
        self._handler = _Handler(b"tidegate", 1, ctypes.addressof(self._words), *functions)
        new = ctypes.pythonapi.PyCapsule_New
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        new.restype = ctypes.py_object
        return new(ctypes.addressof(self._handler), _CAPSULE, None)


def _answer(cell: int, found: int) -> None:
    ctypes.c_int64.from_address(cell).value = found or _REFUSED


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _caller() -> str:
    """Return the line that makes the array: the innermost frame outside of NumPy and this file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"[-LONGEST_NAME:]


def _is_library(file: str) -> bool:
    return file == __file__ or f"{os.sep}numpy{os.sep}" in file or file.startswith("<")

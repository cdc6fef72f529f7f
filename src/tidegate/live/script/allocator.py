"""NumPy's large arrays from an arena, in programs that know nothing of it (NEP 49: NumPy's
allocator can be replaced).

    malloc   small ──▶ libc, as ever      large ──▶ the arena
    free     an address of the arena's ──▶ noted; its object's pages are given back when the next large array is made

NumPy asks these four functions for the memory of every array, so they are compiled, and only large
arrays come back to Python. What Python answers is written to a cell: were it returned, an exception
in its place would be taken for an address. A Ctrl-C meanwhile, which NumPy could not pass on, is
raised again when NumPy is done. What is freed is only noted: that happens in the middle of
exceptions, too, where no Python may run. NumPy keeps the allocator in a context variable: a thread
has its own, which ``set_in_this_thread`` sets.
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
from tidegate.live.arena.arena import Arena

_SET_HANDLER = 304  # in NumPy's table of C functions, since 1.22
# What the compiled functions know: the arena's addresses, from which size on it is asked, and whom
# to call.
(
    _LOW,
    _HIGH,
    _LEAST,
    _TAKE,
    _MOVE,
    _MALLOC,
    _CALLOC,
    _REALLOC,
    _FREE,
    _INTERRUPT,
    _STOPPED,
    _FREED,
    _NOTES,
) = range(13)
_WORDS = 13
_NEVER = 1 << 62
_REFUSED = -1  # an answer; 0 is none
_MOST_NOTES = 1 << 20  # addresses that were freed, in turn; more at a time are not heard of
_CAPSULE = b"mem_handler"  # NumPy's name for it; the capsule points to it


def _call_at(context: Any, address: Any, a: Any, b: Any, c: Any) -> Any:
    """Call the C function at an address. An argument too many does no harm."""
    from llvmlite import ir

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        function = builder.inttoptr(args[0], ir.FunctionType(word, [word, word, word]).as_pointer())
        return builder.call(function, args[1:])

    return int64(int64, int64, int64, int64), codegen


_call: Any = intrinsic(_call_at)  # type: ignore[arg-type]


@jit_inner
def _ask(w: Any, whom: int, a: int, b: int) -> int:
    """What Python answers: an address, or 0."""
    cell = _call(w[_CALLOC], 1, 8, 0)
    answer = words_at(cell, 1)
    _call(w[whom], a, b, cell)
    if answer[0] == 0:  # a Ctrl-C came before it could be caught
        w[_STOPPED] = 1
        _call(w[whom], a, b, cell)
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
    """Arrays of ``least`` bytes or more come from ``arena``, from now on and in this thread."""

    def __init__(self, arena: Arena, least: int):
        self._arena, self._libc = arena, ctypes.CDLL(None)
        self._libc.malloc_usable_size.argtypes, self._libc.malloc_usable_size.restype = (
            [ctypes.c_void_p],
            ctypes.c_size_t,
        )
        self._libc.free.argtypes = [ctypes.c_void_p]
        # an array's address: the object's number and bytes
        self._given: dict[int, tuple[int, int]] = {}
        self._said = False
        self._hearing = threading.RLock()
        self._words = (ctypes.c_int64 * _WORDS)()
        self._words[_LOW], self._words[_HIGH] = arena.addresses
        self._words[_LEAST] = least
        kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        self._kept = [kind(self._holding_ctrl_c(f)) for f in (self._take, self._move)]
        for at, function in zip((_TAKE, _MOVE), self._kept, strict=True):
            self._words[at] = _address(function)
        for at, name in (
            (_MALLOC, "malloc"),
            (_CALLOC, "calloc"),
            (_REALLOC, "realloc"),
            (_FREE, "free"),
        ):
            self._words[at] = _address(getattr(self._libc, name))
        self._words[_INTERRUPT] = _address(ctypes.pythonapi.PyErr_SetInterrupt)
        # memory only where used
        self._notes = (ctypes.c_int64 * _MOST_NOTES).from_buffer(mmap.mmap(-1, 8 * _MOST_NOTES))
        self._words[_NOTES], self._heard = ctypes.addressof(self._notes), 0
        self._capsule = self._make_capsule()
        os.register_at_fork(after_in_child=self._ask_no_more)
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
        """Large arrays are ordinary ones again.

        What the arena gave is neither moved nor given back: the program ends.
        """
        self._ask_no_more()
        self._hear_of_freed()

    def _ask_no_more(self) -> None:
        self._words[_LEAST] = _NEVER

    # What the compiled functions call

    def _holding_ctrl_c(
        self, callback: Callable[[int, int, int], None]
    ) -> Callable[[int, int, int], None]:
        def called(a: int, b: int, cell: int) -> None:
            try:
                callback(a, b, cell)
            except KeyboardInterrupt:
                self._words[_STOPPED] = 1  # if there is no answer yet, we are asked again

        return called

    def _take(self, size: int, _: int, cell: int) -> None:
        _answer(cell, self._room(size))

    def _move(self, address: int, size: int, cell: int) -> None:
        """realloc, from or to the arena."""
        given = self._given.get(address)
        before = given[1] if given is not None else self._libc.malloc_usable_size(address)
        found = self._room(size)
        if found:
            ctypes.memmove(found, address, min(before, size))
        # from here on the old one may go, and no sooner: we may be asked again
        _answer(cell, found)
        if found and given is not None:
            self._release(address)
        elif found:
            self._libc.free(address)

    def _hear_of_freed(self) -> None:
        with self._hearing:  # each is heard of once: its address may be another array's soon
            self._heard = max(self._heard, self._words[_FREED] - _MOST_NOTES)
            while self._heard < self._words[_FREED]:
                address = self._notes[self._heard % _MOST_NOTES]
                self._heard += 1
                self._release(address)

    def _release(self, address: int) -> None:
        if (given := self._given.pop(address, None)) is not None:
            self._arena.release(given[0])

    def _room(self, size: int) -> int:
        """An address in the arena, or 0: NumPy raises MemoryError.

        The first Ctrl-C waits until NumPy is done.
        """
        while True:
            try:
                self._hear_of_freed()
                ident, address = self._arena.allocate(size, _caller())
            except TidegateError as error:
                if not self._said:
                    print(f"tidegate: {error}", file=sys.stderr, flush=True)
                    self._said = True
                return 0
            except KeyboardInterrupt:
                if self._words[_STOPPED]:
                    return 0
                self._words[_STOPPED] = 1
                continue
            self._given[address] = ident, size
            return address

    def _make_capsule(self) -> Any:
        self._handler = _Handler(
            b"tidegate", 1, ctypes.addressof(self._words), *(f.address for f in _COMPILED)
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
        )
        return new(ctypes.addressof(self._handler), _CAPSULE, None)


def _answer(cell: int, found: int) -> None:
    ctypes.c_int64.from_address(cell).value = found or _REFUSED


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

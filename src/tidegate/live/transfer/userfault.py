"""Linux's userfaultfd and related system calls, by ctypes.

Every number of the kernel's interface is in this file.

    Userfault.copy        fill missing memory and wake the threads that wait for it
             .map_again   map a page that is in memory and not mapped (its fault is a "minor" one)
             .unmap       leave pages in memory, and let their next use be a minor fault
             .protect     let writes fault
             .wake        let waiting threads try again
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import NamedTuple

from tidegate.errors import TidegateError

SMALL_PAGE = os.sysconf("SC_PAGE_SIZE")  # the kernel's page; ours are multiples of it

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4

_SYS_USERFAULTFD = 323 if os.uname().machine == "x86_64" else 282
_USER_MODE_ONLY = 1
_NEW = 0xAA00  # the ioctl of /dev/userfaultfd that makes a descriptor
_API, _REGISTER, _WAKE, _COPY = 0xC018AA3F, 0xC020AA00, 0x8010AA02, 0xC028AA03
_PROTECT, _CONTINUE, _POISON = 0xC018AA06, 0xC020AA07, 0xC020AA08
_MISSING, _WP, _MINOR = 1, 2, 4  # what a range is registered for
_THREAD_ID, _MINOR_SHMEM, _WP_SHMEM, _CAN_POISON = 1 << 8, 1 << 10, 1 << 12, 1 << 14  # features
_FAULT_EVENT = 0x12
_MESSAGE = struct.Struct("=BxxxxxxxQQIxxxx")
_MESSAGES = 64  # read at a time

PROT_NONE, PROT_READ, PROT_WRITE = 0, 1, 2
_MAP_SHARED, _MAP_PRIVATE, _MAP_FIXED, _MAP_ANONYMOUS, _MAP_NORESERVE = 1, 2, 0x10, 0x20, 0x4000
_MADV_DONTFORK, _MADV_DONTDUMP, _MADV_PAGEOUT = 10, 16, 21
_SYS_PROCESS_MADVISE = 440
_HUGE = 2 * 1024 * 1024
_PUNCH_HOLE, _KEEP_SIZE = 2, 1
_PR_SET_PDEATHSIG = 1

_Two, _Three, _Four, _Five = (ctypes.c_int64 * n for n in (2, 3, 4, 5))


class Fault(NamedTuple):
    """One message of the kernel: a thread waits at ``address``."""

    address: int
    write: bool
    protected: bool  # a write to a write-protected page
    minor: bool  # the page is in memory and not mapped
    thread: int = 0
    reader: int = 0  # the process that shares the arena; 0: its owner


def check(result: int, what: str) -> int:
    """Return the result of a system call, or raise its error."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


class Userfault:
    """A userfaultfd descriptor, made here or by another process."""

    def __init__(self, fd: int, can_poison: bool = True, pidfd: int = -1):
        self.fd, self.can_poison, self._pidfd = fd, can_poison, pidfd
        # processes that share the memory: their descriptors, and how far from ours their addresses
        # are; what comes near is mapped there by their own faults
        self.readers: dict[int, tuple[Userfault, int]] = {}

    @classmethod
    def open(cls) -> tuple[Userfault, bool]:
        """Return a descriptor for this process, and whether faults in system calls are served."""
        fd, in_kernel = _new_descriptor()
        wanted = _MINOR_SHMEM | _WP_SHMEM | _THREAD_ID
        api = bytearray(struct.pack("=QQQ", 0xAA, wanted, 0))
        try:
            fcntl.ioctl(fd, _API, api)
        except OSError:
            os.close(fd)
            raise TidegateError(
                f"Linux {os.uname().release} cannot write-protect shared memory for userfaultfd; "
                "live memory needs 5.19"
            ) from None
        return cls(fd, bool(struct.unpack("=QQQ", api)[1] & _CAN_POISON)), in_kernel

    def register(self, address: int, size: int) -> None:
        """Make faults in this range messages."""
        argument = struct.pack("=QQQQ", address, size, _MISSING | _WP | _MINOR, 0)
        fcntl.ioctl(self.fd, _REGISTER, bytearray(argument))

    def read(self) -> list[Fault]:
        """Return the faults that wait to be read, if any."""
        try:
            data = os.read(self.fd, _MESSAGES * _MESSAGE.size)
        except BlockingIOError:
            return []
        return [
            Fault(address, bool(flags & 1), bool(flags & 2), bool(flags & 4), thread)
            for event, flags, address, thread in _MESSAGE.iter_unpack(data)
            if event == _FAULT_EVENT
        ]

    def read_all(self) -> list[Fault]:
        """Return the faults of readers, too, at our addresses."""
        found = self.read()
        for number, (reader, shift) in self.readers.items():
            events = reader.read()
            found += [e._replace(address=e.address - shift, reader=number) for e in events]
        return found

    def copy(self, to: int, source: int, size: int, protect: bool) -> None:
        """Fill missing memory; memory that exists is left as it is."""
        mode = 2 if protect else 0
        done = 0
        while done < size:
            argument = _Five(to + done, source + done, size - done, mode, 0)
            if _libc.ioctl(self.fd, _COPY, ctypes.byref(argument)) == 0:
                self._wake_readers(to, size)
                return
            number = ctypes.get_errno()
            if number == errno.EEXIST or (number == errno.EAGAIN and argument[4] == -errno.EEXIST):
                done += SMALL_PAGE
            elif number == errno.EAGAIN:
                done += max(0, argument[4])
            elif number in (errno.ESRCH, errno.ENOENT):
                return  # the program is gone, or has unmapped it
            else:
                raise OSError(number, f"copy into the arena: {os.strerror(number)}")
        self.wake(to, size)

    def map_again(self, address: int, size: int, protect: bool) -> None:
        """Answer minor faults: map pages that are in memory."""
        mode = 2 if protect else 0
        done = 0
        while done < size:
            argument = _Four(address + done, size - done, mode, 0)
            if _libc.ioctl(self.fd, _CONTINUE, ctypes.byref(argument)) == 0:
                self._wake_readers(address, size)
                return
            number = ctypes.get_errno()
            if number not in (errno.EEXIST, errno.EAGAIN, errno.EFAULT):
                break
            # EFAULT: this small page is not in memory; its next use is an ordinary fault
            done += max(SMALL_PAGE, argument[3])
        self.wake(address, size)

    def protect(self, address: int, size: int) -> None:
        """Let writes fault."""
        self._set_protection(address, size, 1)

    def unprotect(self, address: int, size: int) -> None:
        """Let writes through, and wake the threads that wait for it."""
        self._set_protection(address, size, 0)

    def unmap(self, address: int, size: int) -> None:
        """Let the next use of these pages fault, whose memory stays; best effort.

        Without swap "page out" drops their mappings and keeps the pages (see ``can_unmap``).
        """
        _advise_process(self._pidfd, address, size, _MADV_PAGEOUT)

    def wake(self, address: int, size: int) -> None:
        """Let the threads that wait in this range try again."""
        _libc.ioctl(self.fd, _WAKE, ctypes.byref(_Two(address, size)))
        self._wake_readers(address, size)

    def _wake_readers(self, address: int, size: int) -> None:
        for reader, shift in tuple(self.readers.values()):
            reader.wake(address + shift, size)

    def poison(self, address: int, size: int) -> None:
        """Make any use of this missing memory a SIGBUS, instead of a wrong byte."""
        argument = _Four(address, size, 0, 0)
        check(_libc.ioctl(self.fd, _POISON, ctypes.byref(argument)), "poison a page")
        for reader, shift in tuple(self.readers.values()):
            with contextlib.suppress(OSError):  # it has just ended
                reader.poison(address + shift, size)

    def _set_protection(self, address: int, size: int, mode: int) -> None:
        argument = _Three(address, size, mode)
        while _libc.ioctl(self.fd, _PROTECT, ctypes.byref(argument)) == -1:
            number = ctypes.get_errno()
            if number in (errno.ESRCH, errno.ENOENT):
                return
            if number != errno.EAGAIN:
                raise OSError(number, f"write-protect: {os.strerror(number)}")


def _new_descriptor() -> tuple[int, bool]:
    flags = os.O_CLOEXEC | os.O_NONBLOCK
    fd = _libc.syscall(_SYS_USERFAULTFD, flags)
    if fd >= 0:
        return fd, True
    first = ctypes.get_errno()
    try:
        device = os.open("/dev/userfaultfd", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pass
    else:
        try:
            return fcntl.ioctl(device, _NEW, flags), True
        finally:
            os.close(device)
    fd = _libc.syscall(_SYS_USERFAULTFD, flags | _USER_MODE_ONLY)
    if fd >= 0:
        return fd, False
    if errno.ENOSYS in (first, ctypes.get_errno()):
        raise TidegateError(
            "this kernel has no userfaultfd, which live memory needs; see Access in docs/live.md"
        )
    raise TidegateError(
        "userfaultfd is not permitted (a container's seccomp profile? "
        "vm.unprivileged_userfaultfd=0?); see Access in docs/live.md"
    )


def can_unmap(pidfd: int) -> bool:
    """Return whether ``unmap`` works for this process: with the privilege, and without swap."""
    with contextlib.suppress(OSError):
        if len(Path("/proc/swaps").read_text().splitlines()) <= 1:
            return _advise_process(pidfd, 0, 0, _MADV_PAGEOUT) == 0
    return False


def _advise_process(pidfd: int, address: int, size: int, advice: int) -> int:
    part = _Two(address, size)
    arguments = (pidfd, ctypes.addressof(part), 1, advice, 0)
    return int(_libc.syscall(_SYS_PROCESS_MADVISE, *map(ctypes.c_long, arguments)))


def reserve(size: int) -> int:
    """Reserve addresses, which cannot be read, from a multiple of a huge page on.

    A huge page that lies across two page tables could not be unmapped as a whole.
    """
    flags = _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE
    found = _mapped(0, size + _HUGE, PROT_NONE, flags, -1)
    start = found + -found % _HUGE
    for address, surplus in ((found, start - found), (start + size, found + _HUGE - start)):
        if surplus:
            _libc.munmap(address, surplus)
    return start


def map_shared(address: int, size: int, fd: int) -> None:
    """Map a memory file over reserved addresses.

    A forked child does not get the mapping: it would read zeros. Nor does a core dump, which would
    read every page from the store.
    """
    _mapped(address, size, PROT_READ | PROT_WRITE, _MAP_SHARED | _MAP_FIXED | _MAP_NORESERVE, fd)
    for advice in (_MADV_DONTFORK, _MADV_DONTDUMP):
        check(_libc.madvise(address, size, advice), f"madvise {advice}")


def seal(address: int, size: int) -> None:
    """Unmap memory and keep its addresses reserved, so that a stale array cannot read others'."""
    flags = _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_FIXED | _MAP_NORESERVE
    _mapped(address, size, PROT_NONE, flags, -1)


def set_writable(address: int, size: int, writable: bool) -> None:
    """Allow the program to write there, or not."""
    check(_libc.mprotect(address, size, PROT_READ | (PROT_WRITE if writable else 0)), "mprotect")


def _mapped(address: int, size: int, protection: int, flags: int, fd: int) -> int:
    where = _libc.mmap(address or None, size, protection, flags, fd, 0)
    if where in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, f"mmap of {size} bytes: {os.strerror(number)}")
    return int(where)


def punch(fd: int, offset: int, size: int) -> None:
    """Give memory of a file back: its next use is a fault."""
    check(_libc.fallocate(fd, _PUNCH_HOLE | _KEEP_SIZE, offset, size), "punch a hole")


def die_with_parent(signal: int) -> None:
    """Have the kernel send this signal to us when our parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0)


def data_pages(fd: int, start: int, size: int) -> int:
    """Return the small pages of this part of a memory file that hold data, as bits."""
    found, at, end = 0, start, start + size
    while at < end:
        try:
            data = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # no data behind here
                break
            raise
        if data >= end:
            break
        at = min(os.lseek(fd, data, os.SEEK_HOLE), end)
        found |= (1 << (at - start) // SMALL_PAGE) - (1 << (data - start) // SMALL_PAGE)
    return found

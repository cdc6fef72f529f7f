"""clang and the kernel: compile a policy to BPF, have the verifier accept it, and run it.

Loading goes through libbpf, by ctypes: the four calls that are needed do not pay for a binding.
The programs are run by BPF_PROG_TEST_RUN; nothing is attached.
"""

from __future__ import annotations

import ctypes as c
import functools
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiler.ir.clang import find_clang
from tidegate.errors import TidegateError

_LIBRARY = "libbpf.so.1"
_PROG_TYPE_SYSCALL, _PROG_TYPE_STRUCT_OPS = 31, 27
_LOG_LINES = 3
_PRINT = c.CFUNCTYPE(c.c_int, c.c_int, c.c_char_p, c.c_void_p)


class _RunOptions(c.Structure):
    """struct bpf_test_run_opts"""

    _fields_ = [
        ("sz", c.c_size_t),
        ("data_in", c.c_void_p),
        ("data_out", c.c_void_p),
        ("data_size_in", c.c_uint32),
        ("data_size_out", c.c_uint32),
        ("ctx_in", c.c_void_p),
        ("ctx_out", c.c_void_p),
        ("ctx_size_in", c.c_uint32),
        ("ctx_size_out", c.c_uint32),
        ("retval", c.c_uint32),
        ("repeat", c.c_int),
        ("duration", c.c_uint32),
        ("flags", c.c_uint32),
        ("cpu", c.c_uint32),
        ("batch_size", c.c_uint32),
    ]


class Batch(c.Structure):
    """struct batch of check.h"""

    _fields_ = [
        ("rows", c.c_uint64),
        ("timed", c.c_uint64),
        ("ns", c.c_uint64),
        ("asked", c.c_uint64),
        ("failed", c.c_int64),
    ]


@functools.cache
def _library() -> Any:
    found = c.CDLL(_LIBRARY, use_errno=True)
    for name in (
        "bpf_object__open_file",
        "bpf_object__find_program_by_name",
        "bpf_object__find_map_by_name",
    ):
        getattr(found, name).restype = c.c_void_p
    found.bpf_program__insn_cnt.restype = c.c_size_t
    return found


@functools.cache
def missing() -> str:
    """Return why policies cannot be checked in the kernel here, "" if they can."""
    if _target_missing():
        return "clang with the BPF target is needed; apt-get install clang-19"
    try:
        library = _library()
    except OSError:
        return f"{_LIBRARY} is needed; apt-get install libbpf1"
    silent = _PRINT(lambda level, text, arguments: 0)
    library.libbpf_set_print(silent)
    library.tidegate_silent = silent  # kept: libbpf calls it
    if library.libbpf_probe_bpf_prog_type(_PROG_TYPE_SYSCALL, None) != 1:
        return "the kernel does not let this user load BPF programs; run as root, on Linux 5.14 on"
    return ""


@functools.cache
def has_dummy_ops() -> bool:
    """Return whether the kernel has bpf_dummy_ops, to run hooks as a driver calls them."""
    library = _library()
    if library.libbpf_probe_bpf_prog_type(_PROG_TYPE_STRUCT_OPS, None) != 1:
        return False
    try:
        return b"bpf_dummy_ops\0" in Path("/sys/kernel/btf/vmlinux").read_bytes()
    except OSError:
        return False


def _target_missing() -> bool:
    clang = find_clang()
    if clang is None:
        return True
    targets = subprocess.run([clang, "--print-targets"], capture_output=True, text=True)
    return re.search(r"^\s+bpf\b", targets.stdout, re.MULTILINE) is None


def compile_bpf(source: Path, *defines: str) -> Path:
    """Compile a file of C to a BPF object beside it."""
    clang = find_clang()
    if clang is None:
        raise TidegateError("--check needs clang with the BPF target; apt-get install clang-19")
    built = source.with_suffix(".o")
    flags = [
        "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-fwrapv", "-Wall", "-Werror",
        "-Wno-unused-function", "-Wno-unused-variable", "-Wno-unused-but-set-variable",
        "-Wno-unused-value", "-Wno-parentheses-equality", "-Wno-tautological-compare",
        "-Wno-constant-logical-operand",
    ]  # fmt: skip
    command = [clang, *flags, *(f"-D{d}" for d in defines), "-c", str(source), "-o", str(built)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr)
        raise TidegateError(f"clang refuses the emitted C, please report this: {said.strip()}")
    return built


class Loaded:
    """A BPF object that the verifier accepted; close it."""

    def __init__(self, path: Path):
        self._library = library = _library()
        self._object = library.bpf_object__open_file(str(path).encode(), None)
        if not self._object:
            raise TidegateError(f"{path.name} is no BPF object")
        log = self._start_log()
        if library.bpf_object__load(c.c_void_p(self._object)):
            self.close()
            said = [line for line in log() if not line.startswith(("processed", "max_states"))]
            raise TidegateError(
                f"the kernel's verifier refuses {path.stem}: {' / '.join(said[-_LOG_LINES:])}"
            )

    def _start_log(self) -> Any:
        """Let libbpf write the verifier's words to a buffer of each program."""
        library, texts = self._library, []
        library.bpf_object__next_program.restype = c.c_void_p
        program = library.bpf_object__next_program(c.c_void_p(self._object), None)
        while program:
            buffer = c.create_string_buffer(1 << 22)
            library.bpf_program__set_log_buf(c.c_void_p(program), buffer, c.c_size_t(1 << 22))
            library.bpf_program__set_log_level(c.c_void_p(program), 4)
            texts.append(buffer)
            program = library.bpf_object__next_program(
                c.c_void_p(self._object), c.c_void_p(program)
            )
        self._texts = texts  # kept: the kernel writes there
        return lambda: [
            line
            for text in texts
            for line in text.value.decode(errors="replace").splitlines()
            if line.strip()
        ]

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Unload it."""
        if self._object:
            self._library.bpf_object__close(c.c_void_p(self._object))
            self._object = None

    def instructions(self, program: str) -> int:
        """Return how many instructions a program has, with the functions it calls."""
        return int(self._library.bpf_program__insn_cnt(c.c_void_p(self._program(program))))

    def run(self, program: str, context: Any) -> None:
        """Run a program once; it reads and writes ``context``."""
        fd = self._library.bpf_program__fd(c.c_void_p(self._program(program)))
        options = _RunOptions(sz=c.sizeof(_RunOptions))
        options.ctx_in = c.cast(c.byref(context), c.c_void_p)
        options.ctx_size_in = c.sizeof(context)
        error = self._library.bpf_prog_test_run_opts(fd, c.byref(options))
        if error:
            raise TidegateError(f"the kernel does not run {program}: error {-error}")

    def write(self, name: str, content: NDArray[Any]) -> None:
        """Fill a map from its beginning."""
        whole = self.read(name, np.uint8)
        whole[: content.nbytes] = content.view(np.uint8).reshape(-1)
        key = c.c_uint32(0)
        if self._library.bpf_map_update_elem(
            self._map(name), c.byref(key), whole.ctypes.data_as(c.c_void_p), c.c_uint64(0)
        ):
            raise TidegateError(f"the kernel does not take the map '{name}'")

    def read(self, name: str, dtype: Any) -> NDArray[Any]:
        """Return the content of a map."""
        size = self._library.bpf_map__value_size(c.c_void_p(self._map_pointer(name)))
        content = np.zeros(size, np.uint8)
        key = c.c_uint32(0)
        if self._library.bpf_map_lookup_elem(
            self._map(name), c.byref(key), content.ctypes.data_as(c.c_void_p)
        ):
            raise TidegateError(f"the kernel does not give the map '{name}'")
        return content.view(dtype)

    def _program(self, name: str) -> int:
        found = self._library.bpf_object__find_program_by_name(
            c.c_void_p(self._object), name.encode()
        )
        if not found:
            raise TidegateError(f"the object has no program '{name}'")
        return int(found)

    def _map_pointer(self, name: str) -> int:
        return int(
            self._library.bpf_object__find_map_by_name(c.c_void_p(self._object), name.encode())
        )

    def _map(self, name: str) -> int:
        return int(self._library.bpf_map__fd(c.c_void_p(self._map_pointer(name))))

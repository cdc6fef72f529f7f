"""A model from the files a person has: sources for clang, or IR that is already there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidegate.compiler.clang import compile_ir
from tidegate.compiler.inline import KERNEL
from tidegate.compiler.ir import parse
from tidegate.compiler.model import ProgramModel
from tidegate.compiler.program import model_of_ir
from tidegate.errors import TidegateError

SOURCES = (".c", ".cc", ".cpp", ".cxx", ".C")
IR = (".ll", ".bc")


def model_of_files(paths: Sequence[Path], options: Sequence[str] = ()) -> ProgramModel:
    """The model of a program given as sources or IR, in any mixture and order; `options` go to clang."""
    host: list[str | bytes] = []
    device: list[str | bytes] = []
    for path in paths:
        if path.suffix in SOURCES:
            for_host, for_device = compile_ir(path, options)
            host.append(for_host)
            device.append(for_device)
        elif path.suffix in IR:
            text = _read(path)
            (device if _is_device(text) else host).append(text)
        else:
            raise TidegateError(f"'{path}' is neither source nor IR; give files that end in {', '.join((*SOURCES, *IR))}")
    return model_of_ir(host, device, ", ".join(path.name for path in paths))


def _read(path: Path) -> str:
    if not path.is_file():
        raise TidegateError(f"no file '{path}'; give an .ll or .bc file")
    return str(parse(path.read_bytes(), str(path)))


def _is_device(text: str) -> bool:
    """A device's module holds kernels that can be called from outside; the host's holds their ids."""
    starts = (line for line in text.splitlines() if line.startswith("define ") and f"@{KERNEL}" in line)
    return ".region_id" not in text and any(" internal " not in line for line in starts)

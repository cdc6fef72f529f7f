"""A program's model from files: sources for clang, IR that is already there, or a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidegate.compiler.ir.clang import check_file, compile_ir
from tidegate.compiler.ir.inline import KERNEL
from tidegate.compiler.ir.module import parse
from tidegate.compiler.model import ProgramModel
from tidegate.compiler.model_file import load
from tidegate.compiler.program import model_of_ir
from tidegate.errors import TidegateError

SOURCES = (".c", ".cc", ".cpp", ".cxx", ".C")
IR = (".ll", ".bc")
MODEL = ".json"


def model_of_files(paths: Sequence[Path], options: Sequence[str] = ()) -> ProgramModel:
    """Return the model of a program given as sources or IR, in any mixture and order, or as one
    saved model.

    `options` go to clang.
    """
    if any(path.suffix == MODEL for path in paths):
        return _saved(paths, options)
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
            known = ", ".join((*SOURCES, *IR))
            raise TidegateError(
                f"'{path}' is neither source nor IR; give files that end in {known}, "
                f"or a saved model ({MODEL})"
            )
    return model_of_ir(host, device, ", ".join(path.name for path in paths))


def _saved(paths: Sequence[Path], options: Sequence[str]) -> ProgramModel:
    if len(paths) > 1:
        given = ", ".join(map(str, paths))
        raise TidegateError(f"{given}: a saved model ({MODEL}) is a whole program; give it alone")
    if options:
        raise TidegateError(
            f"'{paths[0]}' is a saved model, which clang does not compile; "
            "leave --clang out or give sources"
        )
    return load(paths[0])


def _read(path: Path) -> str:
    check_file(path, "an .ll or .bc file")
    return str(parse(path.read_bytes(), str(path)))


def _is_device(text: str) -> bool:
    """Return whether a module is the device's: it defines kernels that can be called from outside,
    while the host's holds their ids.
    """
    kernels = (x for x in text.splitlines() if x.startswith("define ") and f"@{KERNEL}" in x)
    return ".region_id" not in text and any(" internal " not in line for line in kernels)

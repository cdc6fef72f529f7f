"""A program's model from files: sources for clang, IR that is already there, or a saved model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tidegate.compiler.ir.clang import CUDA, HIP, LANGUAGES, Unit, check_file, compile_unit
from tidegate.compiler.ir.inline import KERNEL
from tidegate.compiler.ir.module import parse
from tidegate.compiler.model import ProgramModel
from tidegate.compiler.model_file import load
from tidegate.compiler.program import model_of_ir
from tidegate.compiler.project import is_project, units_of_project
from tidegate.errors import TidegateError

IR = (".ll", ".bc")
MODEL = ".json"
_GPU = re.compile(r'^target triple = "(nvptx|amdgcn|spir)', re.M)


def model_of_files(
    paths: Sequence[Path],
    options: Sequence[str] = (),
    progress: Callable[[int], None] = lambda files: None,
) -> ProgramModel:
    """Return the model of a program given as sources, IR and projects, in any mixture and order, or
    as one saved model.

    A project is a Makefile, a compile_commands.json, or a folder with one of them. With sources
    beside it, only those are taken, with the project's options. `options` go to clang, for every
    source. `progress` is called after each file that was compiled.
    """
    if any(path.suffix == MODEL and not is_project(path) for path in paths):
        return _saved(paths, options)
    host: list[str | bytes] = []
    device: list[str | bytes] = []
    for path in (path for path in paths if path.suffix in IR):
        text = _read(path)
        (device if _is_device(text) else host).append(text)
    units = _units(paths, tuple(options))
    beside = next((unit.spoken for unit in units if unit.spoken in (CUDA, HIP)), "")
    for unit in units:
        for_host, for_device = compile_unit(unit, beside)
        host.append(for_host)
        device += [for_device] if for_device else []
        progress(1)
    return model_of_ir(host, device, ", ".join(path.name or str(path) for path in paths))


def _units(paths: Sequence[Path], options: tuple[str, ...]) -> list[Unit]:
    """Return the sources to compile, in the order given."""
    projects = [unit for path in paths if is_project(path) for unit in units_of_project(path)]
    sources = [path for path in paths if not is_project(path) and path.suffix not in IR]
    for path in sources:
        if path.suffix not in LANGUAGES:
            known = ", ".join((*LANGUAGES, *IR))
            raise TidegateError(
                f"'{path}' is neither source nor IR; give files that end in {known}, "
                f"a Makefile, or a saved model ({MODEL})"
            )
    of_project = {unit.source.resolve(): unit for unit in projects}
    units = [of_project.get(path.resolve(), Unit(path)) for path in sources] or projects
    return [replace(unit, options=(*unit.options, *options)) for unit in units]


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
    """Return whether a module is the device's: it is for a GPU, or it defines kernels that can be
    called from outside, while the host's holds their ids.
    """
    if _GPU.search(text):
        return True
    kernels = (x for x in text.splitlines() if x.startswith("define ") and f"@{KERNEL}" in x)
    return ".region_id" not in text and any(" internal " not in line for line in kernels)

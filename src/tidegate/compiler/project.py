"""A program's model from files: sources for clang, IR that is already there, a saved model, or a
project.

How a project compiles each source is read from compile_commands.json or from the commands of a
Makefile. Of a command only what changes the meaning of the source is kept: folders of headers,
macros, the standard and the language. Tidegate has its own options for optimisation and offloading.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tidegate.compiler.ir.clang import (
    CPLUSPLUS,
    CUDA,
    HIP,
    LANGUAGES,
    Unit,
    check_file,
    compile_unit,
)
from tidegate.compiler.ir.inline import KERNEL
from tidegate.compiler.ir.module import parse
from tidegate.compiler.model import ProgramModel
from tidegate.compiler.model_file import load
from tidegate.compiler.program import model_of_ir
from tidegate.errors import TidegateError

DATABASE = "compile_commands.json"
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")  # in make's own order

# options of gcc, clang and nvcc that are followed by their value, or written together with it
_KEPT = ("-I", "-D", "-U", "-isystem", "-iquote", "-idirafter", "-include")
_WITH_VALUE = (*_KEPT, "-o", "-x", "-MF", "-MT", "-MQ", "-Xcompiler", "-Xlinker", "-L", "-l")
_ENTERED = re.compile(r"^make(?:\[\d+\])?: Entering directory '(.+)'$")
_LEFT = re.compile(r"^make(?:\[\d+\])?: Leaving directory ")
_CPLUSPLUS = re.compile(r"\+\+|icpx|dpcpp|mpicxx|hipcc|mpiCC")  # in the name of a compiler
_PREFIXES = ("ccache", "distcc", "env", "time")


def is_project(path: Path) -> bool:
    """Return whether a path is a folder, a Makefile or a compilation database."""
    named = path.name == DATABASE or path.name.lower().startswith(("makefile", "gnumakefile"))
    return path.is_dir() or named or path.suffix == ".mk"


def units_of_project(path: Path) -> list[Unit]:
    """Return the source files that a project compiles, each once, with their options.

    A Makefile is asked by ``make --dry-run``, which builds nothing; make still runs the shell
    commands that the Makefile uses to set its variables.
    """
    found = _found_in(path) if path.is_dir() else path
    if not found.is_file():
        raise TidegateError(f"no file: '{found}'; give a Makefile or {DATABASE}")
    commands = list(_of_database(found) if found.name == DATABASE else _of_makefile(found))
    units = [unit for command in commands for unit in command.units]
    once = list(dict.fromkeys(units))
    if len({unit.source.resolve() for unit in once}) < len(once):
        once = list(dict.fromkeys(_one_program(commands) or units))
    if not once:
        raise TidegateError(f"'{found}' compiles no C, C++, CUDA or HIP source; give the files")
    return once


def _found_in(folder: Path) -> Path:
    names = (DATABASE, *MAKEFILES)
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise TidegateError(
            f"'{folder}' has neither {DATABASE} nor a Makefile; give the program's files"
        )
    return found


@dataclass(frozen=True)
class _Command:
    """A command of a compiler."""

    units: tuple[Unit, ...]
    made: Path | None  # what it makes
    objects: tuple[Path, ...]  # that it links
    links: bool
    offloads: bool


def _one_program(commands: Sequence[_Command]) -> list[Unit]:
    """Return the sources of one program of several that are made of the same sources with different
    options: the first that offloads, else the first.
    """
    by_object = {command.made: command for command in commands if not command.links}
    programs = []
    for command in (c for c in commands if c.links):
        parts = [by_object[o] for o in command.objects if o in by_object]
        units = [unit for part in (*parts, command) for unit in part.units]
        programs.append((any(c.offloads for c in (*parts, command)), units))
    ranked = sorted(programs, key=lambda program: not program[0])  # keeps their order otherwise
    return next((units for _, units in ranked if units), [])


def _of_database(path: Path) -> Iterator[_Command]:
    try:
        entries = json.loads(path.read_text())
        for entry in entries:
            words = entry.get("arguments") or shlex.split(entry["command"])
            folder = path.parent / entry.get("directory", ".")
            yield from _commands(words, folder)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise TidegateError(
            f"'{path}' is not a compilation database; make one with cmake "
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON, or with bear"
        ) from None


def _of_makefile(path: Path) -> Iterator[_Command]:
    if shutil.which("make") is None:
        raise TidegateError(f"no make to read '{path}' with; install it or give the files")
    asked = ["make", "--dry-run", "--always-make", "--keep-going", "--print-directory"]
    done = subprocess.run(
        [*asked, "-C", str(path.parent), "-f", path.name],
        capture_output=True,
        text=True,
        check=False,
    )
    commands = list(_of_output(done.stdout, path.parent))
    if not commands and done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if "***" in line), "make failed")
        said = said.removesuffix("Stop.").strip(" .")
        raise TidegateError(f"make cannot read '{path}': {said}; mend it or give the files")
    yield from commands


def _of_output(text: str, folder: Path) -> Iterator[_Command]:
    """Yield the commands that make prints, each with the folder it would run in."""
    folders = [folder]
    for line in text.replace("\\\n", " ").splitlines():
        if entered := _ENTERED.match(line):
            folders.append(Path(entered[1]))
        elif _LEFT.match(line) and len(folders) > 1:
            folders.pop()
        else:
            yield from _of_line(line, folders[-1])


def _of_line(line: str, folder: Path) -> Iterator[_Command]:
    for command in re.split(r"&&|\|\||;", line):
        try:
            words = shlex.split(command, comments=True)
        except ValueError:  # a quotation mark in a message
            continue
        if words[:1] == ["cd"] and len(words) == 2:
            folder = folder / words[1]
        yield from _commands(words, folder)


def _commands(words: Sequence[str], folder: Path) -> Iterator[_Command]:
    """Yield the command of a compiler with the sources that it compiles; none if it is another."""
    words = [word for word in words if word not in _PREFIXES]
    if not words or not {"-c", "-o", "--compile"} & set(words):
        return
    options, sources, language = _read(words)
    compiler = Path(words[0]).name
    units = []
    for name in _expanded(sources, folder):
        by_suffix = LANGUAGES.get(Path(name).suffix, "")
        spoken = language or by_suffix
        if not language and by_suffix == "c" and _CPLUSPLUS.search(compiler):
            spoken = CPLUSPLUS
        if "hipcc" in compiler and by_suffix in (CUDA, CPLUSPLUS):
            spoken = HIP
        units.append(Unit(folder / name, options, spoken, folder))
    links = not {"-c", "--compile"} & set(words)
    made = next((folder / after for word, after in pairwise(words) if word == "-o"), None)
    if made is None and sources:
        made = folder / Path(sources[0]).with_suffix(".o").name
    objects = tuple(folder / word for word in words[1:] if word.endswith((".o", ".obj")))
    offloads = any(re.search(r"openmp|-mp=|nvcc|hipcc|-x cu|-x hip", word) for word in words)
    yield _Command(tuple(units), made, objects, links, offloads)


def _expanded(sources: Sequence[str], folder: Path) -> Iterator[str]:
    """Yield the sources; a shell would replace a pattern such as ``*.cu`` by the files."""
    for name in sources:
        found = sorted(folder.glob(name)) if set("*?[") & set(name) and name[0] != "/" else []
        yield from (str(path.relative_to(folder)) for path in found) if found else (name,)


def _read(words: Sequence[str]) -> tuple[tuple[str, ...], list[str], str]:
    """Return a command's options that are kept, its sources, and the language given with -x."""
    options, sources, language = [], [], ""
    rest = iter(words[1:])
    for word in rest:
        option = next((o for o in _WITH_VALUE if word == o), None)
        if option is not None:
            value = next(rest, "")
            if option in _KEPT:
                options += [option, value]
            elif option == "-x":
                language = "" if value == "none" else {"cu": CUDA}.get(value, value)
        elif word.startswith((*_KEPT, "-std=", "--std=")):
            options.append(word.replace("--std=", "-std="))
        elif not word.startswith("-") and Path(word).suffix in LANGUAGES:
            sources.append(word)
    return tuple(options), sources, language


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
        text = _read_ir(path)
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


def _read_ir(path: Path) -> str:
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

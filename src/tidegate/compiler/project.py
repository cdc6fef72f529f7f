"""The source files of a program and how its project compiles each, from compile_commands.json or
from the commands of a Makefile.

Of a command only what changes the meaning of the source is kept: folders of headers, macros, the
standard and the language. Tidegate has its own options for optimisation and offloading.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tidegate.compiler.ir.clang import CPLUSPLUS, CUDA, LANGUAGES, Unit
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
    units = _of_database(found) if found.name == DATABASE else _of_makefile(found)
    once = list(dict.fromkeys(units))
    if not once:
        raise TidegateError(f"'{found}' compiles no C, C++ or CUDA source; give the files")
    return once


def _found_in(folder: Path) -> Path:
    names = (DATABASE, *MAKEFILES)
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise TidegateError(
            f"'{folder}' has neither {DATABASE} nor a Makefile; give the program's files"
        )
    return found


def _of_database(path: Path) -> Iterator[Unit]:
    try:
        entries = json.loads(path.read_text())
        for entry in entries:
            words = entry.get("arguments") or shlex.split(entry["command"])
            folder = path.parent / entry.get("directory", ".")
            yield from _units(words, folder)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise TidegateError(
            f"'{path}' is not a compilation database; make one with cmake "
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON, or with bear"
        ) from None


def _of_makefile(path: Path) -> Iterator[Unit]:
    if shutil.which("make") is None:
        raise TidegateError(f"no make to read '{path}' with; install it or give the files")
    asked = ["make", "--dry-run", "--always-make", "--keep-going", "--print-directory"]
    done = subprocess.run(
        [*asked, "-C", str(path.parent), "-f", path.name],
        capture_output=True,
        text=True,
        check=False,
    )
    folders = [path.parent]
    for line in done.stdout.replace("\\\n", " ").splitlines():
        if entered := _ENTERED.match(line):
            folders.append(Path(entered[1]))
        elif _LEFT.match(line) and len(folders) > 1:
            folders.pop()
        else:
            yield from _of_line(line, folders[-1])


def _of_line(line: str, folder: Path) -> Iterator[Unit]:
    for command in re.split(r"&&|\|\||;", line):
        try:
            words = shlex.split(command, comments=True)
        except ValueError:  # a quotation mark in a message
            continue
        if words[:1] == ["cd"] and len(words) == 2:
            folder = folder / words[1]
        yield from _units(words, folder)


def _units(words: Sequence[str], folder: Path) -> Iterator[Unit]:
    """Yield the sources that a command compiles; none if it does not compile."""
    words = [word for word in words if word not in _PREFIXES]
    if not words or not {"-c", "-o", "--compile"} & set(words):
        return
    options, sources, language = _read(words)
    compiler = Path(words[0]).name
    for name in sources:
        by_suffix = LANGUAGES.get(Path(name).suffix, "")
        spoken = language or by_suffix
        if not language and by_suffix == "c" and _CPLUSPLUS.search(compiler):
            spoken = CPLUSPLUS
        yield Unit(folder / name, options, spoken, folder)


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

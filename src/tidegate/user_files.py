"""Python files of users: loaded as they are on disk now, each beside its own neighbours.

    load_file("a/mine.py")   a module of its own, also if ``mine`` is imported as well
    import helper            in a/mine.py finds a/helper.py, and in b/mine.py b/helper.py

A file that was edited, or whose neighbour was, is loaded anew; classes that were made before stay
as they are. ``Source`` is what a worker process needs to load the same text.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tidegate.errors import TidegateError
from tidegate.origins import is_library, is_shipped

PREFIX = "tidegate_user_"  # begins the names of modules made from users' files


@dataclass(frozen=True)
class Source:
    """A loaded file: the name of its module, and the text of the file and of its neighbours."""

    name: str
    path: Path
    texts: dict[Path, bytes]


class UserFile:
    """A file and the neighbours that it imports, loaded from texts that are kept."""

    def __init__(self, name: str, path: Path, texts: dict[Path, bytes]):
        self.name, self.path, self.texts = name, path, texts
        self.neighbours: dict[str, ModuleType] = {}  # by the names that they are imported by
        self._builtins = {**vars(builtins), "__import__": self._import}
        self.module = ModuleType(name)
        self.module.__file__ = str(path)
        self.module.__spec__ = ModuleSpec(name, None, origin=str(path))

    def execute(self) -> None:
        """Run the file's text. Raise TidegateError if it cannot be imported."""
        sys.modules[self.name] = self.module
        try:
            with self._in_place():
                self.fill(self.module, self.path)
        except SyntaxError as error:
            file = error.filename or self.path
            raise TidegateError(
                f"{file}, line {error.lineno}: {error.msg}; correct the syntax error and try again"
            ) from error
        except (Exception, SystemExit) as error:
            raise TidegateError(
                f"{self.path} cannot be imported: {type(error).__name__}: {error}"
            ) from error

    def fill(self, module: ModuleType, path: Path) -> None:
        """Run a text in a module whose imports look for neighbours first."""
        if path not in self.texts:
            self.texts[path] = path.read_bytes()
        vars(module)["__builtins__"] = self._builtins
        # not from a .pyc, which may be older than the text
        exec(compile(self.texts[path], str(path), "exec"), vars(module))

    def is_current(self) -> bool:
        """Return whether the files on disk still have the texts that were loaded."""
        return all(_text_of(path) == text for path, text in self.texts.items())

    def _import(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> Any:
        """Import as Python does, but neighbours are those of this file."""
        if level == 0 and self._file_of(name.partition(".")[0]) is None:
            return builtins.__import__(name, globals, locals, fromlist, level)
        with self._in_place():
            return builtins.__import__(name, globals, locals, fromlist, level)

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """Put the neighbours in the place of other modules of their names."""
        with _lock:
            tops = {name.partition(".")[0] for name in sys.modules}
            own = {n for n in tops & self._names() if self._file_of(n)}
            others = _take({n for n in sys.modules if n.partition(".")[0] in own})
            sys.modules.update(self.neighbours)
            sys.meta_path.insert(0, self)  # type: ignore[arg-type]
            try:
                yield
            finally:
                sys.meta_path.remove(self)  # type: ignore[arg-type]
                loaded = {n for n, m in sys.modules.items() if _loader_of(m) is self}
                self.neighbours = _take(loaded - {self.name} - self._aliases(loaded))
                sys.modules.update(others)
                sys.modules.update({self._alias(n): m for n, m in self.neighbours.items()})

    def _alias(self, name: str) -> str:
        return f"{self.name}.{name}"

    def _aliases(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if name.startswith(f"{self.name}.")}

    def _names(self) -> set[str]:
        """Return the first parts of names that may be neighbours."""
        names = {file.stem for file in self.texts} | {file.parent.name for file in self.texts}
        with suppress(OSError):
            names |= {Path(name).stem for name in os.listdir(self.path.parent)}
        return names

    def _file_of(self, name: str) -> Path | None:
        """Return the neighbour of this name, None if it is a library's.

        A folder needs an ``__init__.py``.
        """
        if is_shipped(name) or (name in sys.modules and is_library(name)):
            return None
        if name.partition(".")[0] in sys.stdlib_module_names:
            return None
        place = self.path.parent.joinpath(*name.split("."))
        for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if file in self.texts or file.is_file():
                return file
        return None

    # As a finder and loader of modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        file = self._file_of(name)
        if file is None:
            return None
        folders = [str(file.parent)] if file.name == "__init__.py" else None
        return spec_from_file_location(
            name,
            file,
            loader=self,  # type: ignore[arg-type]
            submodule_search_locations=folders,
        )

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        path = Path(str(module.__file__))
        # what it defines is found by this name, in this process and in workers
        module.__name__ = self._alias(module.__name__)
        self.fill(module, path)


_lock = threading.RLock()
_loaded: dict[Path, list[UserFile]] = {}
_travelled: dict[Path, UserFile] = {}  # texts of the parent process, which count here


def load_file(path: Path) -> ModuleType:
    """Return the module of a user's file, loaded anew if the file or a neighbour was edited."""
    where = path.resolve()
    if where in _travelled:
        return _travelled[where].module
    if not path.is_file():
        raise TidegateError(f"no file {path}; give a Python file with a policy or workload class")
    earlier = _loaded.setdefault(where, [])
    for known in reversed(earlier):
        if known.is_current():
            return known.module
    text = path.read_bytes()
    digest = hashlib.sha256(f"{where} {len(earlier)} ".encode() + text).hexdigest()[:16]
    made = UserFile(f"{PREFIX}{digest}", where, {where: text})
    try:
        made.execute()
    except TidegateError:
        sys.modules.pop(made.name, None)
        raise
    earlier.append(made)
    return made.module


def sources() -> list[Source]:
    """Return what workers need to load the same files."""
    every = [file for files in _loaded.values() for file in files] + list(_travelled.values())
    return [Source(file.name, file.path, dict(file.texts)) for file in every]


def load_sources(given: Iterable[Source]) -> None:
    """Load files as another process did, under the same names and from the same texts."""
    for source in given:
        if source.name not in sys.modules:
            file = UserFile(source.name, source.path, dict(source.texts))
            file.execute()
            _travelled[source.path] = file


def imported_by(globals: dict[str, Any], name: str) -> ModuleType | None:
    """Return the module that code with these globals gets by ``import name``, if it is loaded."""
    own = globals.get("__builtins__")
    importer = own.get("__import__") if isinstance(own, dict) else None
    file = getattr(importer, "__self__", None)
    if isinstance(file, UserFile) and name in file.neighbours:
        return file.neighbours[name]
    return sys.modules.get(name)


def _take(names: Iterable[str]) -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in names}


def _loader_of(module: Any) -> Any:
    return getattr(getattr(module, "__spec__", None), "loader", None)


def _text_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

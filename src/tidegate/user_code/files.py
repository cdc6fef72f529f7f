"""Python files of users: loaded as they are on disk now, each with its own neighbours.

    load_file("a/mine.py")   a module of its own, also if ``mine`` is imported as well
    import helper            in a/mine.py finds a/helper.py, and in b/mine.py b/helper.py

The module of a file is a package, and its neighbours are modules of that package. A file that was
edited, or whose neighbour was, is loaded anew; classes that were made before stay as they are.
``Source`` is what a worker process needs to load the same text.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from tidegate.errors import TidegateError
from tidegate.user_code.origins import is_shipped

PREFIX = "tidegate_user_"  # begins the names of modules made from users' files


@dataclass(frozen=True)
class Source:
    """A loaded file: the name of its module, and the text of the file and of its neighbours."""

    name: str
    path: Path
    texts: dict[Path, bytes]


class UserFile:
    """A file, loaded with the neighbours that it imports."""

    def __init__(self, source: Source):
        self.name, self.path, self.texts = source.name, source.path, source.texts
        self._builtins = {**vars(builtins), "__import__": self._import}
        self.module = ModuleType(self.name)
        self.module.__file__ = str(self.path)
        self.module.__package__, self.module.__path__ = self.name, []
        self.module.__spec__ = ModuleSpec(self.name, None, origin=str(self.path), is_package=True)

    def execute(self) -> None:
        """Run the file's text. Raise TidegateError if it cannot be imported."""
        _files[self.name] = self
        sys.modules[self.name] = self.module
        try:
            self.fill(self.module)
        except (Exception, SystemExit) as error:
            self._forget()
            raise TidegateError(self._describe(error)) from error

    def fill(self, module: ModuleType) -> None:
        """Run a text in a module whose imports look for neighbours first."""
        path = Path(str(module.__file__))
        if path not in self.texts:
            self.texts[path] = path.read_bytes()
        vars(module)["__builtins__"] = self._builtins
        # not from a .pyc, which may be older than the text
        exec(compile(self.texts[path], str(path), "exec"), vars(module))

    def is_current(self) -> bool:
        """Return whether the files on disk still have the texts that were loaded."""
        return all(_text_of(path) == text for path, text in self.texts.items())

    def neighbour(self, name: str) -> Path | None:
        """Return the file that ``import name`` stands for, if it is a neighbour.

        A folder needs an ``__init__.py``. Python's own modules come first.
        """
        if is_shipped(name) or name.partition(".")[0] in sys.stdlib_module_names:
            return None
        place = self.path.parent.joinpath(*name.split("."))
        for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if file in self.texts or file.is_file():
                return file
        return None

    def _import(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Import as Python does, but take neighbours for modules of this file's package."""
        top = name.partition(".")[0]
        if level or self.neighbour(top) is None:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = importlib.import_module(f"{self.name}.{name}")
        if fromlist:  # it may name modules that are not loaded yet
            return builtins.__import__(module.__name__, globals, locals, fromlist, 0)
        return sys.modules[f"{self.name}.{top}"]

    def _forget(self) -> None:
        for name in [n for n in sys.modules if f"{n}.".startswith(f"{self.name}.")]:
            del sys.modules[name]
        del _files[self.name]

    def _describe(self, error: BaseException) -> str:
        if isinstance(error, SyntaxError):
            where = f"{error.filename or self.path}, line {error.lineno}"
            return f"{where}: {error.msg}; correct the syntax error and try again"
        said = str(error).replace(f"{self.name}.", "")
        return f"{self.path} cannot be imported: {type(error).__name__}: {said}"


class _Neighbours:
    """Finds and loads the neighbours of users' files, for Python."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        owner, _, rest = name.partition(".")
        if owner not in _files or not rest:
            return None
        file = _files[owner].neighbour(rest)
        if file == _files[owner].path:  # a neighbour imports the file itself
            sys.modules[name] = _files[owner].module
            return ModuleSpec(name, _Loaded(_files[owner].module))  # type: ignore[arg-type]
        if file is None:
            return None
        inner: list[str] | None = [] if file.name == "__init__.py" else None
        return spec_from_file_location(name, file, loader=self, submodule_search_locations=inner)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        _files[module.__name__.partition(".")[0]].fill(module)


class _Loaded:
    """Loads a module that is there already."""

    def __init__(self, module: ModuleType):
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


_files: dict[str, UserFile] = {}  # by the names of their modules
_travelled: dict[Path, UserFile] = {}  # texts of the parent process, which count here
sys.meta_path.insert(0, _Neighbours())


def load_file(path: Path) -> ModuleType:
    """Return the module of a user's file, loaded anew if the file or a neighbour was edited."""
    where = path.resolve()
    if where in _travelled:
        return _travelled[where].module
    if not path.is_file():
        raise TidegateError(f"no file {path}; give a Python file with a policy or workload class")
    earlier = [file for file in _files.values() if file.path == where]
    for known in reversed(earlier):
        if known.is_current():
            return known.module
    text = path.read_bytes()
    digest = hashlib.sha256(f"{where} {len(earlier)} ".encode() + text).hexdigest()[:16]
    made = UserFile(Source(f"{PREFIX}{digest}", where, {where: text}))
    made.execute()
    return made.module


def sources() -> list[Source]:
    """Return what workers need to load the same files."""
    return [Source(file.name, file.path, dict(file.texts)) for file in _files.values()]


def load_sources(given: Iterable[Source]) -> None:
    """Load files as another process did: under the same names, and from the same texts."""
    for source in given:
        if source.name not in _files:
            UserFile(source).execute()
        _travelled[source.path] = _files[source.name]


def texts_of(path: Path) -> list[bytes]:
    """Return the texts of a file and of the neighbours that it imports, as they are loaded."""
    module = load_file(path)
    texts = _files[module.__name__].texts
    return [texts[file] for file in sorted(texts)]


def imported_by(globals: dict[str, Any], name: str) -> ModuleType | None:
    """Return the module that code with these globals gets by ``import name``, if it is loaded."""
    owner = str(globals.get("__name__")).partition(".")[0]
    if owner in _files and _files[owner].neighbour(name.partition(".")[0]):
        return sys.modules.get(f"{owner}.{name}")
    return sys.modules.get(name)


def _text_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

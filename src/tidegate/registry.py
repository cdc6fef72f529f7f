"""Classes by name. Each family (eviction, prefetch, placement, workload) is one Registry.

A name is looked up among the classes of the family's packages, then among those that installed
packages add by entry point (group ``tidegate.<family>``). ``path/to/file.py:ClassName`` names a
class in the user's own file.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from tidegate.errors import TidegateError, UnknownName
from tidegate.options import Configurable, parse_spec
from tidegate.user_code.files import PREFIX, load_file

T = TypeVar("T", bound=Configurable)
_BARE = "_"  # a value without a key, until the class is known


class Registry(Generic[T]):
    """The classes of one family by name. Modules are imported when they are looked up, so that
    ``--help`` is quick.
    """

    def __init__(self, family: str, base: Callable[[], type[T]], *packages: str):
        """``packages``: where its modules are; ``a.*.b`` is the package b of each package in a."""
        self.family, self._base, self._packages = family, base, packages
        self._classes: dict[str, type[T]] = {}

    def __call__(self, name: str) -> Callable[[type[T]], type[T]]:
        """Decorator: register a class under ``name``."""

        def register(cls: type[T]) -> type[T]:
            if not (isinstance(cls, type) and issubclass(cls, self._base())):
                raise TidegateError(
                    f"{self.family} '{name}' must extend {self._base().__name__}, got {cls!r}"
                )
            cls.name = name
            # a class in a user's file is found by its file, and a copy must not hide the original
            if cls.__module__.startswith(PREFIX):
                cls.name = cls.__name__ if name in self._classes else name
            elif name in self._classes and self._classes[name] is not cls:
                raise TidegateError(
                    f"{self.family} '{name}' is registered twice; give one another name"
                )
            else:
                self._classes[name] = cls
            return cls

        return register

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        self._load_all()
        return sorted(self._classes)

    def find(self, name: str) -> type[T]:
        """Return the class of this name, from the package, a plug-in or the user's own file."""
        if ".py:" in name or name.endswith(".py"):
            return self._from_file(name)
        self._load_named(name)
        if name in self._classes:
            return self._classes[name]
        self._load_all()
        folded = {known.lower(): known for known in self._classes}
        if name.lower() not in folded:
            if Path(name).is_dir():
                raise TidegateError(
                    f"{name} is a folder; give a file, or the name of a {self.family}"
                )
            raise UnknownName(self.family, name, self._classes)
        return self._classes[folded[name.lower()]]

    def make(self, spec: str) -> T:
        """Return an instance from ``name(option=value, …)``."""
        name, options = parse_spec(spec, bare=_BARE)
        cls = self.find(name)
        if _BARE in options:
            options = parse_spec(spec, cls.bare)[1]
        return self.create(cls, options)

    def resolve(self, what: Any) -> T:
        """Return an instance of a name with its options, of a class, or the instance given."""
        base = self._base()
        if isinstance(what, str):
            return self.make(what)
        if isinstance(what, type) and issubclass(what, base):
            return self.create(what, {})
        if not isinstance(what, base):
            raise TidegateError(
                f"{self.family} must be a name or a tidegate.{_home(base)}, got {what!r}"
            )
        return what

    def create(self, cls: type[T], options: dict[str, Any]) -> T:
        """Return an instance; whatever its class raises becomes one line."""
        try:
            return cls(**options)
        except TidegateError:
            raise
        except Exception as error:
            raise TidegateError(
                f"{self.family} {cls.__name__} cannot be made: {type(error).__name__}: {error}"
            ) from error

    def _load_named(self, name: str) -> None:
        """Import the module that a class of this name is in, as a rule; others take a second."""
        self._load_plug_ins()
        if name in self._classes or "." in name:
            return
        for package in _expand(self._packages):
            module = f"{package}.{name.replace('-', '_')}"
            if importlib.util.find_spec(module):
                importlib.import_module(module)

    @functools.cache  # noqa: B019 - registries live as long as the process
    def _load_all(self) -> None:
        for name in _expand(self._packages):
            package = importlib.import_module(name)
            for module in pkgutil.walk_packages(package.__path__, f"{name}."):
                importlib.import_module(module.name)
        self._load_plug_ins()

    @functools.cache  # noqa: B019
    def _load_plug_ins(self) -> None:
        for point in entry_points(group=f"tidegate.{self.family}"):
            try:
                self(point.name)(point.load())
            except TidegateError:
                raise
            except Exception as error:
                name = f"{self.family} '{point.name}' of package {point.value}"
                raise TidegateError(f"{name} cannot be loaded: {error}") from error

    def _from_file(self, name: str) -> type[T]:
        self._load_all()  # first, or a copy of a class of the package would take its name
        file, _, wanted = name.rpartition(":") if ".py:" in name else (name, "", "")
        module = load_file(Path(file))
        base = self._base()
        classes = {
            k: v
            for k, v in vars(module).items()
            if isinstance(v, type) and issubclass(v, base) and v.__module__ == module.__name__
        }
        if not classes:
            raise TidegateError(
                f"{file} must have a class that extends tidegate.{_home(base)}, got none"
            )
        if not wanted and len(classes) > 1:
            raise TidegateError(
                f"{file} has several classes; give one: {', '.join(f'{file}:{c}' for c in classes)}"
            )
        if wanted and wanted not in classes:
            raise UnknownName(f"{self.family} in {file}", wanted, classes)
        cls = classes[wanted] if wanted else next(iter(classes.values()))
        cls.name = cls.name or cls.__name__
        return cls


def _home(base: type[Any]) -> str:
    """Return where users find a base class: ``workload.Workload`` or ``policy.EvictionPolicy``."""
    return f"{'workload' if base.__name__ == 'Workload' else 'policy'}.{base.__name__}"


@functools.cache
def _expand(packages: tuple[str, ...]) -> list[str]:
    """Return the names of the packages, with ``*`` for each package of a package."""
    found = []
    for name in packages:
        parent, star, rest = name.partition(".*")
        inner = pkgutil.iter_modules(importlib.import_module(parent).__path__) if star else ()
        each = [f"{parent}.{m.name}{rest}" for m in inner if m.ispkg] if star else [name]
        found += [one for one in each if importlib.util.find_spec(one)]
    return found


def error_line(error: BaseException, cls: type[Any], with_line: bool = False) -> str:
    """Return an error in one line, with file and line if ``cls`` does not come with Tidegate.

    ``with_line``: with the line of Tidegate's own files too.
    """
    text = (str(error).splitlines() or ["no message"])[0]
    said = str(error) if isinstance(error, TidegateError) else f"{type(error).__name__}: {text}"
    if not with_line and cls.__module__.startswith("tidegate."):
        return said
    step, place = error.__traceback__, ""
    while step is not None:
        if step.tb_frame.f_globals.get("__name__") == cls.__module__:
            file = Path(step.tb_frame.f_code.co_filename).name
            place = f" ({file}, line {step.tb_lineno})"
        step = step.tb_next
    return said + place


def place_of(function: Any, line: int | None = None) -> str:
    """Return file and line of a user's function, in brackets; nothing for Tidegate's own."""
    code = getattr(function, "__code__", None)
    if code is None or function.__module__.startswith("tidegate."):
        return ""
    return f" ({Path(code.co_filename).name}, line {line or code.co_firstlineno})"

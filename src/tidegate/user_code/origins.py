"""Where code comes from: shipped with Tidegate, an installed library, or local: the user's own."""

from __future__ import annotations

import functools
import importlib.metadata
import site
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from types import ModuleType


def is_shipped(module: str) -> bool:
    """Return whether a module of this name comes with Tidegate.

    >>> is_shipped("tidegate.units"), is_shipped("tidegate_user_1")
    (True, False)
    """
    return module == "tidegate" or module.startswith("tidegate.")


def is_library(module: str) -> bool:
    """Return whether a module is Python's own or of an installed package.

    A module without a file, such as a notebook, is not; a package that is installed in place, to be
    edited (``pip install -e``), is not either.
    """
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return True
    loaded = sys.modules.get(top)
    file = getattr(loaded, "__file__", None) or next(iter(getattr(loaded, "__path__", ())), None)
    return file is not None and _is_installed(str(file))


def is_local(module: str) -> bool:
    """Return whether a module is the user's own."""
    return not is_shipped(module) and not is_library(module)


def home_of(thing: type | ModuleType) -> str:
    """Return the name of a module, or of the module that defines a class."""
    home = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    return home if isinstance(home, str) else "builtins"  # some types of C answer with an attribute


@functools.lru_cache(maxsize=4096)
def _is_installed(file: str) -> bool:
    return any(place in Path(file).parents for place in _places())


@functools.cache
def _places() -> frozenset[Path]:
    paths = [*site.getsitepackages(), site.getusersitepackages()]
    paths += [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    return frozenset(Path(path) for path in paths)


@functools.cache
def version_of(package: str) -> str:
    """Return the version of an installed package, or the time of its file if it has none."""
    if package in sys.stdlib_module_names:
        return ""  # Python's own version is part of every name
    module = sys.modules.get(package)
    if isinstance(version := getattr(module, "__version__", None), str):
        return version
    with suppress(importlib.metadata.PackageNotFoundError, ValueError):
        return importlib.metadata.version(package)
    with suppress(OSError, TypeError):
        return str(Path(str(getattr(module, "__file__", ""))).stat().st_mtime_ns)
    return ""

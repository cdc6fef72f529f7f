"""One name for each object: its variable in the source, else a kernel's parameter, else its
allocator and line.
"""

from __future__ import annotations

from collections import defaultdict

from tidegate.compiler.analysis.launches import DecodedLaunch
from tidegate.compiler.analysis.locality import RegionalLocality
from tidegate.compiler.analysis.points_to import Origin
from tidegate.compiler.ir.calls import ALLOCATORS
from tidegate.compiler.ir.names import DebugNames, SourceName


class ObjectNames:
    """Names of a program's objects; each is given once."""

    def __init__(
        self,
        debug: DebugNames,
        launches: list[DecodedLaunch],
        device: RegionalLocality | None,
        holders: dict[str, str],
    ):
        self.calls, self.calls_to, self.way_to = debug.calls, debug.calls_to, debug.way_to
        self._holders = holders  # allocation → the variable whose address it is given
        self._debug = debug
        self._values: dict[str, set[str]] = defaultdict(set)
        self._of_library: dict[str, dict[str, int]] = defaultdict(dict)
        self._taken: set[str] = set()
        self.given: dict[Origin, str] = {}
        self._in_kernels: dict[Origin, str] = {}
        for launch in launches:
            passed = [entry for entry in launch.entries if entry.parameter is not None]
            names = device.parameter_names(launch.kernel, len(passed)) if device is not None else ()
            # parameters count up in the order of the entries
            for entry, name in zip(passed, names, strict=False):
                if len(entry.origins) == 1:  # a pointer that may be several objects names none
                    self._in_kernels.setdefault(next(iter(entry.origins)), name)

    def variable(self, value: str) -> str | None:
        """Return the variable that holds the value %`value`, if it is known.

        Variables of the C++ library, such as the length of a new vector, are many of one name: each
        gets a number.
        """
        name = self._debug.variable(value)
        if name is not None and _is_of_library(name):
            alike = self._of_library[name]
            number = alike.setdefault(value, len(alike) + 1)
            return name if number == 1 else f"{name}_{number}"
        if name is not None:
            self._values[name].add(value)
        return name

    def of_several_values(self) -> dict[str, int]:
        """Return the variables given out for several values, such as the parameter of a function
        that is called twice, and how many.
        """
        return {name: len(held) for name, held in sorted(self._values.items()) if len(held) > 1}

    def of(self, origin: Origin, allocator: str) -> str:
        """Return a name for an object. A second object of the same name becomes name.2."""
        name = origin.name
        if origin.kind == "heap":
            site = self._debug.site(self._holders.get(origin.name, origin.name))
            if origin.name in self._holders:
                own = self._debug.site(origin.name)
                site = SourceName(site.name, own.line)
            spelt = ALLOCATORS[allocator].spelt or allocator
            where = f"{spelt}:{site.line}" if site.line is not None else f"{spelt}.{origin.name}"
            if ALLOCATORS[allocator].result is not None and origin.name not in self._holders:
                site = SourceName(None, site.line)  # the call's own value is an error code
            own_name = None if _is_of_library(site.name) else site.name
            name = own_name or self._in_kernels.get(origin) or where
        elif origin.kind == "stack":
            name = self._debug.site(origin.name).name or origin.name
        numbered = (f"{name}.{k}" for k in range(2, len(self._taken) + 2))
        unique = next(n for n in (name, *numbered) if n not in self._taken)
        self._taken.add(unique)
        self.given[origin] = unique
        return unique

    def line(self, origin: Origin) -> int | None:
        """Return the line of main on which an object is allocated."""
        return self._debug.site(origin.name).line


def _is_of_library(name: str | None) -> bool:
    """Return whether a variable is one of the C++ library's, such as __p of shared_ptr."""
    return name is not None and name.startswith("__")

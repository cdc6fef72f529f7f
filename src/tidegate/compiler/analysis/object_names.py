"""One name for each object: what the source calls it, else what a kernel calls it, else where it is
allocated.
"""

from __future__ import annotations

from collections import defaultdict

from tidegate.compiler.analysis.launches import DecodedLaunch
from tidegate.compiler.analysis.locality import RegionalLocality
from tidegate.compiler.analysis.points_to import Origin
from tidegate.compiler.ir.allocators import ALLOCATORS
from tidegate.compiler.ir.names import DebugNames


class ObjectNames:
    """Names, given out once each."""

    def __init__(
        self, debug: DebugNames, launches: list[DecodedLaunch], device: RegionalLocality | None
    ):
        self.calls = debug.calls
        self._debug = debug
        self._values: dict[str, set[str]] = defaultdict(set)
        self._taken: set[str] = set()
        self._in_kernels: dict[Origin, str] = {}
        for launch in launches if device is not None else ():
            count = sum(entry.parameter is not None for entry in launch.entries)
            parameters = device.parameter_names(launch.kernel, count) if device is not None else []
            for entry in launch.entries:
                # a pointer that may be several objects names none of them
                if (
                    len(entry.origins) == 1
                    and entry.parameter is not None
                    and entry.parameter < len(parameters)
                ):
                    self._in_kernels.setdefault(
                        next(iter(entry.origins)), parameters[entry.parameter]
                    )

    def variable(self, value: str) -> str | None:
        """The variable that the value %`value` is known to be the value of."""
        name = self._debug.variable(value)
        if name is not None:
            self._values[name].add(value)
        return name

    def of_several_values(self) -> dict[str, int]:
        """Variables that were asked for and name several values, as a parameter of a function that
        is called twice does.
        """
        return {
            name: len(values) for name, values in sorted(self._values.items()) if len(values) > 1
        }

    def of(self, origin: Origin, allocator: str) -> str:
        """A name for an object; a second object of the same name becomes name.2."""
        name = origin.name
        if origin.kind == "heap":
            site = self._debug.site(origin.name)
            spelt = ALLOCATORS[allocator].spelt or allocator
            where = f"{spelt}:{site.line}" if site.line is not None else f"{spelt}.{origin.name}"
            name = site.name or self._in_kernels.get(origin) or where
        elif origin.kind == "stack":
            name = self._debug.site(origin.name).name or origin.name
        unique = next(
            n
            for k in range(1, len(self._taken) + 2)
            if (n := name if k == 1 else f"{name}.{k}") not in self._taken
        )
        self._taken.add(unique)
        return unique

    def line(self, origin: Origin) -> int | None:
        """The line of main on which an object is allocated."""
        return self._debug.site(origin.name).line

"""One name for each object: its variable in the source, else a kernel's parameter, else its
allocator and line. And one for each variable that sizes depend on.
"""

from __future__ import annotations

from collections import defaultdict

from tidegate.compiler.analysis.debug_names import DebugNames, SourceName
from tidegate.compiler.analysis.launches import DecodedLaunch, plain_name
from tidegate.compiler.analysis.locality import RegionalLocality
from tidegate.compiler.analysis.memory import Memory
from tidegate.compiler.analysis.points_to import Origin
from tidegate.compiler.ir.calls import ALLOCATORS
from tidegate.compiler.ir.module import CONVERSIONS

_CHOOSES = ("phi", "select", *CONVERSIONS)


class ObjectNames:
    """Names of a program's objects; each is given once."""

    def __init__(
        self,
        debug: DebugNames,
        launches: list[DecodedLaunch],
        device: RegionalLocality | None,
        holders: dict[str, str],
        memory: Memory,
    ):
        self.calls, self.calls_to, self.way_to = debug.calls, debug.calls_to, debug.way_to
        self._holders = holders  # allocation → the variable whose address it is given
        self._debug, self._memory = debug, memory
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
        """Return the variable that holds the value %`value`, in whatever width, or else the call
        that returns it.

        Variables of the C++ library, such as the length of a new vector, are many of one name: each
        gets a number.
        """
        found = map(self._named, self._memory.alike(value))
        name = next((name for name in found if name), None) or self._by_line(value)
        if name is not None and _is_of_library(name):
            alike = self._of_library[name]
            number = alike.setdefault(value, len(alike) + 1)
            return name if number == 1 else f"{name}_{number}"
        if name is not None:
            self._values[name].add(name if self._kept_in(value) else value)
        return name

    def _named(self, value: str) -> str | None:
        return self._kept_in(value) or self._debug.variable(value) or self._merged(value)

    def _kept_in(self, value: str) -> str | None:
        """Return the variable in memory that a value is loaded from, or else stored at."""
        i = self._memory.named.get(value)
        place = self._memory.place(i) if i is not None else None
        places = [place] if place is not None else self._memory.stored.get(i.key, ()) if i else ()
        names = (self._debug.at(origin, at) for origin, at in places if at is not None)
        return next((name for name in names if name), None)

    def _by_line(self, value: str) -> str | None:
        """Return the call of the outermost function that gives a value, with its line: atoi:12."""
        i, way = self._memory.named.get(value), self._debug.way_to(value)
        if i is None or i.opcode not in ("call", "invoke") or not way or not i.callee:
            return None
        called = way[1].rpartition(":")[0] if len(way) > 1 else plain_name(i.callee)
        return f"{called}:{way[0].rpartition(':')[2]}"

    def _merged(self, value: str) -> str | None:
        """Return the one variable of the values that a phi or a select may be."""
        i = self._memory.named.get(value)
        pending, seen, names = [i], set[int](), set[str]()
        while pending:
            i = pending.pop()
            if i is None or i.key in seen:
                continue
            seen.add(i.key)
            name = self._kept_in(i.ref.name) or self._debug.variable(i.ref.name)
            if name is not None:
                names.add(name)
            elif i.opcode in _CHOOSES:
                operands = i.operands[1:] if i.opcode == "select" else i.operands
                pending += (self._memory.instruction(o) for o in operands)
            else:
                return None
        return names.pop() if len(names) == 1 else None

    def of_several_values(self) -> dict[str, int]:
        """Return the variables given out for several values, such as the parameter of a function
        that is called twice, and how many.
        """
        return {name: len(held) for name, held in sorted(self._values.items()) if len(held) > 1}

    def name_object(self, origin: Origin, allocator: str) -> str:
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
        elif origin.kind == "global":
            name = plain_name(origin.name)
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

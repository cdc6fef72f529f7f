"""One name for each object: its variable in the source, else a kernel's parameter, else its
allocator and line.

Variables and lines are read from the debug information in the printed module, because llvmlite
shows no metadata, but prints it. After inlining, a record's location has the calls through which it
came. The variable of the outermost caller is the name that a person would use.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from tidegate.compiler.analysis.launches import DecodedLaunch
from tidegate.compiler.analysis.locality import RegionalLocality
from tidegate.compiler.analysis.points_to import Origin
from tidegate.compiler.ir.calls import ALLOCATORS
from tidegate.compiler.ir.module import Printed

_NODES = "DILocation|DILocalVariable|DISubprogram|DILexicalBlock|DIDerivedType"
_NODE = re.compile(rf"^!(\d+) = (?:distinct )?!(?:{_NODES})\((.*)\)$", re.M)
# A variable is a value, or that value in another width.
_WIDTH = r"(?:DW_OP_LLVM_convert, \d+, \w+, )*(?:DW_OP_stack_value)?"
_RECORD = re.compile(
    r"#dbg_(?:value|declare)"
    rf"\((?:ptr|i\d+) %([\w.$-]+), !(\d+), !DIExpression\({_WIDTH}\), !(\d+)\)"
)
# with assignment tracking, a variable in memory: its value, the variable, ..., and its address
_ASSIGNED = re.compile(
    r"#dbg_assign\([^\n]*?, !(\d+), !DIExpression\(\), !\d+, "
    r"ptr %([\w.$-]+), !DIExpression\(\), !(\d+)\)"
)
# an invoke has a second line
_LOCATED = re.compile(r"^\s*%([\w.$-]+) = [^\n]*(?:\n +to label [^\n]*)?!dbg !(\d+)", re.M)
_BLOCK = re.compile(r'^"?([\w.$-]+)"?:(.*?)(?=^$|^})', re.M | re.S)  # its name and text
_LOCATION = re.compile(r"!(\d+)\)?$", re.M)  # at the end of an instruction or a record
_FIELD = re.compile(r'(\w+): (?:"([^"]*)"|!?([\w-]+))')


@dataclass(frozen=True)
class SourceName:
    """The best name of a value, and its line in the outermost function; None if not known."""

    name: str | None
    line: int | None


class DebugNames:
    """Names and lines of the values of `main`."""

    def __init__(self, printed: Printed, function: str = "main"):
        text = printed.text
        self._nodes = {
            number: {key: a or b for key, a, b in _FIELD.findall(fields)}
            for number, fields in _NODE.findall(text)
        }
        inside = printed.functions.get(function, "")
        self._blocks: dict[str, str] = dict(_BLOCK.findall(inside))
        self._records: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for value, variable, location in _RECORD.findall(inside):
            self._records[value].append((variable, location))
        for variable, value, location in _ASSIGNED.findall(inside):
            self._records[value].append((variable, location))
        self._located: dict[str, str] = dict(_LOCATED.findall(inside))
        self._declared = self._variables_by_line(inside)

    def site(self, value: str) -> SourceName:
        """Return the name and line of the value %`value`."""
        line = self._line(value)
        names = self._names(value)
        here = self._declared.get(line, []) if line is not None else []
        # Optimisation may lose a record: a variable declared on the line of the call comes first.
        named_here = [n for n in names if n in here] or (here if len(here) == 1 else [])
        return SourceName(next(iter([*named_here, *names]), None), line)

    def variable(self, value: str) -> str | None:
        """Return the variable that holds the value %`value`, if it is known."""
        return next(iter(self._names(value)), None)

    def _names(self, value: str) -> list[str]:
        """Return the variables that hold a value, those of the outermost function first."""
        records = self._records.get(value, [])
        outermost_first = sorted(records, key=lambda record: len(self._way(record[1])))
        names = (self._nodes.get(variable, {}).get("name") for variable, _ in outermost_first)
        return [name for name in names if name]

    def calls(self, block: str, to: str) -> tuple[str, ...]:
        """Return function:line of the calls through which a block was inlined, the outermost first,
        up to ``to``.
        """
        location = _LOCATION.search(self._blocks.get(block, ""))
        way = self._way(location[1]) if location else []
        functions = [self._function(node).partition("<")[0] for node in way]  # no <parameters>
        calls = [f"{f}:{node.get('line')}" for f, node in zip(functions, way, strict=True)][::-1]
        return tuple(calls[: calls.index(to)]) if to in calls else ()

    def calls_to(self, value: str) -> tuple[str, ...]:
        """Return function:line of the calls through which the instruction %`value` was inlined, the
        outermost first, without its own.
        """
        return self.way_to(value)[:-1]

    def way_to(self, value: str) -> tuple[str, ...]:
        """Return function:line of the calls through which the instruction %`value` was inlined, the
        outermost first, and its own; nothing without debug information.
        """
        way = [node for node in self._way(self._located.get(value, "")) if node]
        functions = [self._function(node).partition("<")[0] for node in way]
        return tuple(f"{f}:{node.get('line')}" for f, node in zip(functions, way, strict=True))[
            ::-1
        ]

    def _way(self, location: str) -> list[dict[str, str]]:
        """Return a location and those of the calls it was inlined through, the outermost last."""
        way = [self._nodes.get(location, {})]
        while "inlinedAt" in way[-1]:
            way.append(self._nodes.get(way[-1]["inlinedAt"], {}))
        return way

    def _line(self, value: str) -> int | None:
        outermost = self._way(self._located.get(value, ""))[-1]
        return int(outermost["line"]) if "line" in outermost else None

    def _function(self, node: dict[str, str]) -> str:
        while "name" not in node and "scope" in node:
            node = self._nodes.get(node["scope"], {})
        return node.get("name", "?")

    def _is_pointer(self, variable: dict[str, str]) -> bool:
        node = self._nodes.get(variable.get("type", ""), {})
        while node and node.get("tag") != "DW_TAG_pointer_type":
            # through typedef, const and restrict
            node = self._nodes.get(node.get("baseType", ""), {})
        return bool(node)

    def _variables_by_line(self, inside: str) -> dict[int, list[str]]:
        """Return the pointers declared in the function's own outermost scope, by their lines."""
        own = re.search(r"!dbg !(\d+) \{", inside)
        found: dict[int, list[str]] = defaultdict(list)
        scope = own[1] if own else ""
        for node in self._nodes.values():
            declared = node.get("scope") == scope and "line" in node and "arg" not in node
            if declared and self._is_pointer(node):
                found[int(node["line"])].append(node["name"])
        return found


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

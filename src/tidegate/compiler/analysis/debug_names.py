"""Names and lines in the source, from debug information.

It is read from the printed module, because llvmlite shows no metadata, but prints it. After
inlining, a record's location has the calls through which it came. The variable of the outermost
caller is the name that a person would use.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from tidegate.compiler.analysis.points_to import Origin
from tidegate.compiler.ir.module import Printed

_NODES = "DILocation|DILocalVariable|DISubprogram|DILexicalBlock|DIDerivedType|DICompositeType"
_NODES += "|DIBasicType|DIGlobalVariable|DIGlobalVariableExpression"
_NODE = re.compile(rf"^!(\d+) = (?:distinct )?!(?:{_NODES})\((.*)\)$", re.M)
_TUPLE = re.compile(r"^!(\d+) = (?:distinct )?!\{([^}\n]*)\}$", re.M)
# A variable, or from some bit on a part of one, is a value, or that value in another width.
_WIDTH = r"(?:DW_OP_LLVM_convert, \d+, \w+(?:, )?)*(?:DW_OP_stack_value(?:, )?)?"
_PART = r"(?:DW_OP_LLVM_fragment, (\d+), \d+)?"
_RECORD = re.compile(
    r"#dbg_value\((?:ptr|i\d+) %([\w.$-]+), !(\d+), "
    rf"!DIExpression\({_WIDTH}{_PART}\), !(\d+)\)"
)
# A variable is what lies at an address.
_PLACE = re.compile(
    r"#dbg_(?:declare\(ptr %([\w.$-]+), !(\d+), !DIExpression\(\)"
    r"|value\(ptr %([\w.$-]+), !(\d+), !DIExpression\(DW_OP_deref\)), !(\d+)\)"
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
_GLOBAL = re.compile(r'^@(?:"([^"\n]+)"|([\w.$-]+)) = [^\n]*?!dbg !(\d+)', re.M)
_SAME_TYPE = ("typedef", "const_type", "volatile_type", "restrict_type")
_OTHER_NAMES = tuple(f"DW_TAG_{kind}" for kind in _SAME_TYPE)
_FIELD = re.compile(r'(\w+): (?:"([^"]*)"|!?([\w-]+))')


@dataclass(frozen=True)
class SourceName:
    """The best name of a value, and its line in the outermost function; None if not known."""

    name: str | None
    line: int | None


@dataclass(frozen=True)
class _Record:
    """A variable, or a part of one, that is a value or lies at an address."""

    variable: str
    part: int | None  # the first bit; None: it is the whole variable
    location: str


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
        self._text = text
        self._records: dict[str, list[_Record]] = defaultdict(list)  # of values
        self._places: dict[str, list[_Record]] = defaultdict(list)  # of addresses
        for value, variable, part, location in _RECORD.findall(inside):
            self._records[value].append(_Record(variable, int(part) if part else None, location))
        for a, of_a, b, of_b, location in _PLACE.findall(inside):
            self._places[a or b].append(_Record(of_a or of_b, None, location))
        for variable, place, location in _ASSIGNED.findall(inside):
            self._places[place].append(_Record(variable, None, location))
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

    def at(self, origin: Origin, offset: int) -> str | None:
        """Return the variable, or the part of one, that lies so many bytes behind an origin; of
        what is on the heap, by the pointer that holds it.
        """
        if origin.kind == "global":
            return self._part_name(self._globals.get(origin.name, ""), 8 * offset)
        if origin.kind == "stack":
            places = (self._part_name(r.variable, 8 * offset) for r in self._places[origin.name])
            return next((name for name in places if name), None)
        for record in self._by_way(origin.name) if origin.kind == "heap" else ():
            pointer = self._nodes.get(record.variable, {})
            held = self._plain_type(pointer.get("type", ""))
            pointed = self._plain_type(held.get("baseType", ""))
            path = self._path(pointed, 8 * offset) if "name" in pointer else None
            if path is not None:
                return (
                    f"*{pointer['name']}" if not path else f"{pointer['name']}->{path.strip('.')}"
                )
        return None

    def _names(self, value: str) -> list[str]:
        """Return the variables that hold a value, or lie there if it is an address, those of the
        outermost function first.
        """
        names = (self._part_name(r.variable, r.part) for r in self._by_way(value))
        return [name for name in names if name]

    def _by_way(self, value: str) -> list[_Record]:
        """Return the records of a value, those of the outermost function first."""
        records = [*self._records.get(value, ()), *self._places.get(value, ())]
        return sorted(records, key=lambda record: len(self._way(record.location)))

    def _part_name(self, variable: str, bits: int | None) -> str | None:
        """Return the name of a variable, or of the part of it that begins with some bit."""
        node = self._nodes.get(variable, {})
        if bits is None or "name" not in node:
            return node.get("name")
        path = self._path(self._plain_type(node.get("type", "")), bits)
        return None if path is None else node["name"] + path

    def _path(self, type_: dict[str, str], bits: int) -> str | None:
        """Return the way to the part of a type that begins with some bit: .size, or [2].x"""
        tag = type_.get("tag")
        if tag == "DW_TAG_array_type":
            element = self._plain_type(type_.get("baseType", ""))
            number, rest = divmod(bits, max(1, int(element.get("size", "0"))))
            path = self._path(element, rest)
            return None if path is None else f"[{number}]{path}"
        if tag not in ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type"):
            return "" if bits == 0 else None
        for part in self._tuples.get(type_.get("elements", ""), ()):
            member = self._nodes.get(part, {})
            begins = int(member.get("offset", "0"))
            if member.get("tag") in ("DW_TAG_member", "DW_TAG_inheritance") and (
                begins <= bits < begins + int(member.get("size", "0"))
            ):
                path = self._path(self._plain_type(member.get("baseType", "")), bits - begins)
                named = f".{member['name']}" if "name" in member else ""
                return None if path is None else named + path
        return None

    def _plain_type(self, number: str) -> dict[str, str]:
        """Return a type without typedef, const and volatile."""
        node = self._nodes.get(number, {})
        while node.get("tag") in _OTHER_NAMES:
            node = self._nodes.get(node.get("baseType", ""), {})
        return node

    @cached_property
    def _tuples(self) -> dict[str, list[str]]:
        return {n: re.findall(r"!(\d+)", inside) for n, inside in _TUPLE.findall(self._text)}

    @cached_property
    def _globals(self) -> dict[str, str]:
        """The variable of each global, by its symbol."""
        described = {a or b: number for a, b, number in _GLOBAL.findall(self._text)}
        return {name: self._nodes.get(n, {}).get("var", "") for name, n in described.items()}

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
        return self._plain_type(variable.get("type", "")).get("tag") == "DW_TAG_pointer_type"

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

"""What the source calls an allocation, and where it stands: read from the debug information in the
printed module.

llvmlite shows no metadata, but it prints it. After inlining, a record's location says through which
calls it came; the variable of the outermost caller is the one a person would name the object by.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from tidegate.compiler.ir.module import Module

_NODES = "DILocation|DILocalVariable|DISubprogram|DILexicalBlock|DIDerivedType"
_NODE = re.compile(rf"^!(\d+) = (?:distinct )?!(?:{_NODES})\((.*)\)$", re.M)
# A variable is a value itself, or that value in another width.
_WIDTH = r"(?:DW_OP_LLVM_convert, \d+, \w+, )*(?:DW_OP_stack_value)?"
_RECORD = re.compile(
    rf"#dbg_(?:value|declare)\((?:ptr|i\d+) %([\w.$-]+), !(\d+), !DIExpression\({_WIDTH}\), !(\d+)\)"
)
_LOCATED = re.compile(r"^\s*%([\w.$-]+) = .*!dbg !(\d+)", re.M)
_LOCATION = re.compile(r"!(\d+)\)?$", re.M)  # at the end of an instruction or a record
_FIELD = re.compile(r'(\w+): (?:"([^"]*)"|!?([\w-]+))')


@dataclass(frozen=True)
class Site:
    """What debug information says of one value: the best name there is, and the line in the
    outermost function.
    """

    name: str | None
    line: int | None


class DebugNames:
    """Names and lines of the values of `main`."""

    def __init__(self, module: Module, function: str = "main"):
        text = str(module)
        nodes = {
            n: {k: a or b for k, a, b in _FIELD.findall(fields)}
            for n, fields in _NODE.findall(text)
        }
        body = re.search(rf"^define [^\n]*@{re.escape(function)}\(.*?^}}", text, re.M | re.S)
        inside = body[0] if body else ""
        self._nodes, self._inside = nodes, inside
        self._records: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for value, variable, location in _RECORD.findall(inside):
            self._records[value].append((variable, location))
        self._located: dict[str, str] = dict(_LOCATED.findall(inside))
        self._declared = self._variables_by_line(inside)

    def site(self, value: str) -> Site:
        """The name and line of the value %`value`."""
        line = self._line(value)
        names = self._names(value)
        here = self._declared.get(line, []) if line is not None else []
        # A record may be lost in optimisation, so a variable declared on the very line of the call
        # comes first.
        named_here = [n for n in names if n in here] or (here if len(here) == 1 else [])
        return Site(next(iter([*named_here, *names]), None), line)

    def variable(self, value: str) -> str | None:
        """The variable that the value %`value` is known to be the value of."""
        return next(iter(self._names(value)), None)

    def _names(self, value: str) -> list[str]:
        """Variables that hold a value, those of the outermost function first."""
        records = [
            (len(self._way(at)), n, variable)
            for n, (variable, at) in enumerate(self._records.get(value, []))
        ]
        names = (self._nodes.get(variable, {}).get("name") for _, _, variable in sorted(records))
        return [name for name in names if name]

    def calls(self, block: str, to: str) -> tuple[str, ...]:
        """function:line of the calls by which a block came into the function, the outermost first,
        until one is ``to``.
        """
        text = re.search(rf"^{re.escape(block)}:.*?(?:^$|^}})", self._inside, re.M | re.S)
        location = _LOCATION.search(text[0]) if text else None
        way = self._way(location[1]) if location else []
        # a template's parameters are no part of a region's name
        calls = [
            f"{self._function(node).partition('<')[0]}:{node.get('line')}" for node in reversed(way)
        ]
        return tuple(calls[: calls.index(to)]) if to in calls else ()

    def _way(self, location: str) -> list[dict[str, str]]:
        """A location, and those of the calls it was inlined through, the outermost last."""
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
        """Variables declared in the function's own outermost scope, by the line they are declared
        on.
        """
        own = re.search(r"!dbg !(\d+) \{", inside)
        found: dict[int, list[str]] = defaultdict(list)
        for node in self._nodes.values():
            if (
                own
                and node.get("scope") == own[1]
                and "line" in node
                and "arg" not in node
                and self._is_pointer(node)
            ):
                found[int(node["line"])].append(node["name"])
        return found

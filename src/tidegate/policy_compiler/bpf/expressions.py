"""Expressions of a policy's methods → C.

All numbers are s64, None is -1. Operands are evaluated from left to right, as clang does and as
Python does.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from tidegate.policies.interface.memory_view import NEEDS
from tidegate.policy_compiler.bpf.state import literal, share
from tidegate.policy_compiler.bpf.text import bare
from tidegate.policy_compiler.bpf.values import (
    Faulted,
    Maybe,
    Number,
    Part,
    Parts,
    Share,
    Shown,
    Structure,
    Value,
)
from tidegate.policy_compiler.source import CannotCompile, at

if TYPE_CHECKING:
    from tidegate.policy_compiler.bpf.emitter import Emitter

_ARITHMETIC = {
    ast.Add: "({} + {})",
    ast.Sub: "({} - {})",
    ast.Mult: "({} * {})",
    ast.BitAnd: "({} & {})",
    ast.BitOr: "({} | {})",
    ast.BitXor: "({} ^ {})",
    ast.LShift: "({} << ({} & 63))",
    ast.RShift: "({} >> ({} & 63))",
    ast.FloorDiv: "floor_divide({}, {})",
    ast.Mod: "remainder({}, {})",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "==",
    ast.IsNot: "!=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Expressions(ABC):
    """Base of what emits a function: its expressions."""

    def __init__(
        self,
        emitter: Emitter,
        function: FunctionType,
        lifted: dict[str, ast.FunctionDef],
        takes_self: bool = True,
    ):
        self._emitter, self._function, self._lifted = emitter, function, lifted
        self._takes_self = takes_self
        self._names: dict[str, Value] = {}  # local variables: numbers, or what they stand for
        self._declared: dict[str, str] = {}  # local numbers by their names in C
        self._temporaries = 0
        self._depth = 0  # loops around the present statement
        self.result: Value | None = None

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        line = getattr(node, "lineno", 0)
        said = f": {ast.unparse(node)}" if isinstance(node, ast.expr) else ""
        raise CannotCompile(f"{at(self._function, line)}: {why}{said}")

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"_t{self._temporaries}"

    @abstractmethod
    def _call(self, node: ast.Call) -> Value:
        """Return the value of a call."""

    @abstractmethod
    def _called(
        self,
        name: str,
        arguments: list[ast.expr],
        node: ast.expr,
        keywords: list[ast.keyword] | None = None,
    ) -> Value:
        """Call a method of the policy."""

    def _code(self, node: ast.expr) -> str:
        return self._number(self._value(node), node)

    def _number(self, value: Value, node: ast.AST | None) -> str:
        if isinstance(value, Number | Maybe):
            return value.code
        if isinstance(value, Share):
            self._refuse(
                node or ast.Pass(),
                "the kernel has no fractions; int() of a share of a number can be emitted, and its "
                "comparison",
            )
        return self._refuse(node or ast.Pass(), "expected a number")

    def _truth(self, node: ast.expr) -> str:
        match node:
            case ast.BoolOp(operator, values):
                joined = " && " if isinstance(operator, ast.And) else " || "
                return "(" + joined.join(self._truth(v) for v in values) + ")"
            case ast.UnaryOp(ast.Not(), operand):
                return f"!({bare(self._truth(operand))})"
        value = self._value(node)
        if isinstance(value, Maybe):
            self._refuse(node, "None and region 0 are both false; compare with None")
        if isinstance(value, Structure):
            return self._length(value, node)
        return self._number(value, node)

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(None):
                return Maybe("NONE")
            case ast.Constant(bool() | int() as number):
                return Number(literal(int(number)), isinstance(number, bool))
            case ast.Constant(float() as number):
                return self._constant(number, node)
            case ast.Name(name):
                return self._named(name, node)
            case ast.Attribute(owner, name):
                return self._member(owner, name, node)
            case ast.Subscript(owner, index):
                return self._item(self._value(owner), self._code(index), node)
            case ast.BinOp(left, operator, right):
                return self._operation(self._value(left), operator, self._value(right), node)
            case ast.UnaryOp(ast.USub(), operand):
                return Number(f"(-{self._code(operand)})")
            case ast.UnaryOp(ast.UAdd(), operand):
                return Number(self._code(operand))
            case ast.UnaryOp(ast.Invert(), operand):
                return Number(f"(~{self._code(operand)})")
            case ast.UnaryOp(ast.Not(), operand):
                return Number(f"!({bare(self._truth(operand))})", True)
            case ast.BoolOp(operator, values):
                return self._either(operator, values, node)
            case ast.Compare(left, operators, rights):
                return self._comparison(left, operators, rights)
            case ast.IfExp(test, body, orelse):
                return self._conditional(test, body, orelse, node)
            case ast.Call():
                return self._call(node)
            case ast.Yield() | ast.YieldFrom():
                return self._refuse(node, "generators cannot be emitted; use a loop")
        return self._refuse(node, "it cannot be emitted")

    def _named(self, name: str, node: ast.expr) -> Value:
        if name in self._names:
            return self._names[name]
        known = self._function.__globals__.get(name)
        closure = dict(
            zip(self._function.__code__.co_freevars, self._function.__closure__ or (), strict=True)
        )
        known = closure[name].cell_contents if name in closure else known
        return self._constant(known, node)

    def _constant(self, known: Any, node: ast.expr) -> Value:
        if isinstance(known, bool | int):
            return Number(literal(int(known)), isinstance(known, bool))
        if isinstance(known, float):
            try:
                return share(known)
            except ValueError as why:
                return self._refuse(node, str(why))
        return self._refuse(node, "it is no number")

    def _member(self, owner: ast.expr, name: str, node: ast.expr) -> Value:
        if isinstance(owner, ast.Name) and owner.id == "self" and owner.id not in self._names:
            return self._attribute(name, node)
        if isinstance(owner, ast.Name) and owner.id not in self._names:
            space = self._function.__globals__.get(owner.id)  # a module, or an enumeration
            return self._constant(getattr(space, name, None), node)
        value = self._value(owner)
        if isinstance(value, Structure) and is_order(value) and name in ("head", "tail"):
            return Number(f"{value.name}_{name}({value.which})")
        if isinstance(value, Structure) and value.kind == "heap" and name == "lowest":
            return Number(f"{value.name}_lowest()")
        if isinstance(value, Shown):
            return self._shown(value.what, name, node)
        return self._refuse(node, "it cannot be emitted")

    def _shown(self, what: str, name: str, node: ast.expr) -> Value:
        """Return something that the memory shows."""
        emitter = self._emitter
        if what == "geometry" and name == "pages_per_region":
            return Number("PAGES")
        if what == "memory":
            if name in ("geometry", "observed", "resident"):
                return Shown(name)
            numbers = {"frames": emitter.frames, "observable": emitter.observable}
            if name in numbers:
                return Number(str(numbers[name]))
            if name == "regions":
                return Number("REGIONS")
            if name in ("now", "accesses"):
                return Number(f"shown_{name}")
        needs = f", which needs sees = {NEEDS[name]}" if name in NEEDS else ""
        return self._refuse(node, f"no driver shows memory.{name}{needs}")

    def _attribute(self, name: str, node: ast.expr) -> Value:
        emitter = self._emitter
        if name in ("observed", "resident", "memory"):
            return Shown(name)
        member = emitter.member(name)
        if isinstance(member, property):
            return self._called(name, [], node)
        if isinstance(member, bool | int | float) and name not in vars(emitter.policy):
            return self._constant(member, node)
        try:
            return emitter.attributes.find(name)
        except CannotCompile as why:
            return self._refuse(node, str(why))

    def _item(self, owner: Value, index: str, node: ast.expr) -> Value:
        if isinstance(owner, Parts):
            return Part(index)
        if isinstance(owner, Structure) and owner.kind == "orders":
            return Structure("order", owner.name, index, owner.count)
        if isinstance(owner, Structure) and owner.kind in ("column", "list", "heap"):
            return Number(f"{owner.name}_get({index})")
        return self._refuse(node, "it has no items")

    def _operation(
        self, left: Value, operator: ast.operator, right: Value, node: ast.expr
    ) -> Value:
        if isinstance(operator, ast.Mult):
            for part, whole in ((left, right), (right, left)):
                if isinstance(part, Share) and part.of == "1" and isinstance(whole, Number):
                    return Share(part.fraction, whole.code)
        form = _ARITHMETIC.get(type(operator))
        if form is None:
            what = "'/' gives a fraction, which the kernel does not have; use //"
            what = what if isinstance(operator, ast.Div) else "this operator cannot be emitted"
            return self._refuse(node, what)
        return Number(form.format(self._number(left, node), self._number(right, node)))

    def _either(self, operator: ast.boolop, nodes: list[ast.expr], node: ast.expr) -> Value:
        """Return the value of ``and`` or ``or``, which is one of its operands."""
        values = [self._value(n) for n in nodes]
        if all(is_truth(v) for v in values):
            return Number(self._truth(node), True)
        if not all(isinstance(v, Number) for v in values):
            self._refuse(node, "'and' and 'or' of other things than numbers")
        code = self._number(values[-1], node)
        for value in reversed(values[:-1]):
            kept = self._temporary()
            chosen = f"{code} : {kept}" if isinstance(operator, ast.And) else f"{kept} : {code}"
            code = f"({{ s64 {kept} = {self._number(value, node)}; {kept} ? {chosen}; }})"
        return Number(code)

    def _comparison(
        self, left: ast.expr, operators: list[ast.cmpop], rights: list[ast.expr]
    ) -> Value:
        tests, kept = [], ""
        before = self._value(left)
        now: Value
        for number, (operator, node) in enumerate(zip(operators, rights, strict=True)):
            after = self._value(node)
            if isinstance(operator, ast.In | ast.NotIn):
                held = self._has(after, self._number(before, left), node)
                tests.append(f"!{held}" if isinstance(operator, ast.NotIn) else held)
            else:
                if number + 1 < len(rights) and isinstance(after, Number):
                    name = self._temporary()  # a middle operand is evaluated once
                    kept += f"s64 {name} = 0; "
                    now, after = Number(f"({name} = {after.code})"), Number(name)
                else:
                    now = after
                tests.append(self._compare(before, operator, now, node))
            before = after
        code = "(" + " && ".join(tests) + ")"
        return Number(f"({{ {kept}{code}; }})" if kept else code, True)

    def _compare(self, left: Value, operator: ast.cmpop, right: Value, node: ast.expr) -> str:
        sign = _COMPARISONS[type(operator)]
        if isinstance(left, Share) and isinstance(right, Share):
            self._refuse(node, "two fractions cannot be compared in the kernel")
        if isinstance(left, Share):
            left, right, sign = right, left, _MIRRORED[sign]
        if isinstance(right, Share):
            # a whole number is above a fraction if it is above the fraction rounded down
            code = self._number(left, node)
            if sign in ("==", "!="):
                self._refuse(node, "whether a number equals a fraction")
            return f"({code} {sign} {scaled(right, str(int(sign in ('<', '>='))))})"
        return f"({self._number(left, node)} {sign} {self._number(right, node)})"

    def _has(self, owner: Value, region: str, node: ast.expr) -> str:
        match owner:
            case Structure(kind="order", name=name, which=which):
                return f"{name}_has({which}, {region})"
            case Structure(kind="marks" | "heap", name=name):
                return f"{name}_has({region})"
            case Shown(("observed" | "resident") as what):
                return f"(shown_{what}_of({region}) != 0)"
        return self._refuse(node, "'in' of this cannot be emitted")

    def _length(self, owner: Value, node: ast.expr) -> str:
        match owner:
            case Structure(kind="order", name=name, which=which):
                return f"{name}_len({which})"
            case Structure(kind="marks" | "heap", name=name):
                return f"{name}.len"
            case Structure(kind="list" | "orders", count=count):
                return str(count)
            case Faulted(region):
                return f"faulted_len({region})"
            case Shown("resident"):
                return "shown_resident_len"
            case Parts():
                return str(len(self._emitter.parts))
        return self._refuse(node, "the length of this cannot be emitted")

    def _conditional(
        self, test: ast.expr, body: ast.expr, orelse: ast.expr, node: ast.expr
    ) -> Value:
        truth, one, other = self._truth(test), self._value(body), self._value(orelse)
        if isinstance(one, Structure) and isinstance(other, Structure):
            if (one.kind, one.name) != (other.kind, other.name):
                self._refuse(node, "one of two structures; call a method of it in the same line")
            return replace(one, which=f"({truth} ? {one.which} : {other.which})")
        code = f"({truth} ? {self._number(one, body)} : {self._number(other, orelse)})"
        if isinstance(one, Maybe) or isinstance(other, Maybe):
            return Maybe(code)
        return Number(code, is_truth(one) and is_truth(other))


def is_truth(value: Value) -> bool:
    return isinstance(value, Number) and value.truth


def is_order(value: Value) -> bool:
    return isinstance(value, Structure) and value.kind == "order"


def scaled(given: Share, up: str) -> str:
    """Return the code of a share of a number, rounded down, or up."""
    top, bottom = given.fraction.numerator, given.fraction.denominator
    number = given.of if top >= 0 else f"-({given.of})"
    return f"times_fraction({number}, {abs(top)}ULL, {bottom.bit_length() - 1}, {up})"

"""One method of a policy → one function in C: its statements."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace
from typing import Any

from tidegate.policy_compiler.bpf.calls import Calls
from tidegate.policy_compiler.bpf.expressions import is_truth
from tidegate.policy_compiler.bpf.text import bare, c_name, deeper
from tidegate.policy_compiler.bpf.values import (
    Faulted,
    Maybe,
    Number,
    Part,
    Parts,
    Range,
    Share,
    Shown,
    Structure,
    Value,
    Walk,
    parameters,
    renamed,
)
from tidegate.policy_compiler.source import at

_MOST_ARGUMENTS = 5  # that a function of the kernel's machine may have


class FunctionEmitter(Calls):
    """Emits one function; ``result`` is what it returns, once it is emitted."""

    def emit(
        self, definition: ast.FunctionDef, name: str, given: dict[str, Value] | None = None
    ) -> str:
        """Return the text of the function; ``given`` says what arguments stand for that are no
        numbers.
        """
        arguments = [a.arg for a in definition.args.args]
        arguments = [a for a in arguments if a != "self" or not self._takes_self]
        self._names = {a: Number(c_name(a)) for a in arguments} | (given or {})
        taken = [c for a in arguments for c in parameters(self._names[a])]
        if len(taken) > _MOST_ARGUMENTS:
            self._refuse(definition, f"a function may take {_MOST_ARGUMENTS} numbers")
        body = self._block(definition.body)
        declared = [f"s64 {c} = 0;" for c in self._declared.values()]
        ends = isinstance(definition.body[-1], ast.Return)
        lines = [*declared, *body, *([] if ends else ["return 0;"])]
        # a function of its own costs one of the eight frames that the kernel has
        kind = "FUNCTION" if any("LOOP(" in line for line in body) else "INLINE"
        head = f"{kind} s64 {name}({', '.join(f's64 {c}' for c in taken) or 'void'})"
        where = f"/* {at(self._function, definition.lineno)} */"
        text = textwrap.indent("\n".join(lines), "\t")
        return f"{where}\n{head}\n{{\n{text}\n}}\n"

    # Statements

    def _block(self, statements: list[ast.stmt]) -> list[str]:
        return [line for statement in statements for line in self._statement(statement)]

    def _indented(self, statements: list[ast.stmt]) -> list[str]:
        return [f"\t{line}" for line in self._block(statements)]

    def _statement(self, node: ast.stmt) -> list[str]:
        match node:
            case ast.Expr(ast.Constant()) | ast.Pass():
                return []
            case ast.Break():
                return ["break;"]
            case ast.Continue():
                return ["continue;"]
            case ast.Expr(value):
                return [f"{self._code(value)};"]
            case ast.Assert(test):
                return [f"if (!({bare(self._truth(test))}))", f"\treturn fail({node.lineno});"]
            case ast.Raise():
                return [f"return fail({node.lineno});"]
            case ast.Return(value):
                return [f"return {self._returns(value)};"]
            case ast.If(test, body, orelse):
                lines = [f"if ({bare(self._truth(test))}) {{", *self._indented(body), "}"]
                return [*lines, "else {", *self._indented(orelse), "}"] if orelse else lines
            case ast.While(test, body, []):
                return self._while(test, body)
            case ast.For(target, items, body, []):
                return self._for(target, items, body)
            case ast.Assign(targets, value):
                return self._assign(targets, value)
            case ast.AnnAssign(target, _, ast.expr() as value):
                return self._assign([target], value)
            case ast.AugAssign(target, operator, value):
                return self._augment(node, target, operator, value)
        what = "'else' of a loop" if getattr(node, "orelse", []) else type(node).__name__.lower()
        return self._refuse(node, f"{what} cannot be emitted")

    def _returns(self, node: ast.expr | None) -> str:
        value: Value = Maybe("NONE") if node is None else self._value(node)
        kind: Value
        if isinstance(value, Structure) and value.kind == "order":
            code, kind = value.which, replace(value, which="")
        else:
            code = self._number(value, node)
            kind = Maybe("") if isinstance(value, Maybe) else Number("", is_truth(value))
        self.result = kind if self.result is None else self._joined(self.result, kind, node)
        return code

    def _joined(self, one: Value, other: Value, node: ast.AST | None) -> Value:
        """Return the kind of what is now of one kind and now of the other."""
        if one == other:
            return one
        if isinstance(one, Structure) or isinstance(other, Structure):
            self._refuse(node or ast.Pass(), "it returns values of two kinds")
        is_number = isinstance(one, Number) and isinstance(other, Number)
        return Number("") if is_number else Maybe("")

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> list[str]:
        i = self._temporary()
        ends = f"if (!({bare(self._truth(test))}) || {i} >= ROUNDS)"
        self._depth += 1
        lines = [ends, "\tbreak;", *self._block(body)]
        self._depth -= 1
        return ["{", f"\ts64 {i};", f"\tLOOP({i}, ROUNDS + 1) {{", *deeper(lines, 2), "\t}", "}"]

    def _assign(self, targets: list[ast.expr], node: ast.expr) -> list[str]:
        if isinstance(node, ast.Tuple):
            return self._assign_tuple(targets, node)
        value = self._value(node)
        if isinstance(value, Walk | Structure | Share | Part | Faulted | Range | Shown):
            return self._alias(targets, node, value)
        if len(targets) == 1:
            return self._store(targets[0], value, node)
        kept = self._temporary()
        lines = [f"\ts64 {kept} = {self._number(value, node)};"]
        named = renamed(value, kept)
        for target in targets:
            lines += deeper(self._store(target, named, node))
        return ["{", *lines, "}"]

    def _assign_tuple(self, targets: list[ast.expr], node: ast.Tuple) -> list[str]:
        lines = []
        kept: list[Value] = []
        for item in node.elts:
            name, value = self._temporary(), self._value(item)
            lines.append(f"\ts64 {name} = {self._number(value, item)};")
            kept.append(renamed(value, name))
        for target in targets:
            if not isinstance(target, ast.Tuple) or len(target.elts) != len(kept):
                self._refuse(node, "a tuple must be assigned to as many names")
            for one, value in zip(target.elts, kept, strict=True):  # type: ignore[attr-defined]
                lines += deeper(self._store(one, value, node))
        return ["{", *lines, "}"]

    def _alias(self, targets: list[ast.expr], node: ast.expr, value: Value) -> list[str]:
        """Let a local name stand for a structure, an iteration or a share."""
        (target,) = targets if len(targets) == 1 else (None,)
        if not isinstance(target, ast.Name):
            return self._refuse(node, "only numbers can be assigned so")
        if isinstance(value, Share | Structure):
            # what it is made of is evaluated now
            changing = value.of if isinstance(value, Share) else value.which
            kept = self._declare(f"{target.id}_{self._temporary()}")
            value = (
                replace(value, of=kept) if isinstance(value, Share) else replace(value, which=kept)
            )
            self._names[target.id] = value
            return [f"{kept} = {changing};"]
        self._names[target.id] = value
        return []

    def _augment(
        self, node: ast.AugAssign, target: ast.expr, operator: ast.operator, value: ast.expr
    ) -> list[str]:
        lines: list[str] = []
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
            index = self._temporary()  # evaluated once
            lines = [f"s64 {index} = {self._code(target.slice)};"]
            self._names[index] = Number(index)
            target = ast.Subscript(target.value, ast.Name(index, ast.Load()), ast.Store())
        before: Any = ast.parse(ast.unparse(target), mode="eval").body
        result = ast.BinOp(before, operator, value)
        for part in ast.walk(result):
            ast.copy_location(part, node)
        lines += self._store(target, self._value(result), node)
        return ["{", *deeper(lines), "}"] if len(lines) > 1 else lines

    def _store(
        self, target: ast.expr, value: Value, node: ast.AST, is_item: bool = False
    ) -> list[str]:
        """Assign; ``is_item`` says that the number comes from memory or the kernel's iterator."""
        code = self._number(value, node)
        match target:
            case ast.Name(name):
                c = self._declare(name)
                known = self._names.get(name)
                is_maybe = isinstance(value, Maybe) or isinstance(known, Maybe)
                truth = is_truth(value) and (known is None or is_truth(known))
                self._names[name] = Maybe(c) if is_maybe else Number(c, truth)
                kept = f"unknown({bare(code)})" if self._depth and not is_item else code
                return [f"{c} = {kept};"] if c != code else []
            case ast.Attribute(ast.Name("self"), name):
                place = self._attribute(name, target)
                if isinstance(place, Number):
                    return [f"{place.code} = {code};"]
                self._refuse(target, f"self.{name} is made in start() and cannot be replaced")
            case ast.Subscript(owner, index):
                place = self._value(owner)
                if isinstance(place, Structure) and place.kind in ("column", "list", "heap"):
                    if place.fixed:
                        self._refuse(target, "assign to the list by its name on self")
                    return [f"{place.name}_set({self._code(index)}, {code});"]
        return self._refuse(target, "it cannot be assigned")

    def _declare(self, name: str) -> str:
        known = self._names.get(name)
        if isinstance(known, Number | Maybe) and name not in self._declared:
            return known.code  # an argument
        if name not in self._declared:
            self._declared[name] = c_name(name)
        return self._declared[name]

    # Loops

    def _for(self, target: ast.expr, node: ast.expr, body: list[ast.stmt]) -> list[str]:
        walk = self._walk(node)
        if isinstance(walk.over, Parts):
            return self._for_parts(target, body)

        def each(item: str, number: str) -> list[str]:
            names, given = target, []
            if walk.counted:
                if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                    self._refuse(node, "enumerate gives two names")
                count, names = target.elts  # type: ignore[attr-defined]
                given = self._store(count, Number(number), node, is_item=True)
            given += self._store(names, Number(item), node, is_item=True)
            self._depth += 1
            lines = self._block(body)
            self._depth -= 1
            return [*given, *lines]

        return ["{", *deeper(self._loop(walk, each)), "}"]

    def _for_parts(self, target: ast.expr, body: list[ast.stmt]) -> list[str]:
        """Repeat the body for each part."""
        if not isinstance(target, ast.Name):
            return self._refuse(target, "a loop over parts takes one name")
        for statement in body:
            for inner in ast.walk(statement):
                if isinstance(inner, ast.Break | ast.Continue):
                    self._refuse(inner, "break and continue in a loop over parts")
        lines: list[str] = []
        for number in range(len(self._emitter.parts)):
            self._names[target.id] = Part(str(number), number)
            lines += self._block(body)
        return lines

"""Calls in a policy's methods → C: of its methods, its structures, its parts and its memory."""

from __future__ import annotations

import ast
import functools
from dataclasses import replace
from types import FunctionType
from typing import Any

from tidegate.policies.interface import memory_view as view
from tidegate.policies.interface.events import ADVICE, NO_TREE
from tidegate.policy_compiler.bpf.expressions import is_truth, scaled
from tidegate.policy_compiler.bpf.loops import Loops
from tidegate.policy_compiler.bpf.text import bare, c_name
from tidegate.policy_compiler.bpf.values import (
    Faulted,
    Maybe,
    Number,
    Part,
    Share,
    Shown,
    Structure,
    Value,
    parameters,
    renamed,
)
from tidegate.policy_compiler.source import function_of

_METHODS = {
    "order": ("move_to_tail", "move_to_head", "remove"),
    "marks": ("add", "discard", "remove", "clear"),
    "heap": ("remove",),
    "draws": ("below",),
}
_MOST_ARGUMENTS = 5  # that a function of the kernel's machine may have


class Calls(Loops):
    """Adds calls."""

    def _call(self, node: ast.Call) -> Value:
        match node.func:
            case ast.Name(name) if name in self._lifted:
                return self._lifted_call(name, node)
            case ast.Name("first"):
                return self._first(node)
            case ast.Name(("islice" | "reversed" | "enumerate" | "range") as name):
                return self._iterable(name, node.args)
            case ast.Name("bisect_right"):
                values, number = node.args
                found = self._value(values)
                if isinstance(found, Structure) and found.kind == "list":
                    return Number(f"{found.name}_bisect_right({self._code(number)})")
            case ast.Name(name) if not isinstance(
                self._function.__globals__.get(name), FunctionType
            ):
                return self._built_in(name, node)
            case ast.Name(name):
                return self._helper(self._function.__globals__[name], node)
            case ast.Attribute(ast.Name("self"), name):
                return self._called(name, node.args, node, node.keywords)
            case ast.Attribute(ast.IfExp(test, body, orelse), name):
                return self._either_call(test, [body, orelse], name, node)
            case ast.Attribute(owner, name):
                return self._method(self._value(owner), name, node)
        return self._refuse(node, "this call cannot be emitted")

    def _either_call(
        self, test: ast.expr, owners: list[ast.expr], name: str, node: ast.Call
    ) -> Value:
        """Call a method of one of two structures."""
        calls: list[ast.expr] = [
            ast.Call(ast.Attribute(owner, name, ast.Load()), node.args, node.keywords)
            for owner in owners
        ]
        chosen = ast.IfExp(test, *calls)
        for part in (chosen, *calls):
            ast.copy_location(part, node)
        return self._value(chosen)

    def _built_in(self, name: str, node: ast.Call) -> Value:
        if name == "sorted":
            self._refuse(node, "a loop over all regions is too long under a driver's lock")
        values = [self._value(a) for a in node.args]
        if name == "len" and len(values) == 1:
            return Number(self._length(values[0], node))
        if name in ("min", "max") and len(values) > 1:
            codes = [self._number(v, node) for v in values]
            form = "smaller({}, {})" if name == "min" else "larger({}, {})"
            return Number(functools.reduce(form.format, codes))
        if name == "int" and len(values) == 1:
            if isinstance(values[0], Share):
                kept = self._temporary()
                cut = scaled(replace(values[0], of=kept), f"{kept} < 0")
                return Number(f"({{ s64 {kept} = {values[0].of}; {cut}; }})")
            return Number(self._number(values[0], node))
        if name == "bool" and len(values) == 1:
            return Number(f"(({self._truth(node.args[0])}) != 0)", True)
        if name == "abs" and len(values) == 1:
            return Number(f"absolute({self._number(values[0], node)})")
        return self._refuse(node, f"{name}() cannot be emitted")

    def _first(self, node: ast.Call) -> Value:
        """Return the first region of an iteration that is not in what ``unless`` names."""
        (items, *others) = node.args
        unless = self._value(others[0] if others else node.keywords[0].value)
        found, walk = self._temporary(), self._walk(items)

        def each(item: str, number: str) -> list[str]:
            held = self._has(unless, item, node)
            return [f"if (!({bare(held)})) {{", f"\t{found} = {item};", "\tbreak;", "}"]

        text = " ".join(line.strip() for line in self._loop(walk, each))
        return Maybe(f"({{ s64 {found} = NONE; {text} {found}; }})")

    def _lifted_call(self, name: str, node: ast.Call) -> Value:
        """Call the function that a generator expression became."""
        names = [a.arg for a in self._lifted[name].args.args]
        values = {
            parameter: self._value(argument)
            for argument, parameter in zip(node.args, names, strict=True)
            if parameter != "self"
        }
        kinds = {n: renamed(v, c_name(n)) for n, v in values.items()}
        c, result = self._emitter.lifted(self._function, self._lifted, name, kinds)
        code = f"{c}({', '.join(code for v in values.values() for code in parameters(v))})"
        is_maybe = isinstance(result, Maybe) or any(isinstance(v, Maybe) for v in values.values())
        return Maybe(code) if is_maybe else Number(code, is_truth(result))

    def _helper(self, function: FunctionType, node: ast.Call) -> Value:
        c, result, names = self._emitter.helper(function)
        code = f"{c}({', '.join(self._bound(names, function, node.args, node.keywords, node))})"
        return _named_result(result, code)

    def _called(
        self,
        name: str,
        arguments: list[ast.expr],
        node: ast.expr,
        keywords: list[ast.keyword] | None = None,
    ) -> Value:
        """Call a method of the policy."""
        c, result, names = self._emitter.method(name, lambda why: self._refuse(node, why))
        function = function_of(self._emitter.member(name))
        given = self._bound(names, function, arguments, keywords or [], node)
        return _named_result(result, f"{c}({', '.join(given)})")

    def _bound(
        self,
        names: list[str],
        function: Any,
        arguments: list[ast.expr],
        keywords: list[ast.keyword],
        node: ast.expr,
    ) -> list[str]:
        """Return the arguments of a call, by position, name or default."""
        given = dict(zip(names, (self._code(a) for a in arguments), strict=False))
        given |= {str(k.arg): self._code(k.value) for k in keywords}
        defaults = function.__defaults__ or ()
        for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            if name not in given:
                given[name] = self._number(self._default(default, node), node)
        if set(given) != set(names):
            self._refuse(node, "its arguments do not fit")
        return [given[name] for name in names]

    def _default(self, default: Any, node: ast.expr) -> Value:
        return Maybe("NONE") if default is None else self._constant(default, node)

    def _method(self, owner: Value, name: str, node: ast.Call) -> Value:
        """Call a method of a structure, of the memory or of a part."""
        if isinstance(owner, Structure) and name in _METHODS.get(owner.kind, ()):
            first = [owner.which] if owner.kind == "order" else []
            given = [*first, *(self._code(a) for a in node.args)]
            return Number(f"{owner.name}_{name}({', '.join(given)})")
        if isinstance(owner, Part):
            return self._part_call(owner, name, node)
        if isinstance(owner, Shown) and owner.what == "memory":
            return self._memory_call(name, node)
        return self._refuse(node, "this call cannot be emitted")

    def _part_call(self, part: Part, name: str, node: ast.Call) -> Value:
        c, result = self._emitter.part_method(part, name, lambda why: self._refuse(node, why))
        number = [] if part.known >= 0 else [part.number]
        return _named_result(
            result, f"{c}({', '.join([*number, *(self._code(a) for a in node.args)])})"
        )

    def _memory_call(self, name: str, node: ast.Call) -> Value:
        if name in view.VERBS:
            return self._verb(name, node)
        if name in ("is_served", "is_resident", "last_touch", "touch_count"):
            what = name.removeprefix("is_")
            code = f"shown_{what}_of({self._code(node.args[0])})"
            return Number(f"({code} != 0)" if what != name else code, what != name)
        if name == "faulted":
            if self._emitter.pages > 64:
                self._refuse(node, "faulted pages are kept as 64 bits; a region has more pages")
            return Faulted(self._code(node.args[0]))
        if name == "next_touch":
            self._refuse(node, "memory.next_touch is the future, which no driver knows")
        needs = f", which needs sees = {view.NEEDS[name]}" if name in view.NEEDS else ""
        return self._refuse(node, f"no driver shows memory.{name}(){needs}")

    def _verb(self, name: str, node: ast.Call) -> Value:
        """Leave a request; its arguments are checked as the memory view checks them."""
        request, takes = view.VERBS[name]
        advice = "0"
        numbers = list(node.args)
        if takes == view.ADVICE_OF_PAGES:
            last = numbers.pop()
            if not isinstance(last, ast.Constant) or last.value not in ADVICE:
                self._refuse(node, f"advice must be written out: one of {list(ADVICE)}")
            advice = str(ADVICE[last.value])  # type: ignore[attr-defined]
        codes = [self._code(a) for a in numbers]
        if takes in (view.PAGES, view.ADVICE_OF_PAGES):
            pages = codes[1] if len(codes) > 1 else "1"
            return Number(f"ask_pages({request}, {codes[0]}, {pages}, {advice})")
        if takes in (view.RESIDENT, view.REGION):
            return Number(f"ask_region({request}, {codes[0]}, {int(takes == view.RESIDENT)})")
        if takes == view.COUNT:
            given = ", ".join([*codes, "0", "0"][:3])
            return Number(f"ask_count({request}, {given})")
        return Number(f"ask_percent({request}, {codes[0]}, {NO_TREE})")


def _named_result(result: Value, code: str) -> Value:
    """Return what a call gives: its function's result, with the code of the call."""
    if isinstance(result, Structure):
        return replace(result, which=code)
    return replace(result, code=code) if isinstance(result, Maybe | Number) else Number(code)

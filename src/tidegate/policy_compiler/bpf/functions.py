"""One method of a policy → one function in C.

All numbers are s64, None is -1. Arguments and operands are evaluated from left to right, as clang
does and as Python does. Loops are the kernel's iterators and see at most ROUNDS items.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.resources import files
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tidegate.policies.interface.events import ADVICE
from tidegate.policies.interface.memory_view import NEEDS
from tidegate.policy_compiler.bpf.state import literal, share
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
from tidegate.policy_compiler.source import CannotCompile, at, function_of

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
_METHODS = {
    "order": ("move_to_tail", "move_to_head", "remove"),
    "marks": ("add", "discard", "remove", "clear"),
    "heap": ("remove",),
    "draws": ("below",),
}
_MOST_ARGUMENTS = 5  # that a function of the kernel's machine may have


@functools.cache
def _taken() -> frozenset[str]:
    """Return the names that the header defines, and C's own words."""
    header = (files("tidegate.policy_compiler.bpf") / "policy.h").read_text("utf-8")
    named = re.findall(r"\w+(?=\()|(?<=#define )\w+|\w+(?=;)|shown_\w+", header)
    words = (
        "auto break case char const continue default do double else enum extern float for goto if "
        "inline int long register restrict return short signed sizeof static struct switch "
        "typedef typeof union unsigned void volatile while asm requests request_n failed"
    )
    return frozenset(named) | set(words.split())


@dataclass(frozen=True)
class _Steps:
    """How an iteration goes on: what comes before it, when it ends, its present item, and the step
    to the next one.
    """

    before: list[str]
    ends: list[str]
    item: str
    onward: list[str] = field(default_factory=list)
    rounds: str = "ROUNDS + 1"
    counts: bool = False  # a round may take no item


class FunctionEmitter:
    """Emits one function; ``result`` is what it returns, once it is emitted."""

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

    def emit(
        self, definition: ast.FunctionDef, name: str, given: dict[str, Value] | None = None
    ) -> str:
        """Return the text of the function; ``given`` says what arguments stand for that are no
        numbers.
        """
        arguments = [a.arg for a in definition.args.args]
        arguments = [a for a in arguments if a != "self" or not self._takes_self]
        self._names = {a: Number(_c_name(a)) for a in arguments} | (given or {})
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

    def _refuse(self, node: ast.AST, why: str) -> Any:
        line = getattr(node, "lineno", 0)
        said = f": {ast.unparse(node)}" if isinstance(node, ast.expr) else ""
        raise CannotCompile(f"{at(self._function, line)}: {why}{said}")

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"_t{self._temporaries}"

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
                return [f"if (!({_bare(self._truth(test))}))", f"\treturn fail({node.lineno});"]
            case ast.Raise():
                return [f"return fail({node.lineno});"]
            case ast.Return(value):
                return [f"return {self._returns(value)};"]
            case ast.If(test, body, orelse):
                lines = [f"if ({_bare(self._truth(test))}) {{", *self._indented(body), "}"]
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
        return self._refuse(node, f"{what} cannot be emitted")  # type: ignore[no-any-return]

    def _returns(self, node: ast.expr | None) -> str:
        value: Value = Maybe("NONE") if node is None else self._value(node)
        if isinstance(value, Structure) and value.kind == "order":
            code, kind = value.which, replace(value, which="")
        else:
            code = self._number(value, node)
            kind = Maybe("") if isinstance(value, Maybe) else Number("", _is_truth(value))
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
        ends = f"if (!({_bare(self._truth(test))}) || {i} >= ROUNDS)"
        self._depth += 1
        lines = [ends, "\tbreak;", *self._block(body)]
        self._depth -= 1
        return ["{", f"\ts64 {i};", f"\tLOOP({i}, ROUNDS + 1) {{", *_deeper(lines, 2), "\t}", "}"]

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
        named = replace(value, code=kept) if isinstance(value, Number | Maybe) else Number(kept)
        for target in targets:
            lines += _deeper(self._store(target, named, node))
        return ["{", *lines, "}"]

    def _assign_tuple(self, targets: list[ast.expr], node: ast.Tuple) -> list[str]:
        lines = []
        kept: list[Value] = []
        for item in node.elts:
            name, value = self._temporary(), self._value(item)
            lines.append(f"\ts64 {name} = {self._number(value, item)};")
            is_named = isinstance(value, Number | Maybe)
            kept.append(replace(value, code=name) if is_named else Number(name))  # type: ignore[call-arg]
        for target in targets:
            if not isinstance(target, ast.Tuple) or len(target.elts) != len(kept):
                self._refuse(node, "a tuple must be assigned to as many names")
            for one, value in zip(target.elts, kept, strict=True):  # type: ignore[attr-defined]
                lines += _deeper(self._store(one, value, node))
        return ["{", *lines, "}"]

    def _alias(self, targets: list[ast.expr], node: ast.expr, value: Value) -> list[str]:
        """Let a local name stand for a structure, an iteration or a share."""
        (target,) = targets if len(targets) == 1 else (None,)
        if not isinstance(target, ast.Name):
            return self._refuse(node, "only numbers can be assigned so")  # type: ignore[no-any-return]
        if isinstance(value, Share | Structure):
            # what it is made of is evaluated now
            changing = value.of if isinstance(value, Share) else value.which
            kept = self._declare(f"{target.id}_{self._temporary()}")
            value = (
                replace(value, of=kept)
                if isinstance(value, Share)
                else replace(value, which=kept)
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
        return ["{", *_deeper(lines), "}"] if len(lines) > 1 else lines

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
                truth = _is_truth(value) and (known is None or _is_truth(known))
                self._names[name] = Maybe(c) if is_maybe else Number(c, truth)
                kept = f"unknown({_bare(code)})" if self._depth and not is_item else code
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
        return self._refuse(target, "it cannot be assigned")  # type: ignore[no-any-return]

    def _declare(self, name: str) -> str:
        known = self._names.get(name)
        if isinstance(known, Number | Maybe) and name not in self._declared:
            return known.code  # an argument
        if name not in self._declared:
            self._declared[name] = _c_name(name)
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

        return ["{", *_deeper(self._loop(walk, each)), "}"]

    def _loop(self, walk: Walk, each: Callable[[str, str], list[str]]) -> list[str]:
        """Return a loop that does ``each`` for an item and its number."""
        steps = self._steps(walk, i := self._temporary())
        # The number of the item: from the kernel's iterator where each round takes one, or the
        # verifier would follow every value of a count.
        taken = self._temporary() if steps.counts else i
        item = self._temporary()
        skip, stop = (
            self._temporary() if walk.skip != "0" else "",
            self._temporary() if walk.stop else "",
        )
        kept = [f"s64 {c} = {of};" for c, of in ((skip, walk.skip), (stop, walk.stop)) if c]
        most = f"{taken} >= ROUNDS" + (f" || {taken} >= {stop}" if stop else "")
        lines = [
            *steps.ends,
            f"if ({most})",
            "\tbreak;",
            f"s64 {item} = {steps.item};",
            *steps.onward,
        ]
        number = taken
        if steps.counts:
            number = self._temporary()
            lines += [f"s64 {number} = {taken};", f"{taken} = unknown({taken} + 1);"]
        if skip:
            lines += [f"if ({number} < {skip})", "\tcontinue;"]
        lines += each(item, f"({number} - {skip})" if skip else number)
        counter = f"s64 {i}, {taken} = 0;" if steps.counts else f"s64 {i};"
        head = [*kept, *steps.before, counter, f"LOOP({i}, {steps.rounds}) {{"]
        return [*head, *_deeper(lines), "}"]

    def _steps(self, walk: Walk, i: str) -> _Steps:
        """Return how an iteration goes on; ``i`` is the number of the round."""
        one, other = self._temporary(), self._temporary()
        match walk.over:
            case Structure(name=name, which=which, count=count):
                end, link = ("tail", "prev") if walk.backwards else ("head", "next")
                return _Steps(
                    [f"u64 {one} = entry({name}.{end}[index_of({which}, {count})]);"],
                    [f"if (!{one})", "\tbreak;"],
                    f"(s64){one} - 1",
                    [f"{one} = entry({name}.{link}[{one}]);"],
                )
            case Range(first, stop):
                return _Steps(
                    [f"s64 {one} = {first}, {other} = {stop};"],
                    [f"if ({i} >= {other} - {one})", "\tbreak;"],
                    f"{other} - 1 - {i}" if walk.backwards else f"{one} + {i}",
                )
            case Faulted(region):
                page = f"(63 - {i})" if walk.backwards else i
                return _Steps(
                    [f"u64 {one} = shown_faulted_of({region});"],
                    [f"if (!({one} >> ({page} & 63) & 1))", "\tcontinue;"],
                    page,
                    rounds="64",
                    counts=True,
                )
        raise AssertionError(walk)

    def _for_parts(self, target: ast.expr, body: list[ast.stmt]) -> list[str]:
        """Repeat the body for each part."""
        if not isinstance(target, ast.Name):
            return self._refuse(target, "a loop over parts takes one name")  # type: ignore[no-any-return]
        for statement in body:
            for inner in ast.walk(statement):
                if isinstance(inner, ast.Break | ast.Continue):
                    self._refuse(inner, "break and continue in a loop over parts")
        lines: list[str] = []
        for number in range(len(self._emitter.parts)):
            self._names[target.id] = Part(str(number), number)
            lines += self._block(body)
        return lines

    def _walk(self, node: ast.expr) -> Walk:
        """Return the iteration that an expression stands for."""
        value = self._value(node)
        if isinstance(value, Walk):
            return value
        if isinstance(value, Faulted | Range | Parts) or _is_order(value):
            return Walk(value)
        if isinstance(value, Shown) and value.what == "resident":
            return self._refuse(node, "a loop over all regions is too long for a driver")  # type: ignore[no-any-return]
        return self._refuse(node, "a loop over this cannot be emitted")  # type: ignore[no-any-return]

    def _iterable(self, name: str, arguments: list[ast.expr]) -> Value:
        """Return the iteration of ``reversed``, ``islice``, ``enumerate`` or ``range``."""
        if name == "range":
            if len(arguments) > 2:
                self._refuse(arguments[2], "range with a step")
            bounds = [self._code(a) for a in arguments]
            return Range(*bounds) if len(bounds) == 2 else Range("0", *bounds)
        walk = self._walk(arguments[0])
        if name == "reversed":
            return replace(walk, backwards=not walk.backwards)
        if name == "enumerate":
            return replace(walk, counted=True)
        begin, end = (None, arguments[1]) if len(arguments) == 2 else arguments[1:3]
        none = [c is None or (isinstance(c, ast.Constant) and c.value is None) for c in (begin, end)]
        if walk.stop or walk.skip != "0":
            self._refuse(arguments[0], "islice of islice")
        return replace(
            walk,
            skip="0" if none[0] else self._code(begin),  # type: ignore[arg-type]
            stop="" if none[1] else self._code(end),  # type: ignore[arg-type]
        )

    # Expressions

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
        return self._refuse(node or ast.Pass(), "expected a number")  # type: ignore[no-any-return]

    def _truth(self, node: ast.expr) -> str:
        match node:
            case ast.BoolOp(operator, values):
                joined = " && " if isinstance(operator, ast.And) else " || "
                return "(" + joined.join(self._truth(v) for v in values) + ")"
            case ast.UnaryOp(ast.Not(), operand):
                return f"!({_bare(self._truth(operand))})"
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
                return Number(f"!({_bare(self._truth(operand))})", True)
            case ast.BoolOp(operator, values):
                return self._either(operator, values, node)
            case ast.Compare(left, operators, rights):
                return self._comparison(left, operators, rights)
            case ast.IfExp(test, body, orelse):
                return self._conditional(test, body, orelse, node)
            case ast.Call():
                return self._call(node)
            case ast.Yield() | ast.YieldFrom():
                return self._refuse(node, "generators cannot be emitted; use a loop")  # type: ignore[no-any-return]
        return self._refuse(node, "it cannot be emitted")  # type: ignore[no-any-return]

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
                return self._refuse(node, str(why))  # type: ignore[no-any-return]
        return self._refuse(node, "it is no number")  # type: ignore[no-any-return]

    def _member(self, owner: ast.expr, name: str, node: ast.expr) -> Value:
        if isinstance(owner, ast.Name) and owner.id == "self" and owner.id not in self._names:
            return self._attribute(name, node)
        if isinstance(owner, ast.Name) and owner.id not in self._names:
            space = self._function.__globals__.get(owner.id)  # a module, or an enumeration
            return self._constant(getattr(space, name, None), node)
        value = self._value(owner)
        if isinstance(value, Structure) and _is_order(value) and name in ("head", "tail"):
            return Number(f"{value.name}_{name}({value.which})")
        if isinstance(value, Structure) and value.kind == "heap" and name == "lowest":
            return Number(f"{value.name}_lowest()")
        if isinstance(value, Shown):
            return self._shown(value.what, name, node)
        return self._refuse(node, "it cannot be emitted")  # type: ignore[no-any-return]

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
        return self._refuse(node, f"no driver shows memory.{name}{needs}")  # type: ignore[no-any-return]

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
            return self._refuse(node, str(why))  # type: ignore[no-any-return]

    def _item(self, owner: Value, index: str, node: ast.expr) -> Value:
        if isinstance(owner, Parts):
            return Part(index)
        if isinstance(owner, Structure) and owner.kind == "orders":
            return Structure("order", owner.name, index, owner.count)
        if isinstance(owner, Structure) and owner.kind in ("column", "list", "heap"):
            return Number(f"{owner.name}_get({index})")
        return self._refuse(node, "it has no items")  # type: ignore[no-any-return]

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
            return self._refuse(node, what)  # type: ignore[no-any-return]
        return Number(form.format(self._number(left, node), self._number(right, node)))

    def _either(self, operator: ast.boolop, nodes: list[ast.expr], node: ast.expr) -> Value:
        """Return the value of ``and`` or ``or``, which is one of its operands."""
        values = [self._value(n) for n in nodes]
        if all(_is_truth(v) for v in values):
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
        for number, (operator, node) in enumerate(zip(operators, rights, strict=True)):
            after = self._value(node)
            if isinstance(operator, ast.In | ast.NotIn):
                held = self._has(after, self._number(before, left), node)
                tests.append(f"!{held}" if isinstance(operator, ast.NotIn) else held)
            else:
                if number + 1 < len(rights) and isinstance(after, Number):
                    name = self._temporary()  # a middle operand is evaluated once
                    kept += f"s64 {name} = 0; "
                    tests.append(self._compare(before, operator, Number(f"({name} = {after.code})"), node))
                    before = Number(name)
                    continue
                tests.append(self._compare(before, operator, after, node))
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
            return f"({code} {sign} {_scaled(right, str(int(sign in ('<', '>='))))})"
        return f"({self._number(left, node)} {sign} {self._number(right, node)})"

    def _has(self, owner: Value, region: str, node: ast.expr) -> str:
        match owner:
            case Structure(kind="order", name=name, which=which):
                return f"{name}_has({which}, {region})"
            case Structure(kind="marks" | "heap", name=name):
                return f"{name}_has({region})"
            case Shown(("observed" | "resident") as what):
                return f"(shown_{what}_of({region}) != 0)"
        return self._refuse(node, "'in' of this cannot be emitted")  # type: ignore[no-any-return]

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
        return self._refuse(node, "the length of this cannot be emitted")  # type: ignore[no-any-return]

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
        return Number(code, _is_truth(one) and _is_truth(other))

    # Calls

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
                calls = [
                    ast.copy_location(
                        ast.Call(ast.Attribute(of, name, ast.Load()), node.args, node.keywords), node
                    )
                    for of in (body, orelse)
                ]
                return self._value(ast.copy_location(ast.IfExp(test, *calls), node))
            case ast.Attribute(owner, name):
                return self._method(self._value(owner), name, node)
        return self._refuse(node, "this call cannot be emitted")  # type: ignore[no-any-return]

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
                cut = _scaled(replace(values[0], of=kept), f"{kept} < 0")
                return Number(f"({{ s64 {kept} = {values[0].of}; {cut}; }})")
            return Number(self._number(values[0], node))
        if name == "bool" and len(values) == 1:
            return Number(f"(({self._truth(node.args[0])}) != 0)", True)
        if name == "abs" and len(values) == 1:
            return Number(f"absolute({self._number(values[0], node)})")
        return self._refuse(node, f"{name}() cannot be emitted")  # type: ignore[no-any-return]

    def _first(self, node: ast.Call) -> Value:
        """Return the first region of an iteration that is not in what ``unless`` names."""
        (items, *others) = node.args
        unless = self._value(others[0] if others else node.keywords[0].value)
        found, walk = self._temporary(), self._walk(items)

        def each(item: str, number: str) -> list[str]:
            held = self._has(unless, item, node)
            return [f"if (!({_bare(held)})) {{", f"\t{found} = {item};", "\tbreak;", "}"]

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
        kinds = {n: renamed(v, _c_name(n)) for n, v in values.items()}
        c, result = self._emitter.lifted(self._function, self._lifted, name, kinds)
        code = f"{c}({', '.join(code for v in values.values() for code in parameters(v))})"
        is_maybe = isinstance(result, Maybe) or any(isinstance(v, Maybe) for v in values.values())
        return Maybe(code) if is_maybe else Number(code, _is_truth(result))

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
        return self._refuse(node, "this call cannot be emitted")  # type: ignore[no-any-return]

    def _part_call(self, part: Part, name: str, node: ast.Call) -> Value:
        c, result = self._emitter.part_method(part, name, lambda why: self._refuse(node, why))
        number = [] if part.known >= 0 else [part.number]
        return _named_result(
            result, f"{c}({', '.join([*number, *(self._code(a) for a in node.args)])})"
        )

    def _memory_call(self, name: str, node: ast.Call) -> Value:
        from tidegate.policies.interface.memory_view import VERBS

        if name in VERBS:
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
        needs = f", which needs sees = {NEEDS[name]}" if name in NEEDS else ""
        return self._refuse(node, f"no driver shows memory.{name}(){needs}")  # type: ignore[no-any-return]

    def _verb(self, name: str, node: ast.Call) -> Value:
        """Leave a request; its arguments are checked as the memory view checks them."""
        from tidegate.policies.interface import memory_view as view

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
        most = view.MOST_ACCESSES if takes == view.COUNT else view.NO_TREE
        more = codes[1] if len(codes) > 1 else "0"
        return Number(f"ask_number({request}, {codes[0]}, {most}, {more})")


def _c_name(name: str) -> str:
    return f"{name}_" if name in _taken() else name


def _bare(code: str) -> str:
    """Return code without brackets around all of it."""
    while code.startswith("(") and not code.startswith("({") and _closes(code) == len(code) - 1:
        code = code[1:-1]
    return code


def _closes(code: str) -> int:
    """Return where the bracket closes that the code begins with."""
    depth = 0
    for place, letter in enumerate(code):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return place
    return -1


def _deeper(lines: list[str], by: int = 1) -> list[str]:
    return ["\t" * by + line for line in lines]


def _is_truth(value: Value) -> bool:
    return isinstance(value, Number) and value.truth


def _is_order(value: Value) -> bool:
    return isinstance(value, Structure) and value.kind == "order"


def _named_result(result: Value, code: str) -> Value:
    """Return what a call gives: its function's result, with the code of the call."""
    if isinstance(result, Structure):
        return replace(result, which=code)
    return replace(result, code=code) if isinstance(result, Maybe | Number) else Number(code)


def _scaled(given: Share, up: str) -> str:
    """Return the code of a share of a number, rounded down, or up."""
    top, bottom = given.fraction.numerator, given.fraction.denominator
    number = given.of if top >= 0 else f"-({given.of})"
    return f"times_fraction({number}, {abs(top)}ULL, {bottom.bit_length() - 1}, {up})"

"""Loops of a policy's methods → loops of the kernel's iterators, which see at most ROUNDS items."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tidegate.policy_compiler.bpf.expressions import Expressions, is_order
from tidegate.policy_compiler.bpf.text import deeper
from tidegate.policy_compiler.bpf.values import Faulted, Parts, Range, Shown, Structure, Value, Walk


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


class Loops(Expressions):
    """Adds iterations over orders, ranges and faulted pages."""

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
        return [*head, *deeper(lines), "}"]

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

    def _walk(self, node: ast.expr) -> Walk:
        """Return the iteration that an expression stands for."""
        value = self._value(node)
        if isinstance(value, Walk):
            return value
        if isinstance(value, Faulted | Range | Parts) or is_order(value):
            return Walk(value)
        if isinstance(value, Shown) and value.what == "resident":
            return self._refuse(node, "a loop over all regions is too long for a driver")
        return self._refuse(node, "a loop over this cannot be emitted")

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
        none = [
            c is None or (isinstance(c, ast.Constant) and c.value is None) for c in (begin, end)
        ]
        if walk.stop or walk.skip != "0":
            self._refuse(arguments[0], "islice of islice")
        return replace(
            walk,
            skip="0" if none[0] else self._code(begin),  # type: ignore[arg-type]
            stop="" if none[1] else self._code(end),  # type: ignore[arg-type]
        )

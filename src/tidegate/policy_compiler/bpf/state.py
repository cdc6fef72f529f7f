"""Attributes of a policy, as start() left them → declarations in C."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from tidegate.policies.structures.column import Column
from tidegate.policies.structures.draws import Draws
from tidegate.policy_compiler.bpf.values import Number, Part, Parts, Share, Structure, Value
from tidegate.policy_compiler.layout import Layout
from tidegate.policy_compiler.source import CannotCompile

MOST_ORDERS = 256
MOST_WORDS = 1 << 20  # of a list
MOST_SHARE = 1 << 53  # below it a fraction's numerator has 53 bits


class Attributes:
    """The attributes of one policy that its methods use; ``lines`` declare them.

    Attributes that no method assigns are constants.
    """

    def __init__(self, policy: Any, prefix: str, assigned: frozenset[str]):
        self._policy, self._prefix, self._assigned = policy, prefix, assigned
        layout = Layout(policy)
        self._kinds = {place.attribute: place.kind.name for place in layout.places}
        self._refused = layout.refused
        self._found: dict[str, Value] = {}
        self.lines: list[str] = []

    def find(self, name: str) -> Value:
        """Return an attribute; raise CannotCompile if the kernel cannot keep it."""
        if name not in self._found:
            if name in self._refused:
                raise CannotCompile(f"self.{name} {self._refused[name]}")
            if name not in self._kinds:
                raise CannotCompile(f"self.{name} is not set when start() returns")
            kind, value = self._kinds[name], vars(self._policy)[name]
            self._found[name] = self._declared(name, kind, value)
        return self._found[name]

    def _declared(self, name: str, kind: str, value: Any) -> Value:
        c = f"{self._prefix}{name.lstrip('_')}"
        if kind.startswith("part "):
            return Part(kind.removeprefix("part "), int(kind.removeprefix("part ")))
        if kind == "parts":
            return Parts()
        if kind in ("bool", "int"):
            return self._number(c, name, int(value), kind == "bool")
        if kind == "float":
            return self._share(name, value)
        if kind.startswith("float"):
            raise CannotCompile(
                f"self.{name} is a {kind}, and the kernel has no fractions; keep whole numbers, "
                "such as thousandths"
            )
        return getattr(self, f"_{kind}")(c, name, value)  # type: ignore[no-any-return]

    def _number(self, c: str, name: str, value: int, truth: bool) -> Number:
        if name not in self._assigned:
            return Number(literal(value), truth)
        self.lines.append(f"s64 {c} = {literal(value)};")
        return Number(c, truth)

    def _share(self, name: str, value: float) -> Share:
        if name in self._assigned:
            raise CannotCompile(
                f"self.{name} is a fraction that changes, and the kernel has no fractions; keep "
                "whole numbers, such as thousandths"
            )
        try:
            return share(value)
        except ValueError as why:
            raise CannotCompile(f"self.{name}: {why}") from None

    def _order(self, c: str, name: str, value: Any) -> Structure:
        return self._orders(c, name, [value])

    def _orders(self, c: str, name: str, value: Any) -> Structure:
        if len(value) > MOST_ORDERS:
            raise CannotCompile(f"self.{name} has {len(value)} orders; emitted are {MOST_ORDERS}")
        self._check_empty(name, any(value))
        self.lines.append(f"ORDERS({c}, {len(value)})")
        kind = "orders" if self._kinds[name] == "orders" else "order"
        return Structure(kind, c, count=len(value))

    def _marks(self, c: str, name: str, value: Any) -> Structure:
        self._check_empty(name, value)
        self.lines.append(f"MARKS({c})")
        return Structure("marks", c)

    def _heap(self, c: str, name: str, value: Any) -> Structure:
        self._check_empty(name, value)
        self.lines.append(f"HEAP({c})")
        return Structure("heap", c)

    def _column(self, c: str, name: str, value: Column[int]) -> Structure:
        self._check_empty(name, dict(value.items()))
        self.lines.append(f"COLUMN({c}, {literal(value.default)})")
        return Structure("column", c)

    def _list(self, c: str, name: str, value: list[int]) -> Structure:
        if len(value) > MOST_WORDS:
            raise CannotCompile(f"self.{name} has {len(value)} numbers; emitted are {MOST_WORDS}")
        fixed = name not in self._assigned
        content = "" if not any(value) else f" = {{{_row(value)}}}"
        self.lines += [f"{'const ' if fixed else ''}s64 {c}[{len(value)}]{content};"]
        self.lines += [f"{'FIXED_' if fixed else ''}LIST({c}, {len(value)})"]
        return Structure("list", c, count=len(value), fixed=fixed)

    def _draws(self, c: str, name: str, value: Draws) -> Structure:
        *words, at = value.getstate()[1]
        state = f"{{ .at = {at % 624}, .ready = {624 - at}, .word = {{{_row(words, 'U')}}} }}"
        self.lines += [f"struct {{ u32 at, ready, word[624]; }} {c} = {state};", f"DRAWS({c})"]
        return Structure("draws", c)

    def _check_empty(self, name: str, content: Any) -> None:
        if content:
            raise CannotCompile(f"self.{name} is not empty when start() returns; fill it later")


def _row(numbers: Iterable[int], suffix: str = "") -> str:
    return ", ".join(f"{n}{suffix}" if suffix else literal(n) for n in numbers)


def literal(number: int) -> str:
    """Return a number as C writes it."""
    if number == -(1 << 63):
        return "(-0x7fffffffffffffffLL - 1)"
    return f"{number}LL" if abs(number) >= 1 << 31 else f"({number})" if number < 0 else str(number)


def share(number: float) -> Share:
    """Return a fraction that does not change, exactly; raise ValueError if it is too large."""
    if not abs(number) < MOST_SHARE:
        raise ValueError(f"the kernel has no such number as {number}")
    return Share(Fraction(number))

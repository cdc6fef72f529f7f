"""Sizes as formulas: an integer value of the program as a sum of products of its variables.

Variables are named by debug information, which optimisers sometimes leave wrong. So formulas serve
readers and plans made ahead; at a launch, sizes are those allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate.compiler.ir.module import CONVERSIONS, Body, Instruction, Value, constant_int, key
from tidegate.errors import TidegateError

Term = tuple[str, ...]  # the variables of a product, sorted

_MOST_TERMS = 32  # a longer sum is a variable of its own: no size, but a hash, say
_LOW_HALVES = (2**32 - 1, 2**31 - 1)  # masks that do not change an int
# widths are not modelled: a size that wraps is a mistake in the program


@dataclass(frozen=True)
class Formula:
    """A polynomial in the program's variables.

    >>> str(Formula.of("n") * Formula.number(4) + Formula.number(4))
    '4*n + 4'
    """

    terms: tuple[tuple[Term, int], ...]

    @staticmethod
    def number(value: int) -> Formula:
        """Return a constant."""
        return Formula((((), value),) if value else ())

    @staticmethod
    def of(variable: str) -> Formula:
        """Return a variable."""
        return Formula((((variable,), 1),))

    def __add__(self, other: Formula) -> Formula:
        total = dict(self.terms)
        for term, count in other.terms:
            total[term] = total.get(term, 0) + count
        terms = ((term, count) for term, count in total.items() if count)
        return Formula(tuple(sorted(terms, key=lambda x: (-len(x[0]), x[0]))))

    def __mul__(self, other: Formula) -> Formula:
        product = Formula(())
        for left, many in self.terms:
            for right, times in other.terms:
                product += Formula(((tuple(sorted(left + right)), many * times),))
        return product

    def as_int(self) -> Formula:
        """Return the formula in 32 bits, where adding 2³² - 2 subtracts 2.

        >>> str((Formula.of("n") + Formula.number(2**32 - 2)).as_int())
        'n + -2'
        """
        return Formula(tuple((t, (c + 2**31) % 2**32 - 2**31) for t, c in self.terms))

    def variables(self) -> set[str]:
        """Return its variables."""
        return {v for term, _ in self.terms for v in term}

    def with_formulas(self, known: Mapping[str, Formula]) -> Formula | None:
        """Return it with every variable replaced by its formula; None if one has none.

        >>> str((Formula.of("x") * Formula.number(2)).with_formulas({"x": Formula.of("n")}))
        '2*n'
        """
        total = Formula(())
        for term, count in self.terms:
            product = Formula.number(count)
            for variable in term:
                if variable not in known:
                    return None
                product *= known[variable]
            total += product
        return total

    def at(self, variables: Mapping[str, int]) -> int:
        """Return its value for these values of the variables."""
        if missing := ", ".join(sorted(self.variables() - variables.keys())):
            raise TidegateError(f"'{self}' needs a value for {missing}; give each as name=number")
        return sum(count * math.prod(variables[v] for v in term) for term, count in self.terms)

    def __str__(self) -> str:
        terms = ([str(n), *term] if n != 1 or not term else [*term] for term, n in self.terms)
        return " + ".join(map("*".join, terms)) or "0"


def formula(
    value: Value,
    body: Body,
    name: Callable[[str], str | None],
    found: dict[int, Formula] | None = None,
) -> Formula:
    """Return the formula that an integer value computes; `name` returns the source's name of an SSA
    value, if it has one. `found`: the formulas of values asked before, by key.
    """
    constant = constant_int(value)
    if constant is not None:
        return Formula.number(constant)
    i = body.by_key.get(key(value))
    if i is None:
        return Formula.of(value.name)
    found = {} if found is None else found
    if i.key not in found:
        computed = _computed(i, body, lambda operand: formula(operand, body, name, found))
        if computed is None or len(computed.terms) > _MOST_TERMS:
            alike = (i.ref.name, *body.converted.get(i.key, ()))
            known = next((called for value in alike if (called := name(value))), None)
            computed = Formula.of(known or f"%{i.ref.name}")  # % marks the IR's own names
        found[i.key] = computed
    return found[i.key]


def _computed(i: Instruction, body: Body, of: Callable[[Value], Formula]) -> Formula | None:
    """Return the formula of an instruction's result, from those `of` its operands; None if it is
    no sum or product.
    """
    if i.opcode in CONVERSIONS:
        return of(i.operands[0])
    if i.opcode == "add" or (i.opcode == "or" and "or disjoint " in i.text):
        return of(i.operands[0]) + of(i.operands[1])
    if i.opcode == "mul":
        return of(i.operands[0]) * of(i.operands[1])
    if i.opcode == "and" and constant_int(i.operands[1]) in _LOW_HALVES:
        return of(i.operands[0]).as_int()
    if (shifted := _down_again(i, body)) is not None:
        inner, times = shifted
        return of(inner) * Formula.number(times)
    if i.opcode == "shl" and (by := constant_int(i.operands[1])) is not None:
        return of(i.operands[0]) * Formula.number(1 << by)
    if i.opcode == "sub":
        return of(i.operands[0]) + of(i.operands[1]) * Formula.number(-1)
    if i.opcode == "select" and (real := _unless_overflown(i)) is not None:
        return of(real)
    product = body.by_key.get(key(i.operands[0])) if i.opcode == "extractvalue" else None
    if product is not None and product.callee.startswith("llvm.umul.with.overflow"):
        return of(product.arguments[0]) * of(product.arguments[1])
    return None


def _down_again(i: Instruction, body: Body) -> tuple[Value, int] | None:
    """Return (value, factor) of a value shifted up and then down by no more: an int converted from
    a long, such as atoi's.
    """
    by = constant_int(i.operands[1]) if i.opcode in ("ashr", "lshr") else None
    if by is None:
        return None
    up = body.by_key.get(key(i.operands[0]))
    if up is None or up.opcode != "shl" or (more := constant_int(up.operands[1])) is None:
        return None
    return (up.operands[0], 1 << more - by) if more >= by else None


def _unless_overflown(select: Instruction) -> Value | None:
    """Return the size in a select between it and -1, which `new T[n]` requests on overflow."""
    _, true, false = select.operands
    return false if constant_int(true) == -1 else true if constant_int(false) == -1 else None

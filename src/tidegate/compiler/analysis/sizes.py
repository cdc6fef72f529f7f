"""Sizes as formulas: an integer value of the program as a sum of products of its variables.

Variables are named by debug information, which optimisers sometimes leave wrong. So formulas serve
readers and plans made ahead; at a launch, sizes are those allocated.

The threads of a CUDA launch are such a formula: blocks of the grid times threads of a block.
Programs round up: ``(n + 255) / 256`` blocks of 256 threads are n threads and a rest that does
nothing. So a factor of a quotient that is also a factor of the block is cancelled, and what was
added to round up is left out.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate.compiler.analysis.memory import Memory
from tidegate.compiler.ir.module import CONVERSIONS, Body, Instruction, Value, constant_int, key
from tidegate.errors import TidegateError

Term = tuple[str, ...]  # the variables of a product, sorted
Named = Callable[[str], str | None]
"""Returns the source's name of an SSA value, if it has one."""

_MOST_TERMS = 32  # a longer sum is a variable of its own: no size, but a hash, say
_LOW_HALVES = (2**32 - 1, 2**31 - 1)  # masks that do not change an int
# widths are not modelled: a size that wraps is a mistake in the program


@dataclass(frozen=True)
class Formula:
    """A polynomial in the program's variables.

    >>> str(Formula.variable("n") * Formula.number(4) + Formula.number(4))
    '4*n + 4'
    """

    terms: tuple[tuple[Term, int], ...]

    @staticmethod
    def number(value: int) -> Formula:
        """Return a constant."""
        return Formula((((), value),) if value else ())

    @staticmethod
    def variable(name: str) -> Formula:
        """Return the formula that is this variable."""
        return Formula((((name,), 1),))

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

        >>> str((Formula.variable("n") + Formula.number(2**32 - 2)).as_int())
        'n + -2'
        """
        return Formula(tuple((t, (c + 2**31) % 2**32 - 2**31) for t, c in self.terms))

    def variables(self) -> set[str]:
        """Return its variables."""
        return {v for term, _ in self.terms for v in term}

    def with_formulas(self, known: Mapping[str, Formula]) -> Formula | None:
        """Return it with every variable replaced by its formula; None if one has none.

        >>> twice = Formula.variable("x") * Formula.number(2)
        >>> str(twice.with_formulas({"x": Formula.variable("n")}))
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
        return Formula.variable(value.name)
    if (kept := body.kept.get(i.key)) is not None:
        return Formula.number(kept) if isinstance(kept, int) else formula(kept, body, name, found)
    found = {} if found is None else found
    if i.key not in found:
        computed = _computed(i, body, lambda operand: formula(operand, body, name, found))
        if computed is None or len(computed.terms) > _MOST_TERMS:
            # % marks the IR's own names
            computed = Formula.variable(name(i.ref.name) or f"%{i.ref.name}")
        found[i.key] = computed
    return found[i.key]


def _computed(i: Instruction, body: Body, of: Callable[[Value], Formula]) -> Formula | None:
    """Return the formula of an instruction's result, from those `of` its operands; None if it is
    no sum or product.
    """
    if i.opcode in CONVERSIONS or (i.opcode == "phi" and len(set(map(key, i.operands))) == 1):
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


_ONE, _NONE = Formula.number(1), Formula(())
_HALF = 32  # bits: x and y of a dim3 are one 64-bit word


@dataclass(frozen=True)
class _Quotient:
    """A dimension: `above` over `below`, rounded."""

    above: Formula
    below: Formula = _ONE

    @property
    def rounded_up(self) -> Formula:
        """The dividend without what was added to round up: n of (n + 255) / 256."""
        plain = self.above + self.below * Formula.number(-1) + _ONE
        return plain if plain.terms and all(count > 0 for _, count in plain.terms) else self.above


class LaunchGrid:
    """Reads dimensions of launches from the values of one function."""

    def __init__(self, body: Body, memory: Memory, name: Callable[[str], str | None]):
        self._body, self._memory, self._name = body, memory, name

    def threads(self, grid: tuple[Value, ...]) -> Formula | None:
        """Return how many threads a launch with this configuration has; None if not known."""
        if len(grid) != 4:
            return None
        blocks = [*self._halves(grid[0]), self._quotient(grid[1])]
        threads = [*self._halves(grid[2]), self._quotient(grid[3])]
        if any(d is None for d in (*blocks, *threads)):
            return None
        return _product([d for d in blocks if d], [d for d in threads if d])

    def _halves(self, word: Value) -> tuple[_Quotient | None, _Quotient | None]:
        """Return x and y, the lower and the upper half of a word."""
        constant = constant_int(word)
        if constant is not None:
            low, high = constant & (1 << _HALF) - 1, constant >> _HALF & (1 << _HALF) - 1
            return _Quotient(Formula.number(low)), _Quotient(Formula.number(high))
        i = self._body.by_key.get(key(word))
        if i is None:
            return None, None
        if i.opcode == "zext":
            return self._quotient(i.operands[0]), _Quotient(_NONE)
        if i.opcode == "shl" and constant_int(i.operands[1]) == _HALF:
            return _Quotient(_NONE), self._low_half(i.operands[0])
        if i.opcode in ("or", "add"):
            (a, b), (c, d) = self._halves(i.operands[0]), self._halves(i.operands[1])
            return _sum(a, c), _sum(b, d)
        if i.opcode == "and" and constant_int(i.operands[1]) == (1 << _HALF) - 1:
            return self._low_half(i.operands[0]), _Quotient(_NONE)
        if i.opcode == "and" and constant_int(i.operands[1]) == -(1 << _HALF):
            return _Quotient(_NONE), self._halves(i.operands[0])[1]
        if i.opcode == "load":
            return self._stored(i, 0), self._stored(i, 4)
        return None, None

    def _low_half(self, word: Value) -> _Quotient | None:
        low, _ = self._halves(word)
        return low if low is not None else self._quotient(word)

    def _stored(self, load: Instruction, further: int) -> _Quotient | None:
        """Return the one value kept where a word is loaded from, and so many bytes further."""
        place = self._memory.place(load)
        if place is None or place[1] is None:
            return None
        value = self._memory.only_value(place[0], place[1] + further)
        if value is not None and not isinstance(value, int):
            whole = str(value.type).strip() == "i64"
            return self._halves(value)[0] if whole else self._quotient(value)
        if further and not self._memory.points.written((place[0], place[1] + further)):
            word = self._memory.only_value(place[0], place[1])  # the whole word was stored at once
            if word is not None and not isinstance(word, int) and str(word.type).strip() == "i64":
                return self._halves(word)[1]
        return None

    def _quotient(self, value: Value) -> _Quotient | None:
        i = self._body.by_key.get(key(value))
        while i is not None and i.opcode in ("zext", "sext", "trunc", "freeze"):
            value = i.operands[0]
            i = self._body.by_key.get(key(value))
        if i is not None and i.opcode == "load":
            return self._stored(i, 0) or self._named(value)
        if i is not None and i.opcode in ("sdiv", "udiv"):
            above, below = (formula(o, self._body, self._name) for o in i.operands)
            return _Quotient(above, below)
        if i is not None and (whole := self._one_more_for_a_rest(i)) is not None:
            return whole
        if i is not None and i.opcode in ("fptosi", "fptoui"):
            return self._ceiling(i) or self._named(value)
        if i is not None and i.opcode in ("lshr", "ashr"):
            by = constant_int(i.operands[1])
            if by is not None and by < _HALF:
                dividend = formula(i.operands[0], self._body, self._name)
                return _Quotient(dividend, Formula.number(1 << by))
        return self._named(value)

    def _one_more_for_a_rest(self, i: Instruction) -> _Quotient | None:
        """Return n / b rounded up, if it is written ``n / b + (n % b == 0 ? 0 : 1)``."""
        parts = [self._unconverted(o) for o in i.operands] if i.opcode == "add" else []
        for quotient, rest in (parts, parts[::-1]) if parts else ():
            if quotient is None or rest is None or quotient.opcode not in ("sdiv", "udiv", "lshr"):
                continue
            if rest.opcode != "icmp" or " ne " not in rest.text:
                continue
            left = self._unconverted(rest.operands[0])
            if left is None or left.opcode not in ("srem", "urem", "and"):
                continue
            divided = (formula(x.operands[0], self._body, self._name) for x in (left, quotient))
            if len(set(divided)) == 1:
                return self._quotient(quotient.ref)
        return None

    def _ceiling(self, i: Instruction) -> _Quotient | None:
        """Return n / b rounded up, if it is written ``(int)ceil(n / (float)b)``."""
        ceiling = self._unconverted(i.operands[0])
        if ceiling is None or not re.match(r"(llvm\.)?ceil", ceiling.callee):
            return None
        division = self._unconverted(ceiling.arguments[0])
        if division is None or division.opcode not in ("fdiv", "fmul"):
            return None
        dividend = self._unconverted(division.operands[0])
        by = _float(division.operands[1])
        if by and division.opcode == "fmul":
            by = 1 / by
        if (
            dividend is None
            or dividend.opcode not in ("sitofp", "uitofp")
            or by != round(by or 0.5)
        ):
            return None
        above = formula(dividend.operands[0], self._body, self._name)
        return _Quotient(above, Formula.number(round(by)))

    def _unconverted(self, value: Value) -> Instruction | None:
        i = self._body.by_key.get(key(value))
        while i is not None and i.opcode in (*CONVERSIONS, "fpext", "fptrunc"):
            i = self._body.by_key.get(key(i.operands[0]))
        return i

    def _named(self, value: Value) -> _Quotient:
        return _Quotient(formula(value, self._body, self._name))


def _float(value: Value) -> float | None:
    """Return the number of a floating-point constant; None for anything else."""
    found = re.fullmatch(
        r"(?:double|float) (?:(-?[\d.]+(?:e[+-]\d+)?)|0x([0-9A-F]{16}))", str(value)
    )
    if found is None:
        return None
    return float(found[1]) if found[1] else float(struct.unpack(">d", bytes.fromhex(found[2]))[0])


def _sum(a: _Quotient | None, b: _Quotient | None) -> _Quotient | None:
    if a is None or b is None:
        return None
    return a if not b.above.terms else b if not a.above.terms else None


def _product(blocks: list[_Quotient], threads: list[_Quotient]) -> Formula | None:
    """Return the product of all dimensions, quotients cancelled against equal factors."""
    if any(d.below != _ONE for d in threads):
        return None
    factors = [d.above for d in threads if d.above != _ONE]
    for dimension in blocks:
        if dimension.below == _ONE:
            factors.append(dimension.above)
        elif dimension.below in factors:
            factors.remove(dimension.below)
            factors.append(dimension.rounded_up)
        else:
            return None
    total = _ONE
    for factor in factors:
        total *= factor
    return total if total.terms else None

"""The threads of a CUDA launch, as a formula: blocks of the grid times threads of a block.

Programs round up: ``(n + 255) / 256`` blocks of 256 threads are n threads and a rest that does
nothing. So a factor of a quotient that is also a factor of the block is cancelled, and what was
added to round up is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.compiler.analysis.points_to import PointsTo
from tidegate.compiler.analysis.sizes import Formula, formula
from tidegate.compiler.ir.module import Body, Instruction, Value, constant_int, key

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


class Grid:
    """Reads dimensions of launches from the values of one function."""

    def __init__(self, body: Body, points: PointsTo, name: Callable[[str], str | None]):
        self._body, self._points, self._name = body, points, name

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
        """Return the one value stored where a word is loaded from, and so many bytes further."""
        places = self._points.of(load.operands[0])
        values = [
            v for o, at in places if at is not None for v in self._points.written((o, at + further))
        ]
        if len({key(v) for v in values}) == 1:
            if str(values[0].type).strip() == "i64":
                return self._halves(values[0])[0]
            return self._quotient(values[0])
        if further and not values:  # the whole word was stored at once
            whole = [v for o, at in places if at is not None for v in self._points.written((o, at))]
            if len({key(v) for v in whole}) == 1 and str(whole[0].type).strip() == "i64":
                return self._halves(whole[0])[1]
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
        if i is not None and i.opcode in ("lshr", "ashr"):
            by = constant_int(i.operands[1])
            if by is not None and by < _HALF:
                dividend = formula(i.operands[0], self._body, self._name)
                return _Quotient(dividend, Formula.number(1 << by))
        return self._named(value)

    def _named(self, value: Value) -> _Quotient:
        return _Quotient(formula(value, self._body, self._name))


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

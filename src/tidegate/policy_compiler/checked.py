"""Checked runs: policies run in Python, under the limits that compiled code has.

Compiled code keeps numbers in 64 bits and wraps what is larger; it refuses regions that do not
exist, but cannot say where. A checked run finds both, with file and line: arithmetic is rewritten
to look at its results, and structures look at their indices. That an order is changed while it is
iterated over, Python finds by itself.
"""

from __future__ import annotations

import ast
from typing import Any

from tidegate.policies.interface.policy import Policy
from tidegate.policies.structures.column import Column, Marks
from tidegate.policies.structures.heap import Heap
from tidegate.policies.structures.order import Order, Orders, first
from tidegate.policy_compiler.source import Methods, SuperCalls, rewritten_class

_GROWING = (ast.Add, ast.Sub, ast.Mult, ast.LShift, ast.Pow)  # operators that may overflow
_CONVERSIONS = {"int", "round", "sum", "abs"}


def check_policy(policy: Policy, regions: int) -> None:
    """Check a policy, and those it is made of, from now on; ``start`` has been called."""
    for part in policy.parts:
        check_policy(part, regions)
    for name, value in vars(policy).items():
        vars(policy)[name] = _checked(value, regions)
    policy.__class__ = _checked_class(type(policy))


# Structures that look at their indices


def _check_region(region: Any, regions: int) -> None:
    if not 0 <= region < regions:
        raise IndexError(f"region must be 0 to {regions - 1}, got {region}")


def _int64(number: Any) -> Any:
    """Return a number that compiled code can hold."""
    if type(number) is int and not -(1 << 63) <= number < 1 << 63:
        raise OverflowError(f"{number} does not fit the 64 bits that compiled code has")
    return number


class _Order(Order):
    regions = 0

    def move_to_tail(self, region: int) -> None:
        _check_region(region, self.regions)
        super().move_to_tail(region)

    def move_to_head(self, region: int) -> None:
        _check_region(region, self.regions)
        super().move_to_head(region)


class _Marks(Marks):
    regions = 0

    def add(self, region: int) -> None:
        _check_region(region, self.regions)
        super().add(region)


class _Column(Column[Any]):
    regions = 0

    def __getitem__(self, region: int) -> Any:
        _check_region(region, self.regions)
        return super().__getitem__(region)

    def __setitem__(self, region: int, number: Any) -> None:
        _check_region(region, self.regions)
        super().__setitem__(region, _int64(number))


class _Heap(Heap):
    regions = 0

    def __setitem__(self, region: int, number: int) -> None:
        _check_region(region, self.regions)
        super().__setitem__(region, _int64(number))


class _List(list[Any]):
    def __setitem__(self, index: Any, item: Any) -> None:
        super().__setitem__(index, _int64(item))


_CHECKED: dict[type, type] = {Order: _Order, Marks: _Marks, Heap: _Heap}


def _checked(value: Any, regions: int) -> Any:
    """Return a structure that looks at its indices, with the same content."""
    made: Any
    if type(value) is Orders:
        value[:] = [_checked(order, regions) for order in value]
        return value
    if type(value) is list and value and all(type(item) in (int, float) for item in value):
        return _List(value)
    if type(value) is Column:
        made = _Column(value.default)
    elif type(value) in _CHECKED:
        made = _CHECKED[type(value)]()
    else:
        return value
    made.regions = regions
    made.update(value)
    return made


# Arithmetic that looks at its results


class _Checking(SuperCalls):
    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return _looked_at(node) if isinstance(node.op, _GROWING) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if isinstance(node.target, ast.Subscript) or not isinstance(node.op, _GROWING):
            return node  # the structure looks at what is assigned
        before: Any = ast.parse(ast.unparse(node.target), mode="eval").body
        for part in ast.walk(before):
            ast.copy_location(part, node)
        result = _looked_at(ast.copy_location(ast.BinOp(before, node.op, node.value), node))
        return ast.copy_location(ast.Assign([node.target], result), node)

    def visit_Call(self, node: ast.Call) -> Any:
        node = super().visit_Call(node)
        converts = isinstance(node.func, ast.Name) and node.func.id in _CONVERSIONS
        return _looked_at(node) if converts else node


def _looked_at(node: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name("_int64", ast.Load()), [node], [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


def _checked_class(cls: type[Policy]) -> type[Policy]:
    """Return a class whose methods are rewritten; those without source are left as they are."""
    methods = Methods(cls, lambda function: function, (first,), {"_int64": _int64}, _Checking)
    return rewritten_class(cls, methods)

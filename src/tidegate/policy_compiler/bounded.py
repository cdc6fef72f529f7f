"""Bounded policies: no loop makes more than ``most_rounds`` rounds, as in a driver.

A kernel's verifier wants a stated limit for every loop, and a driver's locks want a small one. A
policy that declares ``most_rounds`` is emitted with it, and obeys it everywhere else too: its
methods are rewritten, for Python and for Numba. A loop over a structure sees so many items at most,
the first ones; ``while`` ends after as many rounds, and so do ``next``, ``first`` and the like.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from itertools import islice
from types import FunctionType
from typing import Any

from tidegate.errors import PolicyError
from tidegate.policies.interface.policy import Policy
from tidegate.policies.structures.order import first
from tidegate.policy_compiler.source import (
    CannotCompile,
    Methods,
    Rewriting,
    SuperCalls,
    at,
    reachable,
    rewritten_class,
)

_ISLICE = "_islice"  # itertools' own, whatever the module calls so
NAMES = {_ISLICE: islice}
_ASKED = ("victim", "observe", "spill", "place")


def bound_policy(policy: Policy) -> None:
    """Let a policy that runs in Python keep its limit from now on; ``start`` has been called."""
    for part in policy.parts:
        bound_policy(part)
    if policy.most_rounds:
        policy.__class__ = _bounded_class(type(policy), policy.most_rounds)


def pass_rounds(policy: Policy) -> None:
    """Give the limit of a policy to those it is made of, where they declare none."""
    for part in policy.parts:
        part.most_rounds = part.most_rounds or policy.most_rounds
        pass_rounds(part)


def rewriting(rounds: int) -> Callable[[type, FunctionType], SuperCalls]:
    """Return how methods are rewritten for this limit, 0 for none."""
    return partial(Bounded, rounds=rounds) if rounds else Rewriting


def _bounded_class(cls: type[Policy], rounds: int) -> Any:
    methods = Methods(cls, lambda function: function, (first,), NAMES, rewriting(rounds))
    handlers = [name for name in dir(cls) if name.startswith("on_") or name in _ASKED]
    try:
        names = {function.__name__ for function in reachable(cls, handlers)}
        return rewritten_class(cls, methods, names)
    except CannotCompile as why:
        raise PolicyError(
            f"policy '{cls.__name__}' declares most_rounds = {rounds}; that needs its source: {why}"
        ) from None


class Bounded(Rewriting):
    """Rewrite one function so that its loops end after ``rounds`` rounds."""

    def __init__(self, cls: type, function: FunctionType, rounds: int):
        super().__init__(cls, function)
        self._rounds, self._function = rounds, function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        limit = _Limit(self._rounds, self._function)
        for lifted in self.lifted:
            limit.visit(lifted)
        return limit.visit(node)

    def visit_While(self, node: ast.While) -> Any:
        self.generic_visit(node)  # Ctrl-C needs no count: the loop ends
        return node

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        self._refuse(node)

    def visit_SetComp(self, node: ast.SetComp) -> Any:
        self._refuse(node)

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        self._refuse(node)

    def _refuse(self, node: ast.expr) -> None:
        raise CannotCompile(
            f"{at(self._function, node.lineno)}: the rounds of a comprehension cannot be limited; "
            "use a loop"
        )

    def visit_Call(self, node: ast.Call) -> Any:
        match node:
            case ast.Call(ast.Name("islice"), [items, *cuts]) if cuts:
                cuts[-1 if len(cuts) == 1 else 1] = self._least(cuts[-1 if len(cuts) == 1 else 1])
                node.args = [items, *cuts]
            case ast.Call(ast.Name("first"), [items, *others]) if not _is_call(items, "islice"):
                limit = ast.Constant(self._rounds)
                node.args = [ast.Call(ast.Name(_ISLICE, ast.Load()), [items, limit], []), *others]
        return super().visit_Call(ast.fix_missing_locations(node))

    def _least(self, stop: ast.expr) -> ast.expr:
        """Return where islice stops: at the limit, if it did not stop before."""
        limit = ast.Constant(self._rounds)
        if isinstance(stop, ast.Constant) and stop.value is None:
            return limit
        return ast.Call(ast.Name("min", ast.Load()), [stop, limit], [])


class _Limit(ast.NodeTransformer):
    """Count the rounds of ``for`` and ``while``."""

    def __init__(self, rounds: int, function: FunctionType):
        self._rounds, self._function = rounds, function

    def visit_For(self, node: ast.For) -> Any:
        self._check(node)
        item = f"item_{node.lineno}_{node.col_offset}"
        given = ast.Assign([node.target], ast.Name(item, ast.Load()))
        node.target = ast.Name(item, ast.Store())
        return self._counted(node, [given])

    def visit_While(self, node: ast.While) -> Any:
        self._check(node)
        return self._counted(node, [])

    def _check(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            raise CannotCompile(
                f"{at(self._function, node.lineno)}: a loop whose rounds are limited has no 'else'"
            )
        self.generic_visit(node)

    def _counted(self, node: ast.For | ast.While, first_of_all: list[ast.stmt]) -> list[ast.stmt]:
        rounds = f"rounds_{node.lineno}_{node.col_offset}"
        before = ast.parse(f"{rounds} = 0").body
        counting = ast.parse(f"if {rounds} >= {self._rounds}: break\n{rounds} += 1").body
        node.body = [*counting, *first_of_all, *node.body]
        for statement in (*before, *counting):
            for part in ast.walk(statement):
                ast.copy_location(part, node)
        return [*before, ast.fix_missing_locations(node)]


def _is_call(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name

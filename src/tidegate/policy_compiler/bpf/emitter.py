"""A policy after start() → one file in C: state, methods, and one function for each event.

The syntax trees are those that the policy compiler rewrites for Numba: generator expressions are
functions, ``super()`` is found. A policy's parts are emitted with it, each with names of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn

from tidegate.policies.interface.declaration import handled_events
from tidegate.policies.interface.events import EVENT_NAMES, OBSERVE, VICTIM
from tidegate.policies.interface.policy import Policy, label
from tidegate.policies.interface.visibility import Everything
from tidegate.policy_compiler.bpf.functions import FunctionEmitter
from tidegate.policy_compiler.bpf.state import Attributes
from tidegate.policy_compiler.bpf.values import Maybe, Number, Part, Value
from tidegate.policy_compiler.source import (
    CannotCompile,
    Rewriting,
    definition_of,
    find_member,
    function_of,
    original_class,
    reachable,
)

_WITHOUT_NUMBER = (VICTIM, OBSERVE)


@dataclass(frozen=True)
class Emitted:
    """A policy in C, which follows ``policy.h``: functions ``policy_on_fault(region)`` and so on.

    ``text`` has no #include: whoever writes it to a file says how many regions there are.
    """

    text: str
    events: tuple[int, ...]


def emit_policy(policy: Policy) -> Emitted:
    """Return a policy as C; ``start`` was called. Raise CannotCompile with file, line and remedy.

    Requests that ``start`` made are the caller's to keep.
    """
    texts: list[str] = []
    emitter = Emitter(policy, "policy_", texts)
    events = tuple(handled_events(policy))
    for event in events:
        emitter.event(event)
    return Emitted("\n".join([*emitter.state_lines(), "", *texts]), events)


class Emitter:
    """Emits one policy; ``parts`` emit those it is made of."""

    def __init__(self, policy: Policy, prefix: str, texts: list[str]):
        self.policy, self._prefix, self._texts = policy, prefix, texts
        self._class: type = original_class(policy)
        if isinstance(policy.sees, Everything) and policy.sees.future:
            raise CannotCompile(f"{label(policy)} sees the future, which no driver does")
        if vars(self._class).get("twin") is not None:
            raise CannotCompile(
                f"{label(policy)} keeps tables by access site, which the emitted subset has no "
                "structures for"
            )
        geometry = policy.memory.geometry
        self.frames, self.observable = policy.memory.frames, policy.memory.observable
        self.pages = geometry.pages_per_region
        self.attributes = Attributes(policy, f"{prefix}s_", _assigned(policy, self._class))
        self.parts = [
            Emitter(part, f"{prefix}part{n}_", texts) for n, part in enumerate(policy.parts)
        ]
        self._methods: dict[str, tuple[str, Value, list[str]] | None] = {}
        self._helpers: dict[Any, tuple[str, Value, list[str]]] = {}
        self._names: set[str] = set()
        self._dispatched: dict[str, tuple[str, Value]] = {}

    def state_lines(self) -> list[str]:
        """Return the declarations of the attributes that were used."""
        return [*(line for p in self.parts for line in p.state_lines()), *self.attributes.lines]

    def member(self, name: str) -> Any:
        """Return a member of the policy's class."""
        return find_member(self._class, name)

    def event(self, event: int) -> None:
        """Emit the method of an event, and check that its answer is a region."""

        def refuse(why: str) -> NoReturn:
            raise CannotCompile(why)

        name = EVENT_NAMES[event]
        _, result, _ = self.method(name, refuse)
        if event in _WITHOUT_NUMBER and not isinstance(result, Number | Maybe):
            raise CannotCompile(f"{name}() must answer a region")

    def method(self, name: str, refuse: Callable[[str], NoReturn]) -> tuple[str, Value, list[str]]:
        """Return a method's name in C, what it returns and what it takes; emit it if need be."""
        if name not in self._methods:
            function = function_of(self.member(name))
            if function is None:
                refuse(f"self.{name} is not set in start(); set it there")
            self._methods[name] = None
            takes_self = not isinstance(self.member(name), staticmethod)
            self._methods[name] = self._function(function, name, takes_self)
        found = self._methods[name]
        if found is None:
            refuse(f"{name} calls itself; use a loop")
        return found

    def helper(self, function: FunctionType) -> tuple[str, Value, list[str]]:
        """Return the same for a plain function of a module."""
        if function not in self._helpers:
            self._helpers[function] = self._function(function, function.__name__, False)
        return self._helpers[function]

    def lifted(
        self,
        function: FunctionType,
        lifted: dict[str, ast.FunctionDef],
        name: str,
        given: dict[str, Value],
    ) -> tuple[str, Value]:
        """Return the same for a generator expression that became a function of what is given."""
        key = function, name
        if key not in self._helpers:
            self._helpers[key] = self._emit(function, lifted[name], lifted, name, True, given)
        c, result, _ = self._helpers[key]
        return c, result

    def part_method(
        self, part: Part, name: str, refuse: Callable[[str], NoReturn]
    ) -> tuple[str, Value]:
        """Return a part's method; of a part by number, the function that finds it."""
        if part.known >= 0:
            c, result, _ = self.parts[part.known].method(name, refuse)
            return c, result
        if name not in self._dispatched:
            self._dispatched[name] = self._dispatch(name, refuse)
        return self._dispatched[name]

    def _dispatch(self, name: str, refuse: Callable[[str], NoReturn]) -> tuple[str, Value]:
        found = [part.method(name, refuse) for part in self.parts]
        taken = found[0][2]
        given = ", ".join(taken)
        cases = "".join(
            f"\tcase {n}:\n\t\treturn {c}({given});\n" for n, (c, _, _) in enumerate(found)
        )
        c = f"{self._prefix}of_part_{name}"
        arguments = ", ".join(f"s64 {a}" for a in ("part", *taken))
        self._texts.append(
            f"FUNCTION s64 {c}({arguments})\n{{\n\tswitch (part) {{\n{cases}\t}}\n"
            "\treturn fail(__LINE__);\n}\n"
        )
        is_maybe = any(isinstance(result, Maybe) for _, result, _ in found)
        return c, Maybe("") if is_maybe else Number("")

    def _unique(self, c: str) -> str:
        """Return a name that no other function of this policy has."""
        while c in self._names:
            c += "_"
        self._names.add(c)
        return c

    def _function(
        self, function: FunctionType, name: str, takes_self: bool
    ) -> tuple[str, Value, list[str]]:
        rewriting = _ForEmission(self._class, function)
        definition = rewriting.visit(definition_of(function))
        lifted = {made.name: made for made in rewriting.lifted}
        return self._emit(function, definition, lifted, name, takes_self)

    def _emit(
        self,
        function: FunctionType,
        definition: ast.FunctionDef,
        lifted: dict[str, ast.FunctionDef],
        name: str,
        takes_self: bool,
        given: dict[str, Value] | None = None,
    ) -> tuple[str, Value, list[str]]:
        c = self._unique(f"{self._prefix}{name.lstrip('_')}")
        one = FunctionEmitter(self, function, lifted, takes_self)
        self._texts.append(one.emit(definition, c, given))
        names = [a.arg for a in definition.args.args]
        return c, one.result or Maybe(""), [n for n in names if n != "self" or not takes_self]


class _ForEmission(Rewriting):
    """As for Numba, but ``while`` needs no count, and ``next`` of any iteration is a loop."""

    def visit_While(self, node: ast.While) -> Any:
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        match node:
            case ast.Call(ast.Name("next"), [items, _], []) if not isinstance(
                items, ast.GeneratorExp
            ):
                clause = ast.comprehension(ast.Name("item", ast.Store()), items, [], 0)
                node.args[0] = ast.GeneratorExp(ast.Name("item", ast.Load()), [clause])
                ast.fix_missing_locations(ast.copy_location(node.args[0], node))
        return super().visit_Call(node)


def _assigned(policy: Policy, cls: type) -> frozenset[str]:
    """Return the attributes that methods of events assign, or assign items of."""
    handlers = [EVENT_NAMES[event] for event in handled_events(policy)]
    found: set[str] = set()
    for tree in reachable(cls, handlers).values():
        for node in ast.walk(tree):
            target = node.value if isinstance(node, ast.Subscript) else node
            context = getattr(node, "ctx", None)
            if isinstance(target, ast.Attribute) and isinstance(context, ast.Store):
                found.add(target.attr)
    return frozenset(found)

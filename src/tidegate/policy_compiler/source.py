"""A class's methods, rewritten for Numba; and a digest of all that they depend on.

Rewriting changes what Numba cannot take, and nothing else:

    next(e for r in X if C)  a function with a loop; so any, all, sum, min, max
    (e for r in X if C)      a generator function
    super().name(…)          the method that Python would find
    while C: …               counts its rounds, so that Ctrl-C ends an endless loop
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from tidegate.user_code.fingerprint import digest_of_code, fingerprint
from tidegate.user_code.origins import home_of, is_local, is_shipped

_NUMBERS = (bool, int, float)
_CONSTANTS = (*_NUMBERS, str, tuple, type(None))
# methods that are not called while a run goes on
NOT_COMPILED = frozenset(
    ("attach", "start", "finished", "report", "decisions", "settings", "options", "scale_counts")
)
_MOST = (1 << 63) - 1


class CannotCompile(Exception):
    """Why a class cannot be compiled, in one line."""


class Methods:
    """The methods of a class; each is compiled when it is first used.

    ``overloaded`` functions are known to Numba; ``replaced`` stand for global names.
    """

    def __init__(
        self,
        cls: type,
        jit: Callable[[Any], Any],
        overloaded: tuple[Any, ...],
        replaced: dict[str, Any],
        rewriting: Callable[[type, FunctionType], SuperCalls],
    ):
        self._cls, self._jit, self._rewriting = cls, jit, rewriting
        self._overloaded, self._replaced = overloaded, replaced
        self._compiled: dict[str, Any] = {}
        self._helpers: dict[FunctionType, Any] = {}
        members = {n: v for base in reversed(cls.__mro__) for n, v in vars(base).items()}
        self.static = {n for n, v in members.items() if isinstance(v, staticmethod)}
        self.properties = {n for n, v in members.items() if isinstance(v, property)}
        self.constants = {n: v for n, v in members.items() if type(v) in _NUMBERS}
        self.constants |= {n: int(v) for n, v in members.items() if isinstance(v, IntEnum)}

    def compiled(self, name: str) -> Any:
        """Return a method's compiled function, None if there is no such method."""
        if name not in self._compiled:
            function = function_of(find_member(self._cls, name))
            made = function and self._jit(self._rewritten(function))
            self._compiled[name] = made
        return self._compiled[name]

    def __iter__(self) -> Iterator[Any]:
        """Yield the functions that were compiled."""
        yield from filter(None, [*self._compiled.values(), *self._helpers.values()])

    def _rewritten(self, function: FunctionType) -> FunctionType:
        definition = definition_of(function)
        names = sorted(_used(definition))
        rewriting = self._rewriting(self._cls, function)
        rewritten = rewriting.visit(definition)
        space = {**function.__globals__, **self._replaced}
        for name in names:
            value = function.__globals__.get(name)
            if isinstance(value, FunctionType) and value not in self._overloaded:
                space[name] = self._helper(value)
            else:
                _check_global(function, name, value)
        for lifted in rewriting.lifted:
            made = make_function(lifted, function, space, keep_defaults=False)
            space[lifted.name] = self._jit(made)
        return make_function(rewritten, function, space)

    def _helper(self, function: FunctionType) -> Any:
        """Return a plain function of a module, compiled."""
        if function not in self._helpers:
            self._helpers[function] = None
            self._helpers[function] = self._jit(self._rewritten(function))
        if self._helpers[function] is None:
            raise CannotCompile(f"{at(function)}: {function.__name__} calls itself; use a loop")
        return self._helpers[function]


def at(function: FunctionType, line: int = 0) -> str:
    """Return where a function is: file and line."""
    code = function.__code__
    return f"{Path(code.co_filename).name}, line {line or code.co_firstlineno}"


def find_member(cls: type, name: str) -> Any:
    """Return a member of this class; ``super_3__name`` is that of the last three of its bases."""
    mro = list(cls.__mro__)
    if name.startswith("super_"):
        below, name = name.removeprefix("super_").split("__", 1)
        mro = mro[len(mro) - int(below) :]
    return next((vars(base)[name] for base in mro if name in vars(base)), None)


def function_of(member: Any) -> FunctionType | None:
    """Return the function of a method, static method or property."""
    if isinstance(member, property):
        member = member.fget
    member = getattr(member, "__func__", member)
    return member if isinstance(member, FunctionType) else None


def reachable(cls: type, names: Iterable[str]) -> dict[FunctionType, ast.FunctionDef]:
    """Return the methods of these names and what they call of ``self``, with their syntax trees.

    A name stands for the methods of all bases: ``super()`` may reach them.
    """
    found: dict[FunctionType, ast.FunctionDef] = {}
    waiting, known = list(names), set(names)
    while waiting:
        name = waiting.pop()
        members = (vars(base)[name] for base in cls.__mro__ if name in vars(base))
        for function in filter(None, map(function_of, members)):
            found[function] = definition_of(function)
            used = {n.attr for n in ast.walk(found[function]) if isinstance(n, ast.Attribute)}
            waiting += used - known
            known |= used
    return found


def rewritten_class(cls: Any, methods: Methods, names: Iterable[str] | None = None) -> Any:
    """Return a subclass whose methods are ``methods``' for Python; its ``original`` is the class.

    ``names`` are those to rewrite. Without them it is all methods whose source can be found.
    """
    strict = names is not None

    def method(name: str) -> Any:
        member = find_member(cls, name)
        try:
            made: Any = methods.compiled(name)
        except CannotCompile:
            if strict:
                raise
            return member
        kind = type(member) if isinstance(member, property | staticmethod) else None
        return kind(made) if kind else made

    def super_method(self: Any, name: str) -> Any:
        if name.startswith("super_"):
            return method(name).__get__(self)
        raise AttributeError(f"'{cls.__name__}' object has no attribute '{name}'")

    if names is None:
        names = {
            name
            for base in cls.__mro__
            if not base.__module__.startswith(("tidegate.policies.interface", "tidegate.options"))
            for name, member in vars(base).items()
            if function_of(member) and name not in NOT_COMPILED and not name.startswith("__")
        }
    members = {name: method(name) for name in names}
    members |= {"__getattr__": super_method, "original": cls, "__module__": cls.__module__}
    return type(cls.__name__, (cls,), members)


def original_class(policy: Any) -> Any:
    """Return the class of a policy as it was written."""
    cls = type(policy)
    while hasattr(cls, "original"):
        cls = cls.original
    return cls


def restore_class(policy: Any) -> None:
    """Give a policy, and those it is made of, their own classes back."""
    for part in policy.parts:
        restore_class(part)
    policy.__class__ = original_class(policy)


# The digest


# of shipped classes, whose modules do not change, by the ids of their parts; the parts are kept, so
# that no id is used twice
_known: dict[Any, tuple[str, list[Any]]] = {}


def digest(cls: type, *more: str) -> str:
    """Return a hash of a class's methods and constants, and of what they use of their modules."""
    if not is_shipped(home_of(cls)):
        return _digest(cls, more)
    members = [v for base in cls.__mro__ for v in vars(base).values()]
    parts = [f.__code__ if (f := function_of(v)) else v for v in members]
    key = cls, more, tuple(map(id, parts))
    if key not in _known:
        _known[key] = _digest(cls, more), parts
    return _known[key][0]


def _digest(cls: type, more: tuple[str, ...]) -> str:
    known: set[FunctionType] = set()
    found = hashlib.sha256(repr(more).encode())

    def add(*what: Any) -> None:
        found.update(repr(what).encode())

    def add_function(function: FunctionType) -> None:
        if function in known:
            return
        known.add(function)
        add(digest_of_code(function.__code__))
        add(function.__defaults__, function.__kwdefaults__)
        for name, value in _closure(function).items():
            add(name, fingerprint(value).digest)
        for name in sorted(_names(function.__code__)):
            add_value(name, function.__globals__.get(name))

    def add_value(name: str, value: Any) -> None:
        function = function_of(getattr(value, "py_func", value))
        if function:
            add(name, type(value))
            add_function(function)
        elif isinstance(value, (*_NUMBERS, str, type(None))):
            add(name, value)
        elif isinstance(value, type | ModuleType) and not is_local(home_of(value)):
            add(name, type(value), home_of(value), value.__name__)
        else:  # Numba takes modules' attributes and members of enumerations as constants
            add(name, fingerprint(value).digest)

    for base in cls.__mro__:
        for name, value in sorted(vars(base).items()):
            if function_of(value) or isinstance(value, _NUMBERS):
                add_value(name, value)
    return found.hexdigest()[:32]


def _closure(function: FunctionType) -> dict[str, Any]:
    """Return the variables of surrounding functions that this one uses."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: _content(cell) for name, cell in cells if name != "__class__"}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _names(code: CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _check_global(function: FunctionType, name: str, value: Any) -> None:
    """Refuse variables of the module that may change while compiled code would not notice."""
    fixed = (*_CONSTANTS, type, ModuleType, BuiltinFunctionType, FunctionType)
    fits = isinstance(value, fixed) or hasattr(value, "py_func")  # a function made with Numba
    if name in function.__globals__ and not fits:
        raise CannotCompile(
            f"{at(function)}: {function.__name__} uses {name}, a {type(value).__name__} of the "
            "module, which compiled code cannot; keep it on self"
        )


# Source text → syntax tree → function


def definition_of(function: FunctionType) -> ast.FunctionDef:
    """Return the syntax tree of a function, with the line numbers of its file."""
    name, line = function.__name__, function.__code__.co_firstlineno
    for variable, value in _closure(function).items():
        if not isinstance(value, _NUMBERS):
            raise CannotCompile(
                f"{at(function)}: {name} uses {variable}, a variable of the function around the "
                "class; keep it on self"
            )
    try:
        text = "".join(inspect.findsource(function)[0])
        definitions, codes = _parse(text, function.__code__.co_filename)
    except (OSError, TypeError, SyntaxError):
        raise CannotCompile(
            f"the source of {name} cannot be found; put the class in a file"
        ) from None
    if (name, line) not in definitions:
        raise CannotCompile(f"{at(function)}: {name} is not written with def within a class")
    if not _same_code(codes[name, line], function.__code__):
        raise CannotCompile(f"{at(function)}: the source of {name} was changed after it was loaded")
    definition = copy.deepcopy(definitions[name, line])
    definition.decorator_list, definition.returns = [], None
    for argument in ast.walk(definition.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    _check_syntax(definition, function)
    return definition


@functools.lru_cache(maxsize=64)
def _parse(text: str, file: str) -> tuple[dict[Any, ast.FunctionDef], dict[Any, CodeType]]:
    """Return the functions of a file by name and first line: as syntax trees, and as code."""
    tree = ast.parse(text)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    definitions = {
        (node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])): node
        for node in found
    }
    codes = {}
    waiting = [compile(tree, file, "exec", dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        codes[code.co_name, code.co_firstlineno] = code
        waiting += [c for c in code.co_consts if isinstance(c, CodeType)]
    return definitions, codes


# Syntax that Numba does not take, or takes for something else
_REFUSED: dict[type[ast.AST], str] = {
    ast.NamedExpr: "':=' cannot be compiled; assign in a line of its own",
    ast.Import: "imports belong at the top of the file",
    ast.ImportFrom: "imports belong at the top of the file",
    ast.Global: "variables of the module cannot be assigned in compiled code; keep it on self",
    ast.Nonlocal: "variables of other functions cannot be assigned in compiled code",
}


def _check_syntax(definition: ast.FunctionDef, function: FunctionType) -> None:
    for node in ast.walk(definition):
        reason = _REFUSED.get(type(node), "")
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > _MOST:
            reason = f"{node.value} does not fit the 64 bits that compiled code has"
        if isinstance(node, ast.arguments) and (node.kwonlyargs or node.vararg or node.kwarg):
            reason = f"{function.__name__} takes '*' or '**'; compiled code knows plain arguments"
        if reason:
            line = getattr(node, "lineno", 0)
            raise CannotCompile(f"{at(function, line)}: {reason}")


def make_function(
    definition: ast.FunctionDef,
    function: FunctionType,
    space: dict[str, Any],
    keep_defaults: bool = True,
) -> FunctionType:
    """Return the function of a syntax tree, with another's closure and defaults."""
    made: FunctionType = _around(definition, function, space)
    if keep_defaults:
        made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


def _around(definition: ast.FunctionDef, function: FunctionType, space: dict[str, Any]) -> Any:
    exec(compile(_module(definition, function), function.__code__.co_filename, "exec"), space)
    cls = space.pop("__around")(*_closure(function).values())
    return vars(cls)[definition.name]


def _module(definition: ast.FunctionDef, function: FunctionType) -> ast.Module:
    """Return the definition within a class of its name, within a function of its closure: so names
    mean what they meant.
    """
    owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2]
    owner = owner if owner.isidentifier() else "Around"
    arguments = ast.arguments([], [ast.arg(n) for n in _closure(function)], None, [], [], None, [])
    body: list[ast.stmt] = [
        ast.ClassDef(owner, [], [], [definition], []),
        ast.Return(ast.Name(owner, ast.Load())),
    ]
    around = ast.FunctionDef("__around", arguments, body, [])
    for node in (around, *ast.walk(arguments), *body):
        ast.copy_location(node, definition)
    return ast.fix_missing_locations(ast.Module([around], []))


def _same_code(one: CodeType, other: CodeType) -> bool:
    if (one.co_code, one.co_names) != (other.co_code, other.co_names):
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _same_code(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else a == b
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


class SuperCalls(ast.NodeTransformer):
    """Rewrite ``super().name`` to ``self.super_N__name``; ``lifted`` are more functions."""

    def __init__(self, cls: type, function: FunctionType):
        code = function.__code__
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        owner = _content(cells["__class__"]) if "__class__" in cells else None
        mro = cls.__mro__
        self._bases = len(mro) - mro.index(owner) - 1 if owner in mro else 0
        self._locals = {*code.co_varnames, *code.co_cellvars}
        self.lifted: list[ast.FunctionDef] = []

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr=name):
                node.func.value = ast.Name("self", ast.Load())
                node.func.attr = f"super_{self._bases}__{name}"
        return ast.fix_missing_locations(node)


# Functions of generator expressions, as loops: what comes before, for each item, and at the end
_LOOPS = {
    "next": ("", "return item", "return default"),
    "any": ("", "if item: return True", "return False"),
    "all": ("", "if not item: return False", "return True"),
    "sum": ("total = 0", "total += item", "return total"),
    "min": (
        "best, some = 0, False",
        "if not some or item < best: best, some = item, True",
        "if not some: raise ValueError('min() of nothing')\nreturn best",
    ),
    "max": (
        "best, some = 0, False",
        "if not some or item > best: best, some = item, True",
        "if not some: raise ValueError('max() of nothing')\nreturn best",
    ),
}


class Rewriting(SuperCalls):
    """Rewrite one function for Numba."""

    def visit_Call(self, node: ast.Call) -> Any:
        match node:
            case ast.Call(ast.Name("next"), [ast.GeneratorExp() as items, default], []):
                return self._lift(items, "next", [self.visit(default)])
            case ast.Call(ast.Name(name), [items], []) if name in _LOOPS and name != "next":
                if not isinstance(items, ast.GeneratorExp):
                    item = ast.comprehension(ast.Name("item", ast.Store()), items, [], 0)
                    items = ast.GeneratorExp(ast.Name("item", ast.Load()), [item])
                    ast.fix_missing_locations(ast.copy_location(items, node))
                return self._lift(items, name, [])
        return super().visit_Call(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self._lift(node, "generator", [])

    def _lift(self, node: ast.GeneratorExp, name: str, arguments: list[ast.expr]) -> Any:
        """Return a call of a new function that does what ``name`` does with these items."""
        self.generic_visit(node)
        free = sorted(_used(node) & self._locals - _bound(node))
        before, each, end = _LOOPS.get(name, ("", "yield item", ""))
        body: list[ast.stmt] = [
            ast.Assign([ast.Name("item", ast.Store())], node.elt),
            *ast.parse(each).body,
        ]
        for clause in reversed(node.generators):
            for condition in reversed(clause.ifs):
                body = [ast.If(condition, body, [])]
            body = [ast.For(clause.target, clause.iter, body, [])]
        given = [*free, *(["default"] if arguments else [])]
        made = ast.FunctionDef(
            f"{name}_{node.lineno}_{node.col_offset}",
            ast.arguments([], [ast.arg(n) for n in given], None, [], [], None, []),
            [*ast.parse(before).body, *body, *ast.parse(end).body],
            [],
        )
        for part in ast.walk(made):
            ast.copy_location(part, node)
        self.lifted.append(made)
        names: list[ast.expr] = [ast.Name(n, ast.Load()) for n in free]
        call = ast.Call(ast.Name(made.name, ast.Load()), [*names, *arguments], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_While(self, node: ast.While) -> Any:
        self.generic_visit(node)
        rounds = f"rounds_{node.lineno}"
        counting = ast.parse(f"{rounds} += 1\nif {rounds} & 65535 == 0: _interrupt_point()").body
        before = ast.parse(f"{rounds} = 0").body
        node.body = [*counting, *node.body]
        for statement in (*before, *counting):
            for part in ast.walk(statement):
                ast.copy_location(part, node)
        return [*before, node]


def _bound(node: ast.GeneratorExp) -> set[str]:
    targets = [clause.target for clause in node.generators]
    return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def _used(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}

"""A hash of all that code depends on, as it is in memory: what names a run of a user's class.

    class          its bases and every attribute
    function       code, defaults, closure, and the globals that its code names
    module         all that it holds, if it is local
    object         its class and its attributes

Shipped and installed modules end the walk: the hash of Tidegate's source, and the versions of
installed packages, stand for them. What a program reads while it runs, such as files, the clock or
the environment, is not seen.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from tidegate.options import Configurable
from tidegate.user_code.bytecode import CODE_PARTS, imports_in, names_in
from tidegate.user_code.files import imported_by
from tidegate.user_code.origins import home_of, is_library, is_shipped, version_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented))
_SEQUENCES = (tuple, list, deque)
_NAMED = (
    BuiltinFunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    WrapperDescriptorType,
)
# of classes and modules: made by Python, not by their text
_MADE_BY_PYTHON = {
    "__module__",
    "__dict__",
    "__weakref__",
    "__builtins__",
    "__cached__",
    "__file__",
    "__loader__",
    "__name__",
    "__package__",
    "__path__",
    "__slotnames__",
    "__spec__",
    "__warningregistry__",
    "_abc_impl",
}
# attributes of policies that every run sets anew, and how options were given, not what they are
_NO_STATE = {"memory", "order", "given_options"}


@dataclass(frozen=True)
class Fingerprint:
    """A hash, and what stands in the way of trusting it."""

    digest: str
    local: frozenset[type]  # the classes, of those given, that use local code
    unknown: tuple[str, ...]  # what cannot be hashed


def fingerprint(*things: Any) -> Fingerprint:
    """Return the hash of classes, functions or objects, with all that they depend on.

    >>> fingerprint({"times": 2}).digest == fingerprint({"times": 3}).digest
    False
    """
    walk = _Walk()
    for thing in things:
        walk.enter(thing)
    return Fingerprint(walk.digest(), frozenset(walk.local), tuple(walk.unknown))


class _Walk:
    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._seen: dict[int, tuple[int, Any]] = {}  # with the object, so that no id is used twice
        self._members: set[int] = set()  # the shipped classes whose attributes were visited
        self._owner: type = object
        self._own_package = ""
        self.local: set[type] = set()
        self.unknown: list[str] = []

    def digest(self) -> str:
        return self._hash.hexdigest()

    def enter(self, thing: Any) -> None:
        """Visit a thing whose class answers for the local code that it uses."""
        before = self._owner, self._own_package
        self._owner = thing if isinstance(thing, type) else type(thing)
        self._own_package = home_of(self._owner).partition(".")[0]
        try:
            for base in self._owner.__mro__:
                if is_shipped(home_of(base)) and id(base) not in self._members:
                    self._members.add(id(base))
                    self._shipped_members(base)
            self.visit(self._owner)
            if isinstance(thing, Configurable):
                self._instance(thing)
            elif not isinstance(thing, type):
                self.visit(thing)
        except Exception as error:  # of a user's ``__getattr__``, or of too deep a structure
            self._cannot(thing, f"cannot be hashed: {type(error).__name__}")
        self._owner, self._own_package = before

    def visit(self, thing: Any) -> None:
        kind = type(thing)
        if kind in _PLAIN:
            self._add(thing)
            return
        if id(thing) in self._seen:
            self._add("seen", self._seen[id(thing)][0])
            return
        self._seen[id(thing)] = len(self._seen), thing
        self._add(kind.__qualname__)
        if kind in _SEQUENCES:
            self._each(thing)
        elif kind in (dict, MappingProxyType):
            self._each(x for pair in thing.items() for x in pair)
        elif kind in (set, frozenset):
            self._add(*sorted(_alone(x, self) for x in thing))
        elif isinstance(thing, CodeType):
            self._add(digest_of_code(thing))
        elif isinstance(thing, FunctionType):
            self._function(thing)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, ModuleType):
            self._module(thing)
        else:
            self._other(thing)

    def _add(self, *what: Any) -> None:
        self._hash.update(repr(what).encode("utf-8", "surrogatepass"))

    def _each(self, things: Iterable[Any]) -> None:
        self._add("(")
        for thing in things:
            self.visit(thing)
        self._add(")")

    def _cannot(self, thing: Any, why: str) -> None:
        self.unknown.append(f"{type(thing).__qualname__} {why}")
        self._add("unknown")

    def _is_local(self, module: str) -> bool:
        """Return whether code of this module is walked; if so, note whose code it is."""
        top = module.partition(".")[0]
        own = top == self._own_package and top not in sys.stdlib_module_names
        if is_shipped(module) or (is_library(module) and not own):
            return False
        self.local.add(self._owner)
        return True

    def _name(self, module: str, name: str) -> None:
        top = module.partition(".")[0]
        self._add(module, name, "" if is_shipped(module) else version_of(top))

    # Code

    def _function(self, function: FunctionType) -> None:
        module = function.__globals__.get("__name__") or ""
        if not self._is_local(module):
            self._name(module, function.__qualname__)
            return
        self._callable_parts(function)
        self._attributes(vars(function))
        for name in sorted(names_in(function.__code__)):
            if name in function.__globals__:
                self._add(name)
                self.visit(function.__globals__[name])
            elif getattr(getattr(builtins, name, None), "__module__", "builtins") != "builtins":
                self.visit(getattr(builtins, name))  # replaced by someone
        for step in imports_in(function.__code__):
            self._import(function, *step)

    def _callable_parts(self, function: FunctionType) -> None:
        self._add(digest_of_code(function.__code__))
        self.visit(function.__defaults__)
        self.visit(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self.visit(cell.cell_contents)
            except ValueError:
                self._add("empty")

    def _import(
        self, function: FunctionType, level: int, name: str, wanted: tuple[str, ...]
    ) -> None:
        """Visit what a function imports while it runs."""
        if level:
            package = function.__globals__.get("__package__") or ""
            parts = package.split(".")
            name = ".".join(filter(None, [*parts[: len(parts) - level + 1], name]))
        module = imported_by(function.__globals__, name)
        if is_library(name) or is_shipped(name):
            self._name(name, "")
        elif module is not None and all(hasattr(module, part) or part == "*" for part in wanted):
            self.visit(module)
        else:
            self._cannot(function, f"imports {name} while it runs")

    def _class(self, cls: type) -> None:
        if not self._is_local(home_of(cls)):
            self._name(home_of(cls), cls.__qualname__)
            return
        self._add(cls.__qualname__)
        self.visit(type(cls))
        self._each(cls.__bases__)
        self._attributes(vars(cls))

    def _module(self, module: ModuleType) -> None:
        if self._is_local(module.__name__):
            self._attributes(vars(module))
        else:
            self._name(module.__name__, "")

    def _attributes(self, attributes: Any) -> None:
        for name in sorted(set(attributes) - _MADE_BY_PYTHON, key=str):
            self._add(name)
            self.visit(attributes[name])

    def _shipped_members(self, cls: type) -> None:
        """Visit the attributes of a shipped class, which may have been changed in memory."""
        for name, member in vars(cls).items():
            if name in _MADE_BY_PYTHON:
                continue
            for part in _parts(member):
                if type(part) in _PLAIN:
                    self._add(name, part)
                elif not isinstance(part, FunctionType):
                    self._is_local(home_of(type(part)))
                elif is_shipped(part.__globals__.get("__name__") or ""):
                    self._add(name)
                    self._shipped_function(part)
                else:
                    self.visit(part)

    def _shipped_function(self, function: FunctionType) -> None:
        self._add(digest_of_code(function.__code__))
        for default in function.__defaults__ or ():
            self._add(default if type(default) in _PLAIN else type(default).__qualname__)

    # Objects

    def _other(self, thing: Any) -> None:
        kind = type(thing)
        if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            self._add(str(thing.dtype), thing.shape)
            self._hash.update(np.ascontiguousarray(thing).view(np.uint8).data)
        elif isinstance(thing, _NAMED):
            self._named(thing)
        elif isinstance(thing, MethodType):
            self._each((thing.__func__, thing.__self__))
        elif isinstance(thing, property | staticmethod | classmethod | functools.cached_property):
            self._each(_parts(thing))
        elif home_of(kind).startswith("numba.") and hasattr(thing, "py_func"):
            self._each((thing.py_func, getattr(thing, "targetoptions", None)))
        elif isinstance(thing, Configurable):
            self.enter(thing)
        elif is_library(home_of(kind)):
            self._reduced(thing)
        else:
            self._instance(thing)

    def _named(self, thing: Any) -> None:
        owner = getattr(thing, "__self__", None)
        self._add(getattr(thing, "__qualname__", ""), getattr(thing, "__module__", None))
        if owner is not None and not isinstance(owner, ModuleType):
            self.visit(owner)  # a bound method such as [].append

    def _instance(self, thing: Any) -> None:
        cls = type(thing)
        self.visit(cls)
        attributes = dict(getattr(thing, "__dict__", {}))
        for base in cls.__mro__:
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(thing, name):
                    attributes[name] = getattr(thing, name)
        if isinstance(thing, Configurable):
            attributes = _state_of(thing, attributes)
        self._attributes(attributes)
        if isinstance(thing, dict):
            self._each(x for pair in thing.items() for x in pair)
        elif isinstance(thing, list | tuple | deque):
            self._each(thing)
        elif isinstance(thing, set | frozenset):
            self._add(*sorted(_alone(x, self) for x in thing))
        elif isinstance(thing, _PLAIN):
            plain: Any = next(base for base in _PLAIN if isinstance(thing, base))
            self._add(plain.__repr__(thing))

    def _reduced(self, thing: Any) -> None:
        """Visit an object of a library as it would be pickled."""
        try:
            parts = thing.__reduce_ex__(4)
        except Exception:
            self._cannot(thing, "cannot be hashed")
            return
        if isinstance(parts, str):
            self._name(home_of(type(thing)), parts)
            if (wrapped := getattr(thing, "__wrapped__", None)) is not None:
                self.visit(wrapped)  # functools.cache
            return
        self._each(list(p) if isinstance(p, Iterator) else p for p in parts)


def _alone(thing: Any, walk: _Walk) -> str:
    """Return the hash of a set's element; sets have no order."""
    own = _Walk()
    own._owner, own._own_package = walk._owner, walk._own_package
    own.visit(thing)
    walk.local |= own.local
    walk.unknown += own.unknown
    return own.digest()


def _parts(member: Any) -> Iterator[Any]:
    """Yield what a member of a class is made of: functions of properties, and so on."""
    if isinstance(member, property):
        yield from (member.fget, member.fset, member.fdel)
    elif isinstance(member, functools.cached_property):
        yield member.func
    else:
        yield getattr(member, "__func__", member)


def _state_of(thing: Configurable, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a policy or workload that can change a run.

    What a shipped class computes from the others, once, is left out.
    """
    cls = type(thing)
    left_out = set(_NO_STATE)
    if is_shipped(home_of(cls)):
        members = {n: v for base in cls.__mro__ for n, v in vars(base).items()}
        left_out |= {n for n, v in members.items() if isinstance(v, functools.cached_property)}
    return {name: value for name, value in attributes.items() if name not in left_out}


_digests: dict[int, tuple[str, CodeType]] = {}  # by id, with the code, which never changes


def digest_of_code(code: CodeType) -> str:
    """Return the hash of a function's code and its constants, without what it refers to."""
    if id(code) not in _digests:
        walk = _Walk()
        walk._add(*(getattr(code, name) for name in CODE_PARTS))
        walk._each(code.co_consts)
        _digests[id(code)] = walk.digest(), code
    return _digests[id(code)][0]

"""Typed options of policies and workloads, and their text form: ``lfu(decay=0.5, bins=16)``.

    class LFU(EvictionPolicy):
        decay = Option(0.5, "share of every count kept when the counts are halved")

``lfu(decay=0.5|0.9)`` is a sweep: two policies, for ``compare``.

An option's type is its default's type, or the ``parse`` function given (for sizes:
``parse=units.size``).
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, overload

from tidegate import units
from tidegate.errors import TidegateError, UnknownName

T = TypeVar("T")

_LARGEST = 2**63 - 1  # compiled code has 64 bits


class Option(Generic[T]):
    """One declared option: its default, what it means, and what is allowed."""

    def __init__(
        self,
        default: T,
        help: str,
        *,
        parse: Callable[[Any], T] | None = None,
        least: float | None = None,
        most: float | None = None,
        choices: tuple[T, ...] = (),
        counts_regions: bool = False,
    ):
        self.default, self.help, self.choices = default, help, choices
        # a number of regions, or of what happens to them: less for a program at a smaller scale
        self.counts_regions = counts_regions
        self.least, self.most = least, most
        self._parse = parse
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Option[T] | T:
        if instance is None:
            return self
        value: T = instance.__dict__.get(self.name, self.default)
        return value

    @property
    def shown(self) -> str:
        """The default, as text."""
        return units.show_size(self.default) if self._parse is units.size else str(self.default)  # type: ignore[arg-type]

    def format(self, value: T) -> str:
        """Return a value as it can be given again."""
        return units.exact_size(value) if self._parse is units.size else str(value)  # type: ignore[arg-type]

    @property
    def allowed(self) -> str:
        """The choices or bounds, as text."""
        least = "" if self.least is None else f"at least {self.least:g}"
        most = "" if self.most is None else f"at most {self.most:g}"
        return ", ".join(map(str, self.choices)) or ", ".join(filter(None, (least, most)))

    def parse(self, given: Any, owner: str) -> T:
        """Return the value that ``given`` stands for; refuse one that is not allowed."""
        kind = type(self.default)
        try:
            if self._parse:
                value = self._parse(given)
            elif kind is bool:
                value = _BOOLS[str(given).lower()]  # type: ignore[assignment]
            elif kind is int and float(given) != int(float(given)):
                raise ValueError
            else:
                value = kind(given)  # type: ignore[call-arg]
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError
            if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
                raise self._wrong(owner, f"a whole number of at most {_LARGEST}", given)
        except (ValueError, TypeError, KeyError, OverflowError):
            expected = _KINDS.get(kind, f"a value such as {self.default!s}")
            raise self._wrong(owner, expected, given) from None
        if self.choices and value not in self.choices:
            raise self._wrong(owner, f"one of {self.allowed}", given)
        for bound, sign, words in ((self.least, -1, "at least"), (self.most, 1, "at most")):
            if bound is not None and sign * (value - bound) > 0:  # type: ignore[operator]
                raise self._wrong(owner, f"{words} {bound:g}", given)
        return value

    def _wrong(self, owner: str, expected: str, given: Any) -> TidegateError:
        return TidegateError(
            f"{owner}: {self.name} must be {expected}, got {given!s}; the default is {self.shown}"
        )


class Configurable:
    """Base of classes with declared options: ``LFU(decay=0.9)``. Unknown options are refused.

    Runs of a class that is not shipped are stored only if the class itself says ``keep = True``:
    its outcome must follow from its code, its options, and the files that ``depends`` names.
    """

    name: str = ""
    bare: ClassVar[str] = ""  # the option that ``name(value)`` sets, if there is one
    keep: ClassVar[bool] = False
    depends: ClassVar[Sequence[str | Path]] = ()
    given_options: frozenset[str] = frozenset()  # the names of those that were not left out

    def __init__(self, **given: Any):
        declared = self.options()
        label = self.name or type(self).__name__
        # in __dict__, which Python looks up first: policies read options in every decision
        self.__dict__.update({key: option.default for key, option in declared.items()})
        self.__dict__["given_options"] = frozenset(given)
        for key, value in given.items():
            if key not in declared:
                if not declared:
                    raise TidegateError(f"{label} takes no options, got '{key}'; leave it out")
                raise UnknownName(f"option of {label}", key, declared)
            self.__dict__[key] = declared[key].parse(value, label)

    @classmethod
    def options(cls) -> dict[str, Option[Any]]:
        """Return the options that this class and its bases declare, by name."""
        found: dict[str, Option[Any]] = {}
        for base in reversed(cls.__mro__):
            found.update({k: v for k, v in vars(base).items() if isinstance(v, Option)})
        return found

    def scale_counts(self, factor: float) -> None:
        """Multiply the options that count regions and were not given."""
        for name, option in self.options().items():
            if option.counts_regions and name not in self.given_options:
                self.__dict__[name] = max(1, round(option.default * factor))

    def settings(self) -> dict[str, Any]:
        """Return the values of the options; they are part of a run's key."""
        return {name: getattr(self, name) for name in self.options()}


def format_spec(thing: Configurable, always: Collection[str] = ()) -> str:
    """Return a policy or workload as people write it, with the options that differ from their
    defaults, and those to show ``always``.

    >>> from tidegate.plugins import prefetch
    >>> format_spec(prefetch.make("tree(threshold=75)"))
    'tree(threshold=75)'
    """
    declared = type(thing).options()
    changed = [
        declared[k].format(v) if k == thing.bare else f"{k}={declared[k].format(v)}"
        for k, v in thing.settings().items()
        if k in declared and (v != declared[k].default or k in always)
    ]
    name = thing.name or type(thing).__name__
    return f"{name}({', '.join(changed)})" if changed else name


_BOOLS = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(
    ("false", "0", "no", "off"), False
)
_KINDS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
}
_SPEC = re.compile(r"\s*([^()]+?)\s*(?:\((.*)\))?\s*", re.DOTALL)


def split_outside(text: str, at: str) -> list[str]:
    """Split at a character, but not within brackets.

    >>> split_outside("lfu(bins=2, remember=no), tournament(policies=lru+cp)", ",")
    ['lfu(bins=2, remember=no)', 'tournament(policies=lru+cp)']
    """
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == at and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]]]


def parse_spec(text: str, bare: str = "") -> tuple[str, dict[str, Any]]:
    """Split ``name(key=value, …)`` into the name and its options; words and sizes need no quotes.

    ``bare`` is the option that a value without a key is for.

    >>> parse_spec("cyclic(bytes=1GiB, passes=3)")
    ('cyclic', {'bytes': '1GiB', 'passes': 3})
    """
    match = _SPEC.fullmatch(text)
    if not match:
        raise TidegateError(f"cannot read '{text}'; expected name or name(option=value, …)")
    options: dict[str, Any] = {}
    for part in filter(None, split_outside(match[2] or "", ",")):
        key, equals, value = (x.strip() for x in part.partition("="))
        if bare and (not equals or "(" in key):
            key, equals, value = bare, "=", part
        # the constants of machines have dots in their names
        if not equals or not all(map(str.isidentifier, key.split("."))) or not value:
            raise TidegateError(f"cannot read '{part}' in '{text}'; expected option=value")
        if "|" in value:
            raise TidegateError(
                f"'{part}' in '{text}' has several values; that is for compare, give one here"
            )
        if key in options:
            raise TidegateError(f"option '{key}' is given twice in '{text}'; give it once")
        try:
            options[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[key] = value
    return match[1], options


def spec_name(text: str) -> str:
    """Return the name in ``name(key=value, …)``.

    >>> spec_name("steered(cp)")
    'steered'
    """
    match = _SPEC.fullmatch(text)
    return match[1] if match else parse_spec(text)[0]


def expand(text: str) -> list[str]:
    """Return every combination of the values in a sweep, in the order in which they are written.

    >>> expand("lfu(bins=2|4, decay=0.5)")
    ['lfu(bins=2, decay=0.5)', 'lfu(bins=4, decay=0.5)']
    """
    if "|" not in text or not _SPEC.fullmatch(text):
        return [text]
    name, bracket, rest = text.partition("(")
    if not bracket:
        return [text]
    choices = [_values_of(part, text) for part in split_outside(rest.rstrip()[:-1], ",")]
    return [f"{name}({', '.join(chosen)})" for chosen in itertools.product(*choices)]


def _values_of(part: str, text: str) -> list[str]:
    """Return ``option=value`` for each value of one option, which may be a sweep itself."""
    key, equals, values = part.partition("=")
    if not equals or "(" in key:  # a value without a key
        key, equals, values = "", "", part
    given = split_outside(values, "|")
    if equals and not all(given):
        raise TidegateError(f"cannot read '{part}' in '{text}'; expected option=value|value|…")
    return [f"{key}{equals}{one}" for value in given for one in expand(value)]

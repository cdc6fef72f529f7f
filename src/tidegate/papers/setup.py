"""Setup: what can be varied in a reproduction. Its fields make the options of the paper's command.

    @dataclass(frozen=True)
    class Setup(setup.Setup):
        observed: int = option(100, "Regions observed at a time.")    # --observed N

This module and the papers' ``setup.py`` import nothing heavy, so that ``--help`` is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.options import split_outside

_MOST_READINGS = 1_000_000


@dataclass(frozen=True)
class CommandOption:
    """One option of a command: the field of a ``Setup`` it sets, and how its text is read."""

    field: str
    flag: str
    help: str
    kind: type  # what the command line reads: int, float or str
    read: Callable[[Any], Any]
    shown: str  # its default; empty if there is none


def option(
    default: Any,
    help: str,
    *,
    flag: str = "",
    share: bool = False,
    changes_claims: bool = True,
    sweeps: bool = False,
    meaning: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """Declare a field that is an option of the command.

    ``flag``: its name there, if not the field's. ``share``: it may be written 1/8 or 50%.
    ``changes_claims``: with another value the setup is not the published one. ``sweeps``: a tuple
    of values; ``default`` has the published one, and others are for comparison. ``meaning``: of
    one value of a list; two with the same meaning, as 50% and 0.5, are refused.
    """
    declared = {"help": help, "flag": flag, "share": share, "meaning": meaning}
    return field(
        default=default, metadata=declared | {"changes_claims": changes_claims, "sweeps": sweeps}
    )


def require(holds: bool, expected: str, given: Any) -> None:
    """Raise "NAME must be …, got …" unless ``holds``."""
    if not holds:
        shown = f"{given:g}" if isinstance(given, float) else given
        raise TidegateError(f"{expected}, got {shown}")


@dataclass(frozen=True)
class Setup:
    """What can be varied in every reproduction. ``Setup()`` is the paper's own setup."""

    citation: ClassVar[str]
    year: ClassVar[int]
    example: ClassVar[str]  # of the command, for its help
    base: ClassVar[str] = ""  # the system that others are measured against
    tried: ClassVar[int] = 1024  # combinations of open readings that --robustness tries; 0: none

    scale: float = option(1.0, "Of the paper's sizes, e.g. 1/8.", share=True)
    readings: int = option(
        0, "Combinations of open readings to try, in place of --robustness's.", changes_claims=False
    )

    def __post_init__(self) -> None:
        require(self.scale > 0, "scale must be positive, such as 1/8", self.scale)
        require(self.scale <= 1024, "scale must be at most 1024", self.scale)
        expected = f"readings must be from 0 to {_MOST_READINGS}"
        require(0 <= self.readings <= _MOST_READINGS, expected, self.readings)
        systems = getattr(self, "systems", (self.base,))
        expected = f"systems must include {self.base}, which all others are compared with"
        require(self.base in systems, expected, ", ".join(systems))
        for f in fields(self):
            values = getattr(self, f.name)
            if "help" not in f.metadata or not isinstance(f.default, tuple):
                continue
            if not isinstance(values, tuple):  # one value may stand alone
                values = () if values is None else (values,)
                object.__setattr__(self, f.name, values)
            if f.metadata["sweeps"]:
                require(bool(values), f"{_flag(f)[2:]} must have a value", "none")
            meanings = set(map(f.metadata["meaning"], values))
            expected = f"{_flag(f)} must have each value once"
            require(len(meanings) == len(values), expected, ",".join(map(str, values)))

    @classmethod
    def quick(cls) -> Self:
        """Return a reduced setup."""
        return cls()

    @property
    def as_published(self) -> bool:
        """Whether the paper's claims were made for this setup; a sweep must have its value."""
        given = ((getattr(self, f.name), f) for f in fields(self))
        return all(
            _published(f) in value if f.metadata["sweeps"] else value == f.default
            for value, f in given
            if f.metadata.get("changes_claims")
        )

    @property
    def at(self) -> str:
        """How this differs from the published setup, for its verdicts: ``at 1/8``; or nothing."""
        if self.as_published:
            return ""
        given = {f: getattr(self, f.name) for f in fields(self) if "help" in f.metadata}
        for f, value in given.items():
            if f.name == "scale" and value < f.default:
                return f"at {_show(value, True)}"
        for f, value in given.items():
            if f.metadata["changes_claims"] and value != f.default:
                return f"with {_flag(f)} {_show(value, f.metadata['share'])}"
        return "on a smaller grid"

    def describe(self) -> str:
        """Return what is run, in a sentence or two."""
        raise NotImplementedError

    def swept(self) -> dict[str, tuple[Any, ...]]:
        """Return the options that have several values, with the values beside the main one."""
        found = {}
        for f in fields(self):
            if f.metadata.get("sweeps") and len(values := getattr(self, f.name)) > 1:
                found[f.name] = tuple(v for v in values if v != self.main(f.name))
        return found

    def main(self, name: str) -> Any:
        """Return a sweep's value for which claims are judged: the published one, or the first."""
        published = next(_published(f) for f in fields(self) if f.name == name)
        values = getattr(self, name)
        return published if published in values else values[0]

    @classmethod
    def options(cls) -> list[CommandOption]:
        """Return the options of the paper's command."""
        hints = get_type_hints(cls)
        declared = [f for f in fields(cls) if "help" in f.metadata]
        return [_option(f, hints[f.name]) for f in declared if f.name != "readings" or cls.tried]


def _published(f: Any) -> Any:
    """Return the published value of a field that sweeps."""
    return f.default[0]


def _flag(f: Any) -> str:
    return f.metadata["flag"] or f"--{f.name.replace('_', '-')}"


def _option(f: Any, hint: Any) -> CommandOption:
    flag = _flag(f)
    assert f.default is not MISSING
    shown = "" if f.default is None else _show(f.default, f.metadata["share"])
    if get_origin(hint) is tuple:
        read = _list_reader(flag, get_args(hint)[0], bool(f.default))
        return CommandOption(f.name, flag, f.metadata["help"], str, read, shown)
    if f.metadata["share"]:
        return CommandOption(
            f.name,
            flag,
            f.metadata["help"],
            str,
            lambda given: units.fraction(given, f.name),
            shown,
        )
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    kind = str if str in kinds else kinds[0]
    return CommandOption(f.name, flag, f.metadata["help"], kind, lambda given: given, shown)


def _show(value: Any, share: bool) -> str:
    if isinstance(value, tuple):
        return ",".join(_show(v, False) for v in value)
    if share:
        return str(Fraction(value).limit_denominator(1024))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _list_reader(flag: str, item: type, may_be_empty: bool) -> Callable[[str], tuple[Any, ...]]:
    """Return what reads a list with commas. Where the default is empty, an empty list is refused:
    it would be the same as none given.
    """

    def read(text: str) -> tuple[Any, ...]:
        try:
            found = tuple(item(part) for part in split_outside(text, ",") if part)
        except ValueError:
            raise TidegateError(
                f"{flag} must be numbers with commas, such as 4,9,14, got {text}"
            ) from None
        require(bool(found) or may_be_empty, f"{flag} must have a value", f"'{text}'")
        return found

    return read

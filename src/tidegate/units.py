"""Sizes, times, rates and shares as people write them: "24GiB", "20us", "936GB/s", "1/8", "50%".

Inside Tidegate sizes are bytes (int), times are nanoseconds (float), rates are bytes per nanosecond
(float; the same number as GB/s).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from tidegate.errors import TidegateError

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
US, MS, S = 1e3, 1e6, 1e9  # in nanoseconds

_SIZES = {"": 1, "b": 1}
for _power, _prefix in enumerate("kmgt", start=1):
    _SIZES |= {_prefix: 1000**_power, f"{_prefix}b": 1000**_power, f"{_prefix}ib": 1024**_power}
_LARGEST = 1 << 60
_TIMES = {"ns": 1.0, "us": US, "µs": US, "ms": MS, "s": S}
_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([^0-9\s.]*)\s*", re.IGNORECASE)


def size(text: str | int | float) -> int:
    """Return bytes. Decimal and binary units differ: 1GB = 10⁹, 1GiB = 2³⁰.

    >>> size("64KiB"), size("1.5 GB"), size(4096)
    (65536, 1500000000, 4096)
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        number: float = text
    else:
        number = _parse(text, "size", "a number and a unit such as 256MiB or 10GB", _SIZES)
    if not 0 <= number <= _LARGEST:
        raise TidegateError(
            f"size must be at least 0 and at most {show_size(_LARGEST)}, got '{text}'"
        )
    return round(number)


def duration(text: str | int | float) -> float:
    """Return nanoseconds. A bare number other than 0 is refused: its unit would be a guess.

    >>> duration("20us"), duration("1.5 ms")
    (20000.0, 1500000.0)
    """
    if text in (0, "0"):
        return 0.0
    return _parse(str(text), "time", "a number and one of ns, us, ms, s, such as 20us", _TIMES)


def rate(text: str | int | float) -> float:
    """Return bytes per nanosecond.

    >>> rate("22GB/s")
    22.0
    """
    amount, slash, per = str(text).partition("/")
    if not slash or per.strip() != "s":
        raise TidegateError(f"rate must be a size per second such as 22GB/s, got '{text}'")
    return size(amount) / S


def fraction(text: str | int | float, name: str = "share") -> float:
    """Return a share that is written as a percentage, a ratio or a number.

    ``name``: what an error calls it.

    >>> fraction("50%"), fraction("1/8"), fraction("0.25")
    (0.5, 0.125, 0.25)
    """
    given = str(text).strip()
    try:
        share = float(given[:-1]) / 100 if given.endswith("%") else float(Fraction(given))
        if not math.isfinite(share):
            raise ValueError
        return share
    except (ValueError, ZeroDivisionError, OverflowError):
        raise TidegateError(
            f"{name} must be a number such as 50%, 1/8 or 0.5, got '{text}'"
        ) from None


def oversubscription(text: str | int | float) -> float:
    """Return how much larger than near memory a footprint is, as a share.

    The text ``50`` is refused: 50% is more likely meant than 5000%.

    >>> oversubscription("50%"), oversubscription("2"), oversubscription(50)
    (0.5, 2.0, 50.0)
    """
    level = fraction(text, "oversubscribe")
    if level < 0:
        raise TidegateError(f"oversubscribe must be at least 0% (all of it fits), got {text}")
    if level >= 10 and isinstance(text, str) and not text.strip().endswith("%"):
        raise TidegateError(
            f"oversubscribe must end in % where it is 10 or more, got {text}; "
            f"write {text}% or, if that is meant, {100 * level:g}%"
        )
    return level


def fitting_share(text: str | int | float) -> float:
    """Return the share of a footprint that fits in near memory.

    >>> fitting_share("75%"), fitting_share("1/2")
    (0.75, 0.5)
    """
    share = fraction(text, "fits")
    if not 0 < share <= 1:
        raise TidegateError(f"fits must be above 0% and at most 100%, such as 75%, got {text}")
    return share


def show_size(n: float) -> str:
    """Return a size as text, in binary units.

    >>> show_size(65536), show_size(10_100_000_000), show_size(0)
    ('64.0 KiB', '9.41 GiB', '0 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024:
            return _significant(n, unit)
        n /= 1024
    return _significant(n, "TiB")


def exact_size(n: int) -> str:
    """Return a size as text that ``size`` reads as the same number, in the largest binary unit.

    >>> exact_size(65536), exact_size(1000), exact_size(0)
    ('64KiB', '1000', '0')
    """
    for power, unit in enumerate(("TiB", "GiB", "MiB", "KiB")):
        if n and n % 1024 ** (4 - power) == 0:
            return f"{n // 1024 ** (4 - power)}{unit}"
    return str(n)


def show_fit(footprint: float, near: float) -> str:
    """Return how a footprint fits near memory, as text.

    >>> show_fit(150, 100), show_fit(50, 100)
    ('50% oversubscribed', 'it fits')
    """
    over = footprint / near - 1
    return f"{over:.0%} oversubscribed" if over > 0.0005 else "it fits"


def show_duration(ns: float) -> str:
    """Return a time as text.

    >>> show_duration(20_000), show_duration(2.5e9)
    ('20.0 us', '2.50 s')
    """
    for unit, scale in (("ns", 1.0), ("us", US), ("ms", MS)):
        if abs(ns) < 1000 * scale:
            return _significant(ns / scale, unit)
    return _significant(ns / S, "s")


def counted(n: int, noun: str) -> str:
    """Return a number of things as text.

    >>> counted(1, "array"), counted(2000, "array"), counted(5, "launch")
    ('1 array', '2,000 arrays', '5 launches')
    """
    plural = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{n:,} {noun}" + ("" if n == 1 else plural)


def show_count(n: float) -> str:
    """Return a number as text, with k, M, G or T.

    >>> show_count(950), show_count(20_000_000)
    ('950', '20.0 M')
    """
    for unit in ("", "k", "M", "G"):
        if abs(n) < 1000:
            return _significant(n, unit).rstrip()
        n /= 1000
    return _significant(n, "T")


def _parse(text: object, name: str, expected: str, units: Mapping[str, float]) -> float:
    """Return a number with a unit, in the smallest unit."""
    match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    scale = units.get(match[2].lower()) if match else None
    number = float(match[1]) * scale if match and scale else math.inf
    if not math.isfinite(number):
        raise TidegateError(f"{name} must be {expected}, got {text!r}")
    return number


def _significant(x: float, unit: str) -> str:
    if x == int(x) and abs(x) < 1000 and unit in ("B", ""):
        return f"{int(x)} {unit}"
    digits = 2 if abs(x) < 10 else 1 if abs(x) < 100 else 0
    return f"{x:.{digits}f} {unit}"

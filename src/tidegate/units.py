"""Sizes, times and rates as people write them: "24GiB", "20us", "936GB/s", "1/8", "50%".

Inside Tidegate sizes are bytes (int), times are nanoseconds (float), rates are bytes per nanosecond
(float; the same number as GB/s).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from tidegate.errors import TidegateError

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
US, MS, S = 1e3, 1e6, 1e9  # in nanoseconds

_SIZES = {
    "": 1,
    "b": 1,
    "k": 10**3,
    "kb": 10**3,
    "m": 10**6,
    "mb": 10**6,
    "g": 10**9,
    "gb": 10**9,
    "t": 10**12,
    "tb": 10**12,
    "kib": KiB,
    "mib": MiB,
    "gib": GiB,
    "tib": 1 << 40,
}
_LARGEST = 1 << 60
_TIMES = {"ns": 1.0, "us": US, "µs": US, "ms": MS, "s": S}
_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([^0-9\s.]*)\s*", re.IGNORECASE)


def size(text: str | int | float) -> int:
    """Bytes. Decimal and binary units are different things: 1GB = 10⁹, 1GiB = 2³⁰.

    >>> size("64KiB"), size("1.5 GB"), size(4096)
    (65536, 1500000000, 4096)
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        return _whole(text, text)
    if not isinstance(text, str):
        raise TidegateError(
            f"{text!r} is not a size; expected a number and a unit such as 256MiB or 10GB"
        )
    number, unit = _split(text, "a size such as 256MiB or 10GB")
    if unit.lower() not in _SIZES:
        raise TidegateError(
            f"'{text}' is not a size; expected a number and a unit such as 256MiB or 10GB"
        )
    return _whole(number * _SIZES[unit.lower()], text)


def duration(text: str | int | float) -> float:
    """Nanoseconds. A bare number is refused unless it is 0, because its unit would be a guess.

    >>> duration("20us"), duration("1.5 ms")
    (20000.0, 1500000.0)
    """
    if text in (0, "0"):
        return 0.0
    number, unit = _split(str(text), "a time such as 20us or 1.5ms")
    if unit.lower() not in _TIMES:
        raise TidegateError(
            f"'{text}' is not a time; expected a number and one of ns, us, ms, s, such as 20us"
        )
    time = number * _TIMES[unit.lower()]
    if not math.isfinite(time):
        raise TidegateError(f"'{text}' is not a time that exists")
    return time


def rate(text: str | int | float) -> float:
    """Bytes per nanosecond.

    >>> rate("22GB/s")
    22.0
    """
    amount, slash, per = str(text).partition("/")
    if not slash or per.strip() != "s":
        raise TidegateError(f"'{text}' is not a rate; expected a size per second such as 22GB/s")
    return size(amount) / S


def fraction(text: str | int | float) -> float:
    """A share, written as a percentage, a ratio or a number.

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
            f"'{text}' is not a share; expected something like 50%, 1/8 or 0.5"
        ) from None


def oversubscription(text: str | int | float) -> float:
    """How much larger than near memory a footprint is, as a share. Who writes ``50`` hardly means
    5000 %, so it is refused.

    >>> oversubscription("50%"), oversubscription("2"), oversubscription(50)
    (0.5, 2.0, 50.0)
    """
    level = fraction(text)
    if level < 0:
        raise TidegateError(f"oversubscribe={text} is negative; 0% means that everything just fits")
    if level >= 10 and isinstance(text, str) and not text.strip().endswith("%"):
        raise TidegateError(
            f"oversubscribe={text} is {100 * level:g}%; write {text}% or, if that is meant, {100 * level:g}%"
        )
    return level


def show_size(n: float) -> str:
    """
    >>> show_size(65536), show_size(10_100_000_000), show_size(0)
    ('64.0 KiB', '9.41 GiB', '0 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024:
            return _significant(n, unit)
        n /= 1024
    return _significant(n, "TiB")


def show_duration(ns: float) -> str:
    """
    >>> show_duration(20_000), show_duration(2.5e9)
    ('20.0 us', '2.50 s')
    """
    for unit, scale in (("ns", 1.0), ("us", US), ("ms", MS)):
        if abs(ns) < 1000 * scale:
            return _significant(ns / scale, unit)
    return _significant(ns / S, "s")


def counted(n: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "array"), counted(2000, "array")
    ('1 array', '2,000 arrays')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def show_count(n: float) -> str:
    """
    >>> show_count(950), show_count(20_000_000)
    ('950', '20.0 M')
    """
    for unit in ("", "k", "M", "G"):
        if abs(n) < 1000:
            return _significant(n, unit).rstrip()
        n /= 1000
    return _significant(n, "T")


def _split(text: str, expected: str) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text)
    if not match:
        raise TidegateError(f"'{text}' is not {expected.split(' such')[0]}; expected {expected}")
    return float(match[1]), match[2]


def _whole(number: float, given: object) -> int:
    if not math.isfinite(number):
        raise TidegateError(f"'{given}' is not a size that exists")
    if number < 0:
        raise TidegateError(f"'{given}' is negative; a size is at least 0")
    if number > _LARGEST:
        raise TidegateError(
            f"'{given}' is larger than {show_size(_LARGEST)}, and so than anything here"
        )
    return round(number)


def _significant(x: float, unit: str) -> str:
    if x == int(x) and abs(x) < 1000 and unit in ("B", ""):
        return f"{int(x)} {unit}"
    digits = 2 if abs(x) < 10 else 1 if abs(x) < 100 else 0
    return f"{x:.{digits}f} {unit}"

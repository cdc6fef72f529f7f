"""Machine: the constants of a GPU, its link and its driver, as far as memory policy can tell.

A machine is a TOML file. Sizes, times and rates are written as people write them. A constant may
carry its source:

    [link]
    inward = { value = "22GB/s", source = "MSched (arXiv 2512.24637), table 2" }
    outward = "22GB/s"

so that a user's own file can be short and a preset can be checked.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.errors import TidegateError, UnknownName
from tidegate.trace.geometry import Geometry

FRAMES = ("region", "page")
_PRESETS = Path(__file__).parent / "presets"


def _constant(parse: Callable[[Any], Any], **kwargs: Any) -> Any:
    return field(metadata={"parse": parse}, **kwargs)


def _count(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise TidegateError(f"{given!r} is not a whole number of at least 1")
    return given


def _flops(given: Any) -> float:
    """FLOP per nanosecond; written in TFLOPS."""
    try:
        number, unit = str(given).strip()[:-6], str(given).strip()[-6:]
        if unit != "TFLOPS" or not 0 < float(number) < math.inf:
            raise ValueError
    except ValueError:
        raise TidegateError(
            f"'{given}' is not a speed of arithmetic; expected e.g. 35.6TFLOPS"
        ) from None
    return float(number) * 1e3


def _rate(given: Any) -> float:
    """Bytes per nanosecond, of which there are some."""
    rate = units.rate(given)
    if rate <= 0:
        raise TidegateError(
            f"'{given}' never gets anywhere; expected a rate above 0, such as 22GB/s"
        )
    return rate


def _share(given: Any) -> float:
    """A share above 0 and up to 1."""
    share = units.fraction(given)
    if not 0 < share <= 1:
        raise TidegateError(f"{given} is not between 0 and 1; expected a share such as 0.9")
    return share


def _switch(given: Any) -> bool:
    if not isinstance(given, bool):
        raise TidegateError(f"{given!r} is not true or false")
    return given


def _frame(given: Any) -> str:
    if given not in FRAMES:
        raise TidegateError(f"frame = {given!r} is not known; expected one of {', '.join(FRAMES)}")
    return str(given)


def _levels(given: Any) -> tuple[str, ...]:
    known = ("faults", "samples", "touch bits", "everything")
    if not isinstance(given, list):
        raise TidegateError(
            f"offers = {given!r} is not a list; expected one of {', '.join(known)} or several, in brackets"
        )
    for level in given:
        if level not in known:
            raise UnknownName("visibility level", str(level), known)
    return tuple(given)


@dataclass(frozen=True)
class Near:
    """The fast memory and the processors beside it."""

    sms: int = _constant(_count)
    blocks_per_sm: int = _constant(_count)
    bytes: int = _constant(units.size)
    bandwidth: float = _constant(_rate)
    flops: float = _constant(_flops)
    # the least a touch takes, however few its bytes
    latency: float = _constant(units.duration, default=0.0)
    launch_overhead: float = _constant(units.duration, default=0.0)
    # what near memory is given out by: whole regions, or pages
    frame: str = _constant(_frame, default="region")

    @property
    def slots(self) -> int:
        """Room for resident blocks: SMs × resident blocks."""
        return self.sms * self.blocks_per_sm


@dataclass(frozen=True)
class Link:
    """The way between near and far memory: two directions, and what crossing it without migrating
    costs.
    """

    inward: float = _constant(_rate)
    outward: float = _constant(_rate)
    both: float = _constant(_rate)  # both directions at once, added up
    run_overhead: float = _constant(units.duration)  # per contiguous run migrated
    remote_share: float = _constant(_share)  # of inward, that remote access reaches
    remote_latency: float = _constant(units.duration)  # of one remote touch


@dataclass(frozen=True)
class Driver:
    """The serial driver that serves faults."""

    batch_faults: int = _constant(_count)
    batch_overhead: float = _constant(units.duration)
    region_overhead: float = _constant(units.duration)
    unmap_per_kib: float = _constant(units.duration)  # for data still mapped on the CPU
    # asking a policy that runs outside the driver
    decision: float = _constant(units.duration, default=0.0)
    counters: int = _constant(_count, default=256)  # access counters of the hardware
    # taking a sampled page away, beside its transfer
    sample: float = _constant(units.duration, default=0.0)
    # handling one, beside the page's way home
    notification: float = _constant(units.duration, default=0.0)
    # eviction and migration overlap on the link
    pipelined: bool = _constant(_switch, default=False)


@dataclass(frozen=True)
class Storage:
    """The tier behind host memory, where the machine has one."""

    read: float = _constant(_rate)
    write: float = _constant(_rate)
    page_read: float = _constant(units.duration)
    host_page: float = _constant(units.duration)
    lookup: float = _constant(units.duration)


@dataclass(frozen=True)
class Machine:
    """Everything the mechanism asks about the hardware.

    >>> load_machine("rtx3090-pcie4").near.slots
    656
    """

    name: str
    description: str
    geometry: Geometry
    offers: tuple[str, ...]  # the visibility levels its hardware really has
    near: Near
    link: Link
    driver: Driver
    storage: Storage | None = None
    sources: dict[str, str] = field(default_factory=dict, compare=False, hash=False)

    def with_slots(self, slots: int) -> Machine:
        """The same machine with another number of slots; one slot is a plain sequential cache."""
        return dataclasses.replace(
            self, near=dataclasses.replace(self.near, sms=slots, blocks_per_sm=1)
        )

    def with_pipeline(self, pipelined: bool) -> Machine:
        """The same machine, whose driver does or does not overlap eviction with migration."""
        return dataclasses.replace(
            self, driver=dataclasses.replace(self.driver, pipelined=pipelined)
        )

    def with_copies(self) -> Machine:
        """The same for a program that copies by itself: the driver unmaps nothing and has no work
        with regions.
        """
        return dataclasses.replace(
            self, driver=dataclasses.replace(self.driver, unmap_per_kib=0.0, region_overhead=0.0)
        )

    def constants(self) -> dict[str, Any]:
        """Every constant, flat: part of what names a run."""
        return dataclasses.asdict(dataclasses.replace(self, sources={}))


def preset_names() -> list[str]:
    """The machines that come with Tidegate."""
    return sorted(p.stem for p in _PRESETS.glob("*.toml"))


def load_machine(name: str | Path | Machine) -> Machine:
    """A preset by name, or a user's own TOML file by path."""
    if isinstance(name, Machine):
        return name
    if str(name).endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise TidegateError(
                f"no machine file {path}; expected a TOML file or one of {', '.join(preset_names())}"
            )
    elif str(name) in preset_names():
        path = _PRESETS / f"{name}.toml"
    else:
        raise UnknownName("machine", str(name), preset_names())
    try:
        table = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TidegateError(f"machine file {path} is not TOML: {error}") from error
    try:
        return _build(table, path.stem)
    except TidegateError as error:
        raise TidegateError(f"machine file {path}: {error}") from error


_TABLES: dict[str, type] = {
    "near": Near,
    "link": Link,
    "driver": Driver,
    "storage": Storage,
    "geometry": Geometry,
}


def _build(table: dict[str, Any], name: str) -> Machine:
    allowed = {"name", "description", "offers", *_TABLES}
    for key in table:
        if key not in allowed:
            raise UnknownName("key", key, allowed)
    sources: dict[str, str] = {}
    parts = {
        key: _read(cls, table[key], key, sources)
        for key, cls in _TABLES.items()
        if key in table or key not in ("storage",)
        if key in table or _missing(f"table [{key}]")
    }
    for key in ("name", "description"):
        if not isinstance(table.get(key, ""), str):
            raise TidegateError(f"{key} = {table[key]!r} is not a text")
    return Machine(
        name=table.get("name", name),
        description=table.get("description", ""),
        offers=_levels(_value(table.get("offers", ["faults"]), "offers", sources)),
        sources=sources,
        **parts,
    )


def _missing(what: str) -> bool:
    raise TidegateError(f"{what} is missing")


def _read(cls: type, table: Any, label: str, sources: dict[str, str]) -> Any:
    if not isinstance(table, dict):
        raise TidegateError(f"[{label}] must be a table")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key in table:
        if key not in fields:
            raise UnknownName(f"key of [{label}]", key, fields)
    values: dict[str, Any] = {}
    for key, constant in fields.items():
        if key not in table:
            if constant.default is dataclasses.MISSING:
                _missing(f"{label}.{key}")
            continue
        given = _value(table[key], f"{label}.{key}", sources)
        try:
            values[key] = constant.metadata["parse"](given)
        except (TidegateError, ValueError, TypeError) as error:
            raise TidegateError(f"{label}.{key}: {error}") from error
    return cls(**values)


def _value(given: Any, label: str, sources: dict[str, str]) -> Any:
    """The value itself, putting its source aside where it has one."""
    if isinstance(given, dict):
        if set(given) - {"value", "source"} or "value" not in given:
            raise TidegateError(f'{label}: expected a value, or {{ value = …, source = "…" }}')
        sources[label] = str(given.get("source", ""))
        return given["value"]
    return given

"""Machine: the constants of a GPU, its link and its driver that matter to memory policies.

A machine is a TOML file. Sizes, times and rates have units. A constant may have its source:

    [link]
    inward = { value = "22GB/s", source = "MSched (arXiv 2512.24637), table 2" }
    outward = "22GB/s"

A user's own file can be short; a preset can be checked. ``gh200(link.inward=100GB/s)`` is a preset
or file with another constant.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.errors import TidegateError, UnknownName
from tidegate.options import parse_spec
from tidegate.trace.geometry import Geometry

FRAMES = ("region", "page")
_PRESETS = Path(__file__).parent / "presets"


def _constant(parse: Callable[[Any], Any], **kwargs: Any) -> Any:
    return field(metadata={"parse": parse}, **kwargs)


def _count(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise TidegateError(f"must be a whole number of at least 1, got {given!r}")
    return given


def _count_or_none(given: Any) -> int | None:
    return None if given == 0 and not isinstance(given, bool) else _count(given)


def _flops(given: Any) -> float:
    """Return FLOP per nanosecond of a text in TFLOPS."""
    try:
        number, unit = str(given).strip()[:-6], str(given).strip()[-6:]
        if unit != "TFLOPS" or not 0 < float(number) < math.inf:
            raise ValueError
    except ValueError:
        raise TidegateError(
            f"must be positive and in TFLOPS, such as 35.6TFLOPS, got '{given}'"
        ) from None
    return float(number) * 1e3


def _rate(given: Any) -> float:
    """Return a positive rate in bytes per nanosecond."""
    rate = units.rate(given)
    if rate <= 0:
        raise TidegateError(f"must be a rate above 0, such as 22GB/s, got '{given}'")
    return rate


def _share(given: Any) -> float:
    """Return a share above 0 and up to 1."""
    share = units.fraction(given)
    if not 0 < share <= 1:
        raise TidegateError(f"must be above 0 and at most 1, such as 0.9, got {given}")
    return share


def _jitter(given: Any) -> float:
    """Return a share from 0 on, below 1."""
    share = units.fraction(given)
    if not 0 <= share < 1:
        raise TidegateError(f"must be at least 0 and below 1, such as 0.05, got {given}")
    return share


def _switch(given: Any) -> bool:
    if not isinstance(given, bool):
        raise TidegateError(f"must be true or false, got {given!r}")
    return given


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def parse(given: Any) -> str:
        if given not in choices:
            raise TidegateError(f"must be one of {', '.join(choices)}, got {given!r}")
        return str(given)

    return parse


def _levels(given: Any) -> tuple[str, ...]:
    known = ("faults", "samples", "touch bits", "everything")
    if not isinstance(given, list):
        raise TidegateError(f"offers must be a list of some of {', '.join(known)}, got {given!r}")
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
    latency: float = _constant(units.duration, default=0.0)  # the least time of a touch
    launch_overhead: float = _constant(units.duration, default=0.0)
    # unit of allocation: regions or pages
    frame: str = _constant(_one_of(FRAMES), default="region")
    jitter: float = _constant(_jitter, default=0.0)  # share by which slots differ in speed, at most
    # faults that a thread block raises at once, of touches of one kind; None: as its µTLB, or one
    block_faults: int | None = _constant(_count_or_none, default=None)
    # SMs that translate addresses in one µTLB
    utlb_sms: int = _constant(_count, default=1)
    # faults that a µTLB raises at once, in the order of its blocks' stalls; µTLBs fill a batch by
    # number. 0 in a file, None here: blocks fill it in the order of their stalls
    utlb_faults: int | None = _constant(_count_or_none, default=None)

    @property
    def slots(self) -> int:
        """Resident blocks that fit: SMs × blocks per SM."""
        return self.sms * self.blocks_per_sm


@dataclass(frozen=True)
class Link:
    """The link between near and far memory: its two directions, and the cost of remote access."""

    inward: float = _constant(_rate)
    outward: float = _constant(_rate)
    both: float = _constant(_rate)  # sum of both directions at once
    run_overhead: float = _constant(units.duration)  # per contiguous run migrated
    remote_share: float = _constant(_share)  # share of ``inward`` that remote access reaches
    remote_latency: float = _constant(units.duration)  # of one remote touch
    # per contiguous run written back
    run_overhead_outward: float = _constant(units.duration, default=0.0)


@dataclass(frozen=True)
class Driver:
    """The serial driver that serves faults."""

    batch_faults: int = _constant(_count)
    batch_overhead: float = _constant(units.duration)
    region_overhead: float = _constant(units.duration)
    unmap_per_kib: float = _constant(units.duration)  # for data still mapped on the CPU
    # the same for prefetches, which unmap in batches; None: as for faults
    unmap_prefetched_per_kib: float | None = _constant(units.duration, default=None)
    evict_overhead: float = _constant(units.duration, default=0.0)  # per region, beside its bytes
    copy_overhead: float = _constant(units.duration, default=0.0)  # processor time of each run
    first_overhead: float = _constant(units.duration, default=0.0)  # a region's first service
    # what one fault asks for: it is copied apart from the rest of its page; None: the page
    fault_bytes: int | None = _constant(units.size, default=None)
    # copies are queued, and the driver goes on to the next region; it waits before the replay
    asynchronous: bool = _constant(_switch, default=False)
    # the prefetch tree of an allocation's last region has a power of two of leaves
    round_tails: bool = _constant(_switch, default=False)
    # what a runtime evicts is mapped on the CPU again, so that its return pays for unmapping
    evict_maps: bool = _constant(_switch, default=True)
    # so are the driver's own victims
    victims_mapped: bool = _constant(_switch, default=False)
    decision: float = _constant(units.duration, default=0.0)  # per call of a policy outside it
    counters: int = _constant(_count, default=256)  # access counters of the hardware
    sample: float = _constant(units.duration, default=0.0)  # unmapping a page, without its transfer
    # per batch of notifications, without the pages' transfers
    notification: float = _constant(units.duration, default=0.0)
    batch_notifications: int = _constant(_count, default=256)
    pipelined: bool = _constant(_switch, default=False)  # eviction overlaps with migration


@dataclass(frozen=True)
class Rates:
    """Operations per ns by type, where they differ from ``near.flops``; 0 where it is not known."""

    fp64: float = _constant(_flops, default=0.0)
    tf32: float = _constant(_flops, default=0.0)
    fp16: float = _constant(_flops, default=0.0)
    bf16: float = _constant(_flops, default=0.0)
    fp8: float = _constant(_flops, default=0.0)
    int8: float = _constant(_flops, default=0.0)


@dataclass(frozen=True)
class Storage:
    """The tier behind host memory, if the machine has one."""

    read: float = _constant(_rate)
    write: float = _constant(_rate)
    page_read: float = _constant(units.duration)
    host_page: float = _constant(units.duration)
    lookup: float = _constant(units.duration)


@dataclass(frozen=True)
class Machine:
    """All constants of the hardware that the mechanism uses.

    >>> load_machine("rtx3090-pcie4").near.slots
    656
    """

    name: str
    description: str
    geometry: Geometry
    offers: tuple[str, ...]  # the visibility levels of its hardware
    near: Near
    link: Link
    driver: Driver
    storage: Storage | None = None
    rates: Rates = field(default_factory=Rates)
    sources: dict[str, str] = field(default_factory=dict, compare=False, hash=False)

    def rate(self, dtype: str) -> float:
        """Return operations per ns for a type; FP32's for one that the machine has no rate for."""
        return float(getattr(self.rates, dtype, 0.0) or self.near.flops)

    def has_rate(self, dtype: str) -> bool:
        """Return whether the machine's file gives a rate for this type."""
        return dtype == "fp32" or getattr(self.rates, dtype) > 0

    def with_slots(self, slots: int) -> Machine:
        """Return this machine with another number of slots; one slot is a sequential cache."""
        return replace(self, near=replace(self.near, sms=slots, blocks_per_sm=1))

    def with_pipeline(self, pipelined: bool) -> Machine:
        """Return this machine with a driver that overlaps eviction with migration, or does not."""
        return replace(self, driver=replace(self.driver, pipelined=pipelined))

    def with_copies(self) -> Machine:
        """Return this machine for a program with explicit copies: the driver unmaps nothing and
        has no overhead per region.
        """
        driver = replace(
            self.driver,
            unmap_per_kib=0.0,
            unmap_prefetched_per_kib=None,
            region_overhead=0.0,
            evict_overhead=0.0,
            copy_overhead=0.0,
            first_overhead=0.0,
            fault_bytes=None,
        )
        return replace(self, driver=driver)

    def constants(self) -> dict[str, Any]:
        """Return every constant, for the identity of a run."""
        return dataclasses.asdict(replace(self, sources={}))

    def code_dependencies(self) -> tuple[type, ...]:
        """Return the classes of the machine and its parts, which also name its runs."""
        return type(self), *map(type, (self.near, self.link, self.driver, self.storage))


@functools.cache
def preset_names() -> list[str]:
    """Return the names of Tidegate's own machines."""
    return sorted(p.stem for p in _PRESETS.glob("*.toml"))


def machine_file(name: str) -> Path:
    """Return the TOML file of a preset, or of a user's machine by its path.

    >>> machine_file("t4-pcie3").name
    't4-pcie3.toml'
    """
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            presets = ", ".join(preset_names())
            raise TidegateError(f"no machine file {path}; give a TOML file or one of {presets}")
        return path
    if name in preset_names():
        return _PRESETS / f"{name}.toml"
    if Path(name).is_dir():
        raise TidegateError(f"{name} is a folder; give a TOML file, or the name of a machine")
    raise UnknownName("machine", name, preset_names())


def load_machine(name: str | Path | Machine) -> Machine:
    """Return a preset by its name, or a user's own machine by the path of its TOML file; constants
    in brackets replace those of the file.

    >>> load_machine("rtx3090-pcie4(link.inward=12GB/s)").link.inward
    12.0
    """
    if isinstance(name, Machine):
        return name
    given = str(name)
    name, constants = (given, {}) if given.endswith(".toml") else parse_spec(given)
    path = machine_file(name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TidegateError(f"machine file {path} is not TOML: {error}") from error
    return _from_text(text, path, given, tuple(constants.items()))


@functools.lru_cache(maxsize=256)  # a grid asks for the same few machines thousands of times
def _from_text(
    text: str, path: Path, given: str, constants: tuple[tuple[str, Any], ...]
) -> Machine:
    """Return the machine of a file's text, with some constants replaced."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TidegateError(f"machine file {path} is not TOML: {error}") from error
    try:
        machine = _build(table, path.stem)
    except TidegateError as error:
        raise TidegateError(f"machine file {path}: {error}") from error
    if not constants:
        return machine
    try:
        return _build(_with_constants(table, dict(constants), machine.name), path.stem)
    except TidegateError as error:
        raise TidegateError(f"machine '{given}': {error}") from error


def _with_constants(table: dict[str, Any], constants: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a machine's table with some constants replaced, and a name that says so."""
    changed = {key: dict(part) if isinstance(part, dict) else part for key, part in table.items()}
    for key, value in constants.items():
        section, _, constant = key.partition(".")
        if section not in _TABLES or not constant:
            raise TidegateError(
                f"constants are named TABLE.NAME, such as link.inward, got '{key}'; "
                f"the tables are {', '.join(_TABLES)}"
            )
        truth = {"true": True, "false": False}.get(str(value).lower(), value)
        changed.setdefault(section, {})[constant] = truth
    spelled = ", ".join(f"{key}={value}" for key, value in constants.items())
    return changed | {"name": f"{name}({spelled})"}


_TABLES: dict[str, type] = {
    "near": Near,
    "link": Link,
    "driver": Driver,
    "storage": Storage,
    "rates": Rates,
    "geometry": Geometry,
}


def _build(table: dict[str, Any], name: str) -> Machine:
    allowed = {"name", "description", "offers", *_TABLES}
    for key in table:
        if key not in allowed:
            raise UnknownName("key", key, allowed)
    for key in _TABLES:
        if key not in table and key not in ("storage", "rates"):
            raise TidegateError(f"table [{key}] is missing")
    sources: dict[str, str] = {}
    parts = {k: _read(cls, table[k], k, sources) for k, cls in _TABLES.items() if k in table}
    for key in ("name", "description"):
        if not isinstance(table.get(key, ""), str):
            raise TidegateError(f"{key} must be a text, got {table[key]!r}")
    return Machine(
        name=table.get("name", name),
        description=table.get("description", ""),
        offers=_levels(_value(table.get("offers", ["faults"]), "offers", sources)),
        sources=sources,
        **parts,
    )


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
                raise TidegateError(f"{label}.{key} is missing")
            continue
        given = _value(table[key], f"{label}.{key}", sources)
        try:
            values[key] = constant.metadata["parse"](given)
        except (TidegateError, ValueError, TypeError) as error:
            raise TidegateError(f"{label}.{key}: {error}") from error
    return cls(**values)


def _value(given: Any, label: str, sources: dict[str, str]) -> Any:
    """Return a constant's value, and add its source to ``sources`` if it has one."""
    if isinstance(given, dict):
        if set(given) - {"value", "source"} or "value" not in given:
            raise TidegateError(
                f'{label} must be a value or {{ value = …, source = "…" }}, '
                f"got a table of {', '.join(given) or 'nothing'}"
            )
        sources[label] = str(given.get("source", ""))
        return given["value"]
    return given

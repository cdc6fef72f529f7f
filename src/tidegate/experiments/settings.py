"""Settings of a run: every field with its help and bounds, from which commands make their options.

    RunSettings    what people set
    GpuModel       how the simulated driver observes, writes back and overlaps: papers set it
    TierModel      how three tiers serve misses and move pages: papers set it

Files, commands and the studio give all of them by name, flat. This module imports nothing heavy, so
that ``--help`` is quick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from operator import index
from typing import TYPE_CHECKING, Any, Self

from tidegate.errors import TidegateError, UnknownName

if TYPE_CHECKING:
    from tidegate.machine.machine import Machine
    from tidegate.policies.registries import EvictionLike, PlacementLike, PrefetchLike, TieringLike
    from tidegate.trace.geometry import Geometry
    from tidegate.workloads.program import WorkloadLike

SIZES = ("near", "oversubscribe", "fits")  # give one of them, or none
MODELS = ("gpu", "tiers")
_MOST = 2**31 - 1
_TWO_TIERS = ("system", "prefetch", "placement", "geometry", "checked")


def setting(
    default: Any, help: str = "", *, flag: str = "", least: int | None = None, most: int = _MOST
) -> Any:
    """Declare a setting. ``help``: of its option; without it there is none. ``flag``: the option's
    name if not the field's. ``least``: it is a whole number, from ``least`` to ``most``.
    """
    whole = None if least is None else (least, most)
    return field(default=default, metadata={"help": help, "flag": flag, "whole": whole})


def _check_values(settings: Any) -> None:
    """Refuse numbers out of their bounds, and what is neither True nor False where one is asked."""
    cls: Any = type(settings)  # mypy takes no class for hashable
    bounds, flags = _checks(cls)
    for name, (least, most) in bounds.items():
        check_whole(name, getattr(settings, name), least, most)
    for name, allowed in flags.items():
        value = getattr(settings, name)
        if not any(value is one for one in allowed):
            raise TidegateError(f"{name} must be True or False, got {value!r}")


@cache
def _checks(cls: Any) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[Any, ...]]]:
    """Return the bounds of numbers, and the values of flags, by field."""
    bounds = {f.name: f.metadata["whole"] for f in fields(cls) if f.metadata.get("whole")}
    allowed = {"bool": (True, False), "bool | None": (True, False, None)}
    return bounds, {f.name: allowed[str(f.type)] for f in fields(cls) if f.type in allowed}


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    """Refuse anything but a whole number from ``least`` to ``most``; None is one not given."""
    bound = f"at least {least}"
    try:
        if value is None or least <= index(value) <= most:
            return
        bound = f"at most {most}" if value > most else bound
    except TypeError:
        pass
    raise TidegateError(f"{name} must be a whole number, {bound}, got {value!r}")


def check_sizes(given: list[str]) -> None:
    """Refuse several ways to give the size of near memory at once."""
    if len(given) > 1:
        raise TidegateError(
            f"{' and '.join(given)} were both given; they say the same thing, give one"
        )


@dataclass(frozen=True)
class GpuModel:
    """How the simulated driver works beyond what its machine says."""

    dirty_only: bool = setting(
        False, "Write back only pages that were written; the driver writes all."
    )
    samples: int = setting(0, "Pages sampled per observed region; 0 adapts the number.", least=0)
    observed: int | None = setting(
        None, "Regions observed at a time; by default what the policies declare.", least=1
    )
    # evicted regions by which the number of samples is judged; by default as many as observed
    watched: int | None = setting(None, least=1)
    # by which policies' options that count regions are scaled; by default as the workload is
    count_scale: float | None = None
    pipelined: bool | None = setting(
        None, "Overlap eviction with migration, or not.", flag="--pipelined/--serial"
    )

    def __post_init__(self) -> None:
        _check_values(self)


@dataclass(frozen=True)
class TierModel:
    """How three tiers work beyond what their machine says."""

    service: str | None = None  # serves misses; by default as the tiering policy declares
    shared: bool = True  # the SSD reads and writes from one queue
    read_ahead: bool = False  # of the page cache, where the CPU serves misses
    transfers: str = "hybrid"  # between near and middle: Hybrid-32T, or always zero-copy
    spare: bool = False  # frames are set apart, so that no page waits for its victim
    jitter: int = setting(0, least=0)  # touches so far apart at most may change places
    # candidates that may stay before one has to go; by default as the simulation has it
    most_stays: int | None = setting(None, least=0)
    flush: bool = setting(
        True, "With --tiering: leave what is dirty at the end where it is.", flag="--no-flush"
    )
    traits: bool = False  # also describe the trace: reuse and remaining distances

    def __post_init__(self) -> None:
        _check_values(self)


@dataclass(frozen=True)
class RunSettings:
    """The fields of ``RunSpec``, which says what they mean."""

    workload: WorkloadLike
    machine: str | Machine | None = setting(
        None,
        "A preset or your own TOML file; by default that of the application's paper, or "
        "rtx3090-pcie4, or with tiers a100-pcie3-ssd.",
    )
    system: str = setting(
        "uvm",
        "A published bundle of policies, uvm by default; the options below replace its parts.",
    )
    eviction: EvictionLike | None = setting(
        None,
        "An eviction policy, with options: 'random(seed=1)'; or your own: mine.py:MyPolicy.",
        flag="-e",
    )
    prefetch: PrefetchLike | None = setting(None, "A prefetch policy.")
    placement: PlacementLike | None = setting(None, "A placement policy.")
    tiering: TieringLike | None = setting(
        None, "Three tiers, and where pages go that leave near memory: tier-reuse, mine.py:MyTier …"
    )
    near: str | int | None = setting(None, "Near memory, e.g. 512MiB.")
    middle: str | int | None = setting(
        None, "With --tiering: host memory before the SSD; by default 4 times near memory."
    )
    oversubscribe: str | float | None = setting(
        None, "How much larger than near memory the footprint is; 50% if no size is given."
    )
    fits: str | float | None = setting(None, "Share of the footprint that fits, e.g. 75%.")
    bytes: str | int | None = setting(None, "The workload's footprint, e.g. 10GB.")
    scale: str | float | None = setting(
        None, "Of the workload's size, e.g. 1/8; fewer regions are observed, too."
    )
    geometry: str | Geometry | None = setting(
        None, "PAGE/REGION, e.g. 4KiB/64KiB; the machine's by default."
    )
    slots: int | None = setting(
        None, "Slots in place of the machine's; 1 is a sequential cache.", least=1, most=1 << 20
    )
    compiled: bool = True
    # never from the store
    checked: bool = setting(False, "Run policies in Python and check their indices and numbers.")
    gpu: GpuModel = GpuModel()
    tiers: TierModel = TierModel()

    @classmethod
    def from_settings(cls, workload: Any, settings: Mapping[str, Any]) -> Self:
        """Return the specification with these settings, flat: those of its models, too."""
        return cls(workload).change(**settings)

    def change(self, **settings: Any) -> Self:
        """Return the same with other settings, flat; refuse unknown ones with the nearest name."""
        known = _homes()
        parts: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            if name not in known:
                raise UnknownName("keyword of a run", name, known.keys() - {"workload"})
            parts.setdefault(known[name], {})[name] = value
        models = {m: replace(getattr(self, m), **parts[m]) for m in MODELS if m in parts}
        return replace(self, **parts.get("", {}), **models)

    def flat(self) -> dict[str, Any]:
        """Return every setting by its name, without the workload."""
        return {f.name: getattr(getattr(self, m) if m else self, f.name) for f, m in all_settings()}

    def __post_init__(self) -> None:
        check_sizes([name for name in SIZES if getattr(self, name) is not None])
        _check_values(self)
        parts = (self.eviction, self.prefetch, self.placement)
        if self.system != "uvm" and None not in parts:
            raise TidegateError(
                f"system {self.system} and all of its parts were given, so nothing is left of it; "
                "leave system, eviction, prefetch or placement out"
            )
        for name in self._without_effect():
            raise TidegateError(
                f"{name} was given without tiering; give tiering too, such as tier-reuse"
                if self.tiering is None
                else f"{name} and tiering were both given; three tiers have no {name}"
            )

    def _without_effect(self) -> Iterator[str]:
        """Yield the settings that were given and are for the other number of tiers."""
        own, model = (("middle",), "tiers") if self.tiering is None else (_TWO_TIERS, "gpu")
        yield from (name for name in own if getattr(self, name) != _DEFAULTS[name])
        of_model = getattr(self, model)
        if of_model != _DEFAULTS[model]:
            yield from (f.name for f in fields(of_model) if getattr(of_model, f.name) != f.default)


_DEFAULTS = {f.name: f.default for f in fields(RunSettings)}


def help_of(name: str) -> str:
    """Return what the option of a setting is for."""
    return next(str(f.metadata["help"]) for f, _ in all_settings() if f.name == name)


@cache
def _homes() -> dict[str, str]:
    """Return the model of each setting; nothing for those that are a run's own."""
    return {f.name: model for f, model in all_settings()} | {"workload": ""}


@cache
def all_settings() -> tuple[tuple[Field[Any], str], ...]:
    """Return every setting, with the model that it is a field of, or nothing."""
    own = [(f, "") for f in fields(RunSettings) if f.name not in ("workload", *MODELS)]
    models = {"gpu": GpuModel, "tiers": TierModel}
    return *own, *((f, name) for name, model in models.items() for f in fields(model))

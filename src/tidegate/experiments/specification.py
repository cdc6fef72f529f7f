"""Run specification: what a run is made from.

RunSpec ──▶ trace, machine, policies, sizes ──▶ simulation ──▶ Run, from the store if it is there

``two_tiers`` simulates near and far memory, ``three_tiers`` near memory, host memory and an SSD.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from operator import index
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.errors import LongRun, TidegateError, UnknownName
from tidegate.experiments import recordings, store, three_tiers, two_tiers
from tidegate.experiments.runs import Run
from tidegate.experiments.trace_cache import shared
from tidegate.machine.machine import Machine, load_machine
from tidegate.options import parse_spec
from tidegate.policies.interface.policy import EvictionPolicy, PlacementPolicy, PrefetchPolicy
from tidegate.policies.interface.tier_policy import TierPolicy
from tidegate.simulation.recorded import Recording
from tidegate.simulation.recording import Window
from tidegate.simulation.tiers.simulation import MOST_STAYS
from tidegate.trace.file import TraceFile
from tidegate.trace.geometry import Geometry
from tidegate.trace.ops import OpTrace, holds_ops
from tidegate.trace.trace import Trace
from tidegate.workloads import suites
from tidegate.workloads.program import Workload, workloads

MACHINE = "rtx3090-pcie4"  # where none is given
TIERED_MACHINE = "a100-pcie3-ssd"  # where none is given and there are three tiers: GMT's
SIZES = ("near", "oversubscribe", "fits")
LONG = 10**9  # touches: about ten seconds

_TWO_TIERS = (
    "system",
    "prefetch",
    "placement",
    "geometry",
    "dirty_only",
    "samples",
    "observed",
    "watched",
    "count_scale",
    "pipelined",
    "checked",
)
_THREE_TIERS = (
    "middle",
    "service",
    "shared",
    "read_ahead",
    "transfers",
    "spare",
    "jitter",
    "most_stays",
    "flush",
    "traits",
)
_MOST = 2**31 - 1
_WHOLE = {
    "slots": (1, 1 << 20),
    "samples": (0, _MOST),
    "observed": (1, _MOST),
    "watched": (1, _MOST),
    "most_stays": (0, _MOST),
    "jitter": (0, _MOST),
}
_YES_OR_NO = (
    "compiled",
    "dirty_only",
    "checked",
    "shared",
    "read_ahead",
    "spare",
    "flush",
    "traits",
)
_LARGEST_SCALE = 1e9


@dataclass(frozen=True)
class RunSpec:
    """What one run is made from. Names are looked up by ``prepare`` and ``answer``.

    ``near`` is the capacity of near memory. ``oversubscribe`` says how much larger the footprint is
    (50% makes near memory two thirds of it), ``fits`` which share of it fits. Give one of them or
    none. Without ``machine`` an application of a paper runs on that paper's. ``bytes`` and
    ``scale`` size the workload; with it ``scale`` sizes all that counts regions: those observed,
    those watched, and options of policies such as a tournament's patience, if they have their
    default values. ``slots`` replaces the machine's; 1 is a sequential cache. ``eviction``,
    ``prefetch`` and ``placement`` replace those of ``system``.

    ``tiering`` adds a third tier. ``middle`` is then the capacity of host memory. Without sizes the
    footprint is twice near and middle memory, and the middle is four times near memory, as in GMT.

    >>> spec = RunSpec("cyclic(bytes=8MiB)", tiering="tier-order", near="1MiB", middle="4MiB")
    >>> spec.answer(cache=False).counts["far_reads"]
    512
    """

    workload: str | Path | type[Workload] | Workload | Trace
    machine: str | Machine | None = None
    system: str = "uvm"
    eviction: str | type[EvictionPolicy] | EvictionPolicy | None = None
    prefetch: str | type[PrefetchPolicy] | PrefetchPolicy | None = None
    placement: str | type[PlacementPolicy] | PlacementPolicy | None = None
    tiering: str | type[TierPolicy] | TierPolicy | None = None
    near: str | int | None = None
    middle: str | int | None = None
    oversubscribe: str | float | None = None
    fits: str | float | None = None
    bytes: str | int | None = None
    scale: str | float | None = None
    geometry: str | Geometry | None = None
    slots: int | None = None
    compiled: bool = True
    # two tiers
    dirty_only: bool = False  # write back only pages that were written
    samples: int = 0  # pages sampled per observed region; 0 adapts the number
    observed: int | None = None  # regions observed at a time; by default what the policies declare
    # evicted regions by which the number of samples is judged; by default as many as observed
    watched: int | None = None
    # by which policies' options that count regions are scaled; by default as the workload is
    count_scale: float | None = None
    pipelined: bool | None = None  # overlap eviction with migration; by default as the machine does
    checked: bool = False  # run policies in Python and check them; never from the store
    # three tiers
    service: str | None = None  # serves misses; by default as the tiering policy declares
    shared: bool = True  # the SSD reads and writes from one queue
    read_ahead: bool = False  # of the page cache, where the CPU serves misses
    transfers: str = "hybrid"  # between near and middle: Hybrid-32T, or always zero-copy
    spare: bool = False  # frames are set apart, so that no page waits for its victim
    jitter: int = 0  # touches so far apart at most may change places
    most_stays: int = MOST_STAYS
    flush: bool = True  # write what is dirty at the end
    traits: bool = False  # also describe the trace: reuse and remaining distances

    @classmethod
    def from_settings(cls, workload: Any, settings: dict[str, Any]) -> RunSpec:
        """Return the specification with these fields; refuse unknown ones with the nearest name."""
        known = [f.name for f in fields(cls) if f.name != "workload"]
        for name in settings:
            if name not in known:
                raise UnknownName("keyword of a run", name, known)
        return cls(workload, **settings)

    def __post_init__(self) -> None:
        check_sizes([name for name in SIZES if getattr(self, name) is not None])
        for name, (least, most) in _WHOLE.items():
            check_whole(name, getattr(self, name), least, most)
        for name in _YES_OR_NO:
            if not isinstance(getattr(self, name), bool):
                raise TidegateError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.pipelined not in (None, True, False):
            raise TidegateError(f"pipelined must be True or False, got {self.pipelined!r}")
        parts = (self.eviction, self.prefetch, self.placement)
        if self.system != "uvm" and None not in parts:
            raise TidegateError(
                f"system {self.system} and all of its parts were given, so nothing is left of it; "
                "leave system, eviction, prefetch or placement out"
            )
        defaults = {f.name: f.default for f in fields(self)}
        for name in _THREE_TIERS if self.tiering is None else _TWO_TIERS:
            if getattr(self, name) != defaults[name]:
                raise TidegateError(
                    f"{name} was given without tiering; give tiering too, such as tier-reuse"
                    if self.tiering is None
                    else f"{name} and tiering were both given; three tiers have no {name}"
                )

    def answer(
        self, cache: bool = True, progress: Callable[[int], None] = lambda touches: None
    ) -> Run:
        """Run it, or load it from the store."""
        tiers = self._tiers()
        simulation = tiers.prepare(self)

        def make(key: str, inputs: dict[str, Any]) -> Run:
            _say_if_long(simulation.trace)
            simulation.run(progress)
            run: Run = tiers.describe(simulation, key, inputs, self)
            return run

        inputs, code = tiers.inputs_of(simulation, self), tiers.made_by(simulation)
        return store.answer(inputs, code, cache and not simulation.checked, make)

    def answer_watched(
        self, watch: Callable[[Any, int], None] = lambda simulation, touches: None
    ) -> Run:
        """Run it, without the store and without a key; ``watch`` takes the simulation and touches
        as it goes on.
        """
        tiers = self._tiers()
        simulation = tiers.prepare(self)
        simulation.run(lambda touches: watch(simulation, touches))
        run: Run = tiers.describe(simulation, "", tiers.inputs_of(simulation, self), self)
        return run

    def record(
        self,
        window: Window | None = None,
        cache: bool = True,
        progress: Callable[[int], None] = lambda touches: None,
    ) -> tuple[Run, Recording]:
        """Run it and record what happens to every region; see Recording.

        ``window``: a part of the run, in more detail. The recording of a whole run is kept in the
        store, with the run.
        """
        tiers, whole = self._tiers(), window is None
        simulation = tiers.prepare(self, window or Window())
        named = store.name_run(tiers.inputs_of(simulation, self), tiers.made_by(simulation))
        cache = cache and named.keeps and not simulation.checked
        if cache and whole:
            stored, recorded = store.load(named.key), recordings.load(named.key)
            if stored is not None and recorded is not None:
                return stored, recorded
        _say_if_long(simulation.trace)
        simulation.run(progress)
        run: Run = tiers.describe(simulation, named.key, named.inputs, self)
        recording: Recording = tiers.recording_of(simulation)
        if cache and whole and named.is_current():
            store.save(run)
            recordings.save(named.key, recording)
        return run, recording

    @property
    def key(self) -> str:
        """The name of its run in the store."""
        tiers = self._tiers()
        simulation = tiers.prepare(self)
        named = store.name_run(tiers.inputs_of(simulation, self), tiers.made_by(simulation))
        return named.key

    def prepare(self) -> Any:
        """Look everything up and set the simulation up, without running it."""
        return self._tiers().prepare(self)

    def _tiers(self) -> Any:
        """Return the module for the number of tiers; both have the same functions."""
        return two_tiers if self.tiering is None else three_tiers

    def trace(self) -> Trace:
        """Return the trace: of a workload laid out for the geometry, or of a file.

        A file is a trace or ops that Tidegate saved (.parquet) or one that it can import. Ops and
        other tools' formats have options: ``step.parquet(allocator=caching)``. In a sweep, runs
        share it.
        """
        return shared(self.trace_key, self._make_trace)

    @property
    def trace_key(self) -> Hashable:
        """Equal for specifications with the same trace: what it is made from, as it was given."""
        size = (str(self.bytes), str(self.scale), str(self.geometry))
        if isinstance(self.workload, Trace):  # laid out already, whatever the machine is
            identity = json.dumps(self.workload.identity(), sort_keys=True, default=str)
            return type(self.workload), identity, self.tiering is None, *size
        given = (self.workload, self.machine)
        named = (one if isinstance(one, str | Path | None) else id(one) for one in given)
        return *named, self.tiering is None, *size

    def _make_trace(self) -> Trace:
        given = str(self.workload) if isinstance(self.workload, Path) else self.workload
        if isinstance(given, Trace):
            return self._as_recorded(given)
        if isinstance(given, str) and (file := _parquet(given)):
            return self._from_file(*file)
        if isinstance(given, str) and (file := _of_another_tool(given)):
            return self._imported(*file)
        if isinstance(given, str):
            name, options = parse_spec(given)
            made = self._sized(workloads.find(name), name, options)
        elif isinstance(given, type) and issubclass(given, Workload):
            made = self._sized(given, given.__name__, {})
        elif self.bytes is None and self.scale is None:
            made = workloads.given(given)
        else:
            raise TidegateError(
                "bytes and scale need a workload's name or class; this workload is an object "
                "that has its size already"
            )
        return made.trace(self._geometry())

    def _sized(self, cls: type[Workload], name: str, options: dict[str, Any]) -> Workload:
        if self.bytes is not None:
            if "bytes" in options:
                raise TidegateError(
                    f"bytes was given twice, in '{self.workload}' and as bytes={self.bytes}; "
                    "give it once"
                )
            options["bytes"] = self.bytes
        if self.scale is not None:
            whole = options.get("bytes", getattr(cls.options().get("bytes"), "default", None))
            if whole is None:
                raise TidegateError(
                    f"workload {name} has no option bytes, so scale={self.scale} cannot be "
                    "applied to it; leave scale out"
                )
            options["bytes"] = round(units.size(whole) * self.factor)
        return workloads.create(cls, options)

    def _as_recorded(self, trace: Trace) -> Trace:
        if self.bytes is not None or self.scale is not None or self.geometry is not None:
            raise TidegateError(
                f"trace {trace.name} has its size and geometry already; "
                "leave out bytes, scale and geometry"
            )
        return trace

    def _from_file(self, path: str, options: dict[str, Any]) -> Trace:
        """Return the trace of a Parquet file; ops are laid out for the geometry."""
        if not holds_ops(Path(path)):
            if options:
                raise TidegateError(f"{path} holds no ops, so it takes no options; leave them out")
            return self._as_recorded(TraceFile(path))
        if self.bytes is not None or self.scale is not None:
            raise TidegateError(f"{path} has its size already; leave out bytes and scale")
        return OpTrace.load(path, self._geometry(), options)

    def _imported(self, path: str, options: dict[str, Any]) -> Trace:
        from tidegate.trace.importers import import_trace

        if self.bytes is not None or self.scale is not None:
            raise TidegateError(f"{path} has its size already; leave out bytes and scale")
        return import_trace(path, geometry=self._geometry(), **options)

    @property
    def factor(self) -> float:
        """``scale`` as a number."""
        factor = 1.0 if self.scale is None else units.fraction(self.scale, "scale")
        if factor <= 0:
            raise TidegateError(f"scale must be positive, such as 1/8, got {self.scale}")
        if factor > _LARGEST_SCALE:
            raise TidegateError(f"scale must be at most {_LARGEST_SCALE:g}, got {self.scale}")
        return factor

    @property
    def count_factor(self) -> float:
        """By which options that count regions are scaled."""
        return self.factor if self.count_scale is None else self.count_scale

    def _geometry(self) -> Geometry:
        if isinstance(self.geometry, Geometry):
            return self.geometry
        if self.geometry is not None:
            return Geometry.parse(self.geometry)
        return self.load_machine().geometry

    def load_machine(self) -> Machine:
        """Return the machine, with the slots and the pipeline that were given."""
        machine = load_machine(self.default_machine if self.machine is None else self.machine)
        if self.slots is not None:
            machine = machine.with_slots(self.slots)
        return machine if self.pipelined is None else machine.with_pipeline(self.pipelined)

    @property
    def default_machine(self) -> str:
        """The machine where none is given: that of the application's paper, if it has one."""
        if self.tiering is not None:
            return TIERED_MACHINE
        given = self.workload
        if isinstance(given, str) and not Path(given).suffix:
            name = parse_spec(given)[0]
        else:
            name = "" if isinstance(given, str | Path | Trace) else getattr(given, "name", "")
        return suites.machine_of(name) or MACHINE

    def near_bytes(self, trace: Trace, default: float, unit: str, unit_bytes: int) -> int:
        """Return the bytes of near memory; by default the footprint is ``default`` times as large.

        Near memory must hold at least one ``unit``.
        """
        if self.near is not None:
            near = units.size(self.near)
        elif self.oversubscribe is not None:
            near = int(trace.footprint / (1 + units.oversubscription(self.oversubscribe)))
        elif self.fits is not None:
            near = int(trace.footprint * units.fitting_share(self.fits))
        else:
            near = int(trace.footprint / default)
        if near < unit_bytes:
            raise TidegateError(
                f"near memory must hold at least one {unit} of {units.show_size(unit_bytes)}, "
                f"got {units.show_size(near)}; give it more, or the workload more bytes"
            )
        return near


def _parquet(given: str) -> tuple[str, dict[str, Any]] | None:
    """Return a Parquet file's path and options, None if this is another workload."""
    if given.endswith(".parquet"):
        return given, {}
    if ".parquet(" not in given:
        return None
    return parse_spec(given)


def _of_another_tool(given: str) -> tuple[str, dict[str, Any]] | None:
    """Return a file's path and options, None if there is no such file or it is a user's class."""
    path, options = (given, {}) if Path(given).is_file() else _split(given)
    return None if Path(path).suffix == ".py" or not Path(path).is_file() else (path, options)


def _split(given: str) -> tuple[str, dict[str, Any]]:
    return parse_spec(given) if given.endswith(")") else (given, {})


def run(workload: Any, *, cache: bool = True, **settings: Any) -> Run:
    """Run a workload under a policy and return what happened. Keywords: ``RunSpec``'s fields.

    >>> import tidegate
    >>> r = tidegate.run("cyclic(bytes=96MiB, passes=4)", near="64MiB", prefetch="region", slots=1)
    >>> r.counts["evictions"]  # every pass migrates all 48 regions; 32 are still there at the end
    160
    """
    return RunSpec.from_settings(workload, settings).answer(cache)


def check_sizes(given: list[str]) -> None:
    """Refuse several ways to give the size of near memory at once."""
    if len(given) > 1:
        raise TidegateError(
            f"{' and '.join(given)} were both given; they say the same thing, give one"
        )


def _say_if_long(trace: Trace) -> None:
    """Warn of a run with very many touches, where their number is known before it begins."""
    touches = getattr(trace, "about_touches", None)
    if touches is not None and touches > LONG:
        warnings.warn(
            f"{trace.name} has about {units.show_count(touches)} touches, so this takes a while; "
            "Ctrl-C stops it",
            LongRun,
            stacklevel=2,
        )


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

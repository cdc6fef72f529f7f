"""Run specification: what a run is made from, and the ways to run it.

RunSpec ──▶ PreparedRun: machine, trace, policies, sizes ──▶ simulation ──▶ Run, or from the store
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments import store
from tidegate.experiments.prepared_run import PreparedRun
from tidegate.experiments.runs import Run
from tidegate.experiments.settings import GpuModel, RunSettings, TierModel
from tidegate.experiments.three_tiers import ThreeTierRun
from tidegate.experiments.trace_cache import shared
from tidegate.experiments.two_tiers import TwoTierRun
from tidegate.machine.machine import Machine, load_machine
from tidegate.options import parse_spec
from tidegate.policies.registries import EvictionLike, PlacementLike, PrefetchLike, TieringLike
from tidegate.simulation.recorded import Recording
from tidegate.simulation.recording import Window
from tidegate.trace.geometry import Geometry
from tidegate.trace.load import is_trace_file, load_trace
from tidegate.trace.trace import Trace
from tidegate.workloads import suites
from tidegate.workloads.program import Workload, WorkloadLike, workloads

MACHINE = "rtx3090-pcie4"  # where none is given
TIERED_MACHINE = "a100-pcie3-ssd"  # where none is given and there are three tiers: GMT's
_LARGEST_SCALE = 1e9


@dataclass(frozen=True)
class RunSpec(RunSettings):
    """What one run is made from. Names are looked up when it runs.

    ``near`` is the capacity of near memory. ``oversubscribe`` says how much larger the footprint is
    (50% makes near memory two thirds of it), ``fits`` which share of it fits. Give one of them or
    none. Without ``machine`` an application of a paper runs on that paper's. ``bytes`` and
    ``scale`` size the workload; with it ``scale`` sizes all that counts regions: those observed,
    those watched, and options of policies such as a tournament's patience, if they have their
    default values. ``slots`` replaces the machine's; 1 is a sequential cache. ``eviction``,
    ``prefetch`` and ``placement`` replace those of ``system``.

    ``tiering`` adds a third tier. ``middle`` is then the capacity of host memory. Without sizes the
    footprint is twice near and middle memory, and the middle is four times near memory, as in GMT.

    ``gpu`` and ``tiers`` have what papers' protocols set (see ``settings``).

    >>> spec = RunSpec("cyclic(bytes=8MiB)", tiering="tier-order", near="1MiB", middle="4MiB")
    >>> spec.run(cache=False).counts["far_reads"]
    512
    """

    def run(
        self, cache: bool = True, progress: Callable[[int], None] = lambda touches: None
    ) -> Run:
        """Run it, or load it from the store."""
        prepared = self.resolve()

        def make(key: str, inputs: dict[str, Any]) -> Run:
            prepared.run(progress)
            return prepared.describe(key, inputs)

        cache = cache and not prepared.simulation.checked
        return store.load_or_run(prepared.inputs, prepared.code_dependencies, cache, make)

    def run_watched(
        self, watch: Callable[[Any, int], None] = lambda simulation, touches: None
    ) -> Run:
        """Run it, without the store and without a key; ``watch`` takes the simulation and touches
        as it goes on.
        """
        prepared = self.resolve()
        simulation = prepared.simulation
        simulation.run(lambda touches: watch(simulation, touches))
        return prepared.describe("", prepared.inputs)

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
        prepared, whole = self.resolve(window or Window()), window is None
        named = store.name_run(prepared.inputs, prepared.code_dependencies)
        cache = cache and named.keeps and not prepared.simulation.checked
        if cache and whole:
            stored, recorded = store.load(named.key), store.load_recording(named.key)
            if stored is not None and recorded is not None:
                return stored, recorded
        prepared.run(progress)
        run, recording = prepared.describe(named.key, named.inputs), prepared.recording()
        if cache and whole and named.is_current():
            store.save(run)
            store.save_recording(named.key, recording)
        return run, recording

    @property
    def key(self) -> str:
        """The name of its run in the store."""
        prepared = self.resolve()
        return store.name_run(prepared.inputs, prepared.code_dependencies).key

    def prepare(self) -> Any:
        """Return the simulation, set up and not yet run."""
        return self.resolve().simulation

    def resolve(self, window: Window | None = None) -> PreparedRun:
        """Look everything up: machine, trace, policies and sizes. ``window``: what to record."""
        return (TwoTierRun if self.tiering is None else ThreeTierRun)(self, window)

    def trace(self) -> Trace:
        """Return the trace: of a workload laid out for the geometry, or of a file (see
        ``load_trace``). In a sweep, runs share it.
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
        if isinstance(given, str) and is_trace_file(given):
            return self._from_file(given)
        if isinstance(given, str):
            name, options = parse_spec(given)
            made = self._sized(workloads.find(name), name, options)
        elif isinstance(given, type) and issubclass(given, Workload):
            made = self._sized(given, given.__name__, {})
        elif self.bytes is None and self.scale is None:
            made = workloads.resolve(given)
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

    def _from_file(self, file: str) -> Trace:
        if self.bytes is not None or self.scale is not None:
            raise TidegateError(f"{file} has its size already; leave out bytes and scale")
        return load_trace(file, self.geometry, self.load_machine().geometry)

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
        return self.factor if self.gpu.count_scale is None else self.gpu.count_scale

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
        pipelined = self.gpu.pipelined
        return machine if pipelined is None else machine.with_pipeline(pipelined)

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


def run(
    workload: WorkloadLike,
    *,
    machine: str | Machine | None = None,
    system: str = "uvm",
    eviction: EvictionLike | None = None,
    prefetch: PrefetchLike | None = None,
    placement: PlacementLike | None = None,
    tiering: TieringLike | None = None,
    near: str | int | None = None,
    middle: str | int | None = None,
    oversubscribe: str | float | None = None,
    fits: str | float | None = None,
    bytes: str | int | None = None,
    scale: str | float | None = None,
    geometry: str | Geometry | None = None,
    slots: int | None = None,
    compiled: bool = True,
    checked: bool = False,
    gpu: GpuModel = GpuModel(),
    tiers: TierModel = TierModel(),
    cache: bool = True,
) -> Run:
    """Run a workload under a policy and return what happened. ``RunSpec`` explains the keywords.

    >>> import tidegate
    >>> r = tidegate.run("cyclic(bytes=96MiB, passes=4)", near="64MiB", prefetch="region", slots=1)
    >>> r.counts["evictions"]  # every pass migrates all 48 regions; 32 are still there at the end
    160
    """
    given = {name: value for name, value in locals().items() if name != "cache"}
    return RunSpec(**given).run(cache)

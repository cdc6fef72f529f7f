"""Small traces and machines for tests, and short ways to run them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tidegate.experiments import Run, RunSpec
from tidegate.machine.machine import Driver, Link, Machine, Near
from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.simulation.gpu.simulation import Simulation
from tidegate.trace import Launch, Provenance, Trace
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Segment, lay_out

PAGE, PAGES = 4096, 8  # of the geometry most tests use: regions of eight pages
SMALL = Geometry(PAGE, PAGES * PAGE)
FLAT = Geometry(PAGE, PAGE)


class Touch(NamedTuple):
    page: int
    write: bool = False
    bytes: int = PAGE
    reference: int = 0


Block = Sequence[Touch]


@dataclass(frozen=True)
class Kernel:
    """One launch: its blocks, and the numbers of the blocks before which its segments are cut."""

    blocks: Sequence[Block]
    width: int = 1
    intensity: float = 0.0
    cuts: tuple[int, ...] = ()
    told: Mapping[str, Any] = field(default_factory=dict)  # other fields of the launch

    def segments(self) -> list[Segment]:
        ends = sorted({min(c, len(self.blocks)) for c in self.cuts} | {len(self.blocks)})
        return [_segment(self.blocks[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def launch(self, name: str) -> Launch:
        return Launch(name, iter(self.segments()), self.width, self.intensity, **self.told)


def _segment(blocks: Sequence[Block]) -> Segment:
    touches = [touch for block in blocks for touch in block]
    columns = list(zip(*touches, strict=True)) or [(), (), (), ()]
    return Segment(np.cumsum([0, *map(len, blocks)]), *map(np.array, columns))


class Given(Trace):
    """A trace of given kernels and objects, whose sizes are in pages."""

    keep = True

    name = "given"
    provenance = Provenance.ASSUMED

    def __init__(
        self,
        kernels: Sequence[Kernel],
        objects: Sequence[int],
        geometry: Geometry = SMALL,
        unwritten: Sequence[str] = (),
        first_touch: bool = True,
    ):
        self.kernels, self.geometry, self.first_touch = kernels, geometry, first_touch
        sizes = {f"o{i}": pages * geometry.page for i, pages in enumerate(objects)}
        self.objects = lay_out(sizes, geometry, unwritten)

    def launches(self) -> Iterator[Launch]:
        for kernel in self.kernels:
            yield kernel.launch("kernel")

    def identity(self) -> dict[str, Any]:
        return {"given": str((self.kernels, self.objects, self.geometry))}


def reads(pages: Any, **fields: Any) -> list[Touch]:
    """Return touches of these pages, one after another."""
    return [Touch(int(page), **fields) for page in pages]


def writes(pages: Any, **fields: Any) -> list[Touch]:
    return reads(pages, write=True, **fields)


def one_block(
    touches: Sequence[Touch], objects: Sequence[int], geometry: Geometry = SMALL
) -> Given:
    """Return a trace of one launch of one block."""
    return Given([Kernel([touches])], objects, geometry)


def flat(ids: Any, distinct: int | None = None) -> Given:
    """Return a plain sequence of requests: page = region, one block."""
    return one_block(reads(ids), [distinct or int(max(ids)) + 1], FLAT)


# Every constant is a small multiple of a power of two, so that sums of them are exact in floating
# point.
CONSTANTS: dict[str, Any] = {
    "bandwidth": 512.0,
    "flops": 1024.0,
    "latency": 2.0,
    "launch_overhead": 4000.0,
    "utlb_sms": 1,
    "utlb_faults": None,
    "block_faults": None,
    "inward": 16.0,
    "outward": 8.0,
    "both": 16.0,
    "run_overhead": 1536.0,
    "run_overhead_outward": 0.0,
    "remote_share": 0.5,
    "remote_latency": 640.0,
    "batch_faults": 256,
    "batch_overhead": 20_000.0,
    "region_overhead": 10_000.0,
    "unmap_per_kib": 48.0,
    "unmap_prefetched_per_kib": None,
    "evict_overhead": 0.0,
    "copy_overhead": 0.0,
    "first_overhead": 0.0,
    "fault_bytes": None,
    "asynchronous": False,
    "round_tails": False,
    "decision": 1024.0,
    "pipelined": False,
    "victims_mapped": False,
    "frame": "region",
}


def machine(slots: int = 1, blocks_per_sm: int = 1, **changed: Any) -> Machine:
    """Return a machine of round numbers; any constant can be changed by its name."""
    assert slots % blocks_per_sm == 0, (slots, blocks_per_sm)
    constants = {**CONSTANTS, **changed}
    assert constants.keys() == CONSTANTS.keys(), changed

    def part(cls: type, **more: Any) -> Any:
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{k: v for k, v in constants.items() if k in names}, **more)

    sms = slots // blocks_per_sm
    near = part(Near, sms=sms, blocks_per_sm=blocks_per_sm, bytes=1 << 30)
    return Machine("round", "round numbers", SMALL, ("faults",), near, part(Link), part(Driver))


def run_of(trace: Trace, on: Machine, frames: int, **asked: Any) -> Run:
    """Run a trace with room for ``frames`` regions, by default without prefetch; store nothing."""
    asked = {"prefetch": "none", **asked}
    spec = RunSpec(trace, machine=on, near=frames * trace.geometry.region)
    return spec.change(**asked).run(cache=False)


def simulation_of(
    trace: Trace,
    on: Machine,
    frames: int,
    *,
    eviction: Any = "lrm",
    prefetch: Any = "none",
    placement: Any = "um",
    **how: Any,
) -> Simulation:
    """Return the same simulation, not yet run, for tests of its insides."""
    if on.near.frame == "page":
        frames *= trace.geometry.pages_per_region
    return Simulation(
        trace,
        on,
        frames,
        _made("eviction", eviction),
        _made("prefetch", prefetch),
        _made("placement", placement),
        **how,
    )


_FAMILIES = {"eviction": eviction, "prefetch": prefetch, "placement": placement}


def _made(family: str, given: Any) -> Any:
    return _FAMILIES[family].make(given) if isinstance(given, str) else given

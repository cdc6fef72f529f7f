"""What the analysis knows of a program: its data objects, its target regions, and who uses what."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.compiler.analysis.sizes import Formula
from tidegate.errors import UnknownName


@dataclass(frozen=True)
class DataObject:
    """One allocation site, after inlining: memory that a region may use (SC'19, 4.1)."""

    name: str  # what the source calls it, made unique
    kind: str  # heap, stack or global
    allocator: str  # malloc, cudaMallocManaged, ... ; "" for stack and global
    line: int | None  # where the outermost caller asks for it; None without debug information
    # its size, of the program's variables; None for what cannot be placed: scalars, and the stack
    bytes: Formula | None


@dataclass(frozen=True)
class Argument:
    """One mapped entry of a launch."""

    objects: tuple[str, ...]  # several when the pointer may be one of them, as swapped buffers are
    # which parameter of the kernel (not counting clang 19's dyn_ptr); None when it is not passed
    parameter: int | None
    map_type: int
    # (parameter, offset): the kernel reads the pointer from a structure
    through: tuple[int, int] | None = None


@dataclass(frozen=True)
class Use:
    """What a launch does with one object."""

    object: str
    locality: float  # accesses by one iteration: regional locality, RL
    bytes_per_iteration: float
    # launches from this one to the next that uses the object; infinite when none does
    distance: float


@dataclass(frozen=True)
class Launch:
    """One place in the program, after inlining, that launches a region."""

    region: str
    block: str  # of the host's control flow
    index: int  # its place among the launches of its block
    arguments: tuple[Argument, ...]
    # iterations of the region's loop; None when the program does not say
    trip_count: Formula | None
    # how often it is launched in one run of the program: region frequency, RF
    frequency: float = 0.0
    uses: tuple[Use, ...] = ()
    # function:line of the calls that lead to it from main on; none without debug information
    calls: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[str, ...]:
        """The objects it may use, each once, in the order of the arguments."""
        return tuple(
            dict.fromkeys(name for argument in self.arguments for name in argument.objects)
        )


@dataclass(frozen=True)
class Region:
    """One target region: a kernel, however many places launch it."""

    name: str  # function:line, as OpenMP programs have no names for regions
    kernel: str  # its symbol in the device's IR; holds numbers of the file system, so it is no name
    parameters: int  # how many the kernel has, values and pointers
    objects: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """Something that could not be known, and what was assumed instead."""

    about: str  # the object's, region's or function's name
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}"


@dataclass(frozen=True)
class ProgramModel:
    """A program as the placement policies see it."""

    source: str
    objects: tuple[DataObject, ...]
    regions: tuple[Region, ...]
    launches: tuple[Launch, ...]
    notes: tuple[Note, ...] = field(default=())
    # (from, to) → launches between
    region_distance: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # [i][j]: the probability that launch j is the next after launch i
    next_launches: tuple[tuple[float, ...], ...] = ()

    def placeable(self) -> tuple[DataObject, ...]:
        """The objects that a plan can place: those on the heap, and global arrays."""
        return tuple(o for o in self.objects if o.bytes is not None)

    def table(self) -> dict[str, tuple[str, ...]]:
        """Region name → the placeable objects it uses."""
        placeable = {o.name for o in self.placeable()}
        return {
            r.name: tuple(name for name in r.objects if name in placeable) for r in self.regions
        }

    def where(self, launch: Launch) -> str:
        """Its region, and where several places launch that, the calls that lead to this one:
        ``step:5 from main:11``.

        Places that calls do not tell apart, as on one line or without debug information, are
        numbered: ``…, place 1 of 2``.
        """
        places = [other for other in self.launches if _line(other.region) == _line(launch.region)]
        if len(places) == 1:
            return launch.region
        alike = [
            other
            for other in places
            if (other.region, other.calls) == (launch.region, launch.calls)
        ]
        calls = f" from {' > '.join(launch.calls)}" if launch.calls else ""
        number = f", place {alike.index(launch) + 1} of {len(alike)}" if len(alike) > 1 else ""
        return f"{launch.region}{calls}{number}"

    def object(self, name: str) -> DataObject:
        """The object of that name."""
        found = next((o for o in self.objects if o.name == name), None)
        if found is None:
            raise UnknownName("object", name, [o.name for o in self.objects])
        return found

    def region_frequency(self, region: str) -> float:
        """RF: how often a region is launched in one run of the program, from all places."""
        return sum(launch.frequency for launch in self.launches if launch.region == region)

    def regional_locality(self, region: str, name: str) -> float:
        """RL: accesses to an object by one iteration of a region, averaged over the places that
        launch it.
        """
        launches = [launch for launch in self.launches if launch.region == region]
        total = sum(
            launch.frequency * use.locality
            for launch in launches
            for use in launch.uses
            if use.object == name
        )
        return total / (self.region_frequency(region) or 1.0)

    def global_locality(self, name: str) -> float:
        """GL: the sum over all regions of RF × RL (equation 1)."""
        return sum(
            launch.frequency * use.locality
            for launch in self.launches
            for use in launch.uses
            if use.object == name
        )

    def nearest_region(self, region: str, name: str) -> float:
        """The paper's reuse distance of an object at a region (4.3): the least distance to a region
        that uses it.

        Each distance is an expectation, so the least of them is at least the expected distance to
        the next use, which is what a launch's ``Use.distance`` is. The region itself counts, or a
        loop of one kernel would never come back.
        """
        return min(
            (self.region_distance[region, r.name] for r in self.regions if name in r.objects),
            default=math.inf,
        )

    def access_density(
        self, launch: Launch, use: Use, variables: Mapping[str, int]
    ) -> float | None:
        """Bytes accessed over bytes there are (4.2), for these values of the program's variables.

        None when the trip count (or a variable of it), the size or the kernel is not known: one
        that accesses nothing was not there to be read. Reuse is not taken into account, so it may
        be above 1.
        """
        size = self.object(use.object).bytes
        if (
            launch.trip_count is None
            or size is None
            or not any(each.locality for each in launch.uses)
        ):
            return None
        if launch.trip_count.variables() - variables.keys():
            return None
        return (
            use.bytes_per_iteration * launch.trip_count.at(variables) / max(1, size.at(variables))
        )

    def variables(self) -> tuple[str, ...]:
        """The variables that sizes and trip counts are formulas of."""
        formulas = [
            *(o.bytes for o in self.objects),
            *(launch.trip_count for launch in self.launches),
        ]
        return tuple(sorted({v for f in formulas if f is not None for v in f.variables()}))


def _line(region: str) -> str:
    """function:line of a region, of which there are several where a template, or files of the same
    lines, have more kernels.

    >>> _line("step:5.2"), _line("step:5_1")
    ('step:5', 'step:5_1')
    """
    return re.sub(r"[.]\d+$", "", region)

"""Program model: a program's data objects, its kernel regions, and what each launch uses."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.compiler.analysis.sizes import Formula
from tidegate.compiler.host_flow import HostFlow
from tidegate.errors import UnknownName

TO, FROM = 1, 2  # bits of a map type: OpenMP's to and from
PAGE = 4096
"""The least that memory moves: what is touched is counted in these."""


@dataclass(frozen=True)
class DataObject:
    """One allocation site, after inlining: memory that a kernel region may use (SC'19, 4.1)."""

    name: str  # its name in the source, made unique
    kind: str  # heap, stack or global
    allocator: str  # malloc, cudaMallocManaged, ... ; "" for stack and global
    line: int | None  # of the outermost caller's allocation; None without debug information
    bytes: Formula | None  # None for objects that cannot be placed: scalars, and the stack
    calls: tuple[str, ...] = ()  # function:line from main to it; empty without debug information


@dataclass(frozen=True)
class Argument:
    """One mapped entry of a launch."""

    objects: tuple[str, ...]  # several if the pointer may be one of them, as with swapped buffers
    parameter: int | None  # of the kernel, not counting clang 19's dyn_ptr; None: it is not passed
    map_type: int
    # (parameter or global, offset): where the kernel reads the pointer; (global, ""): itself
    through: tuple[int | str, int | str] | None = None


@dataclass(frozen=True)
class Walk:
    """Bytes of a use of which the touched pages are not simply as many: in loops of the kernel
    whose turns are a formula, apart from each other, or under a condition.
    """

    turns: Formula
    each: float  # bytes in one turn of an iteration
    bytes: float  # estimated, without the formula: a part of the use's own or common bytes
    common: bool  # all iterations walk through the same
    width: float = 1.0  # bytes of one access
    apart: Formula | None = None  # bytes to the nearest other access; None: adjacent

    def covered(self, variables: Mapping[str, int]) -> float | None:
        """Return the bytes of the pages that an iteration touches, as its share of each; None if
        the turns are not known.
        """
        if self.turns.variables() - variables.keys():
            return None
        room = self._room(variables)
        often = self.each / self.width
        if often < 1 and not self.common:  # a page is touched if any of the accesses on it is made
            often = 1 - (1 - often) ** (PAGE / room)
        return max(1, self.turns.at(variables)) * often * room

    def _room(self, variables: Mapping[str, int]) -> float:
        """Return the bytes from an access to the next, within a page."""
        if self.apart is None:
            return self.width
        known = not self.apart.variables() - variables.keys()
        return max(self.width, min(PAGE, abs(self.apart.at(variables)) if known else PAGE))


@dataclass(frozen=True)
class Use:
    """What a launch does with one object."""

    object: str
    locality: float  # accesses by one iteration: regional locality, RL
    bytes_per_iteration: float  # at addresses that are the iteration's own
    distance: float  # launches until the next one that uses the object; infinite if none does
    common_bytes: float = 0.0  # accessed at the same addresses by all iterations
    writes: float = 0.0  # accesses by one iteration that write
    walks: tuple[Walk, ...] = ()

    def covered(self, iterations: int, variables: Mapping[str, int]) -> float | None:
        """Return the bytes of the pages that so many iterations touch; None if one walks on for a
        length that is not known: that may lead anywhere.
        """
        own, common = self.bytes_per_iteration, self.common_bytes
        for walk in self.walks:
            found = walk.covered(variables)
            if found is None:
                return None
            if walk.common:
                common += found - walk.bytes
            else:
                own += found - walk.bytes
        return own * iterations + common


@dataclass(frozen=True)
class LaunchSite:
    """One place in the program, after inlining, that launches a kernel region."""

    region: str
    block: str  # of the host's control flow
    index: int  # its position among the launches of its block
    arguments: tuple[Argument, ...]
    trip_count: Formula | None  # iterations of the region's loop; None if they are not known
    frequency: float = 0.0  # launches per run of the program: region frequency, RF
    uses: tuple[Use, ...] = ()
    calls: tuple[str, ...] = ()  # function:line from main to it; empty without debug information

    @property
    def objects(self) -> tuple[str, ...]:
        """The objects it may use, each once, in the order of the arguments."""
        return tuple(dict.fromkeys(name for a in self.arguments for name in a.objects))


@dataclass(frozen=True)
class KernelRegion:
    """One kernel, however many places launch it. SC'19 and OpenMP call it a target region."""

    name: str  # function:line, as OpenMP programs do not name regions
    kernel: str  # its symbol in the device's IR, which holds numbers of the file system
    parameters: int  # of the kernel, values and pointers
    objects: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """Something that could not be found out, and the assumption made instead."""

    about: str  # name of the object, region or function
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}"


@dataclass(frozen=True)
class ProgramModel:
    """A program as the placement policies see it."""

    source: str
    objects: tuple[DataObject, ...]
    regions: tuple[KernelRegion, ...]
    launches: tuple[LaunchSite, ...]
    flow: HostFlow
    notes: tuple[Note, ...] = field(default=())
    # (from, to) → launches between
    region_distance: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # [i][j]: the probability that launch j is the next after launch i
    next_launches: tuple[tuple[float, ...], ...] = ()
    first_launches: tuple[float, ...] = ()  # the probability of each to be the first
    two_copies: tuple[Note, ...] = ()  # objects whose copies on host and device must differ
    # CUDA's allocations that no launch uses, each with the number of objects before it
    unused: tuple[tuple[int, DataObject], ...] = ()

    def placeable(self) -> tuple[DataObject, ...]:
        """Return the objects that a plan can place: those on the heap, and global arrays."""
        return tuple(o for o in self.objects if o.bytes is not None)

    def table(self) -> dict[str, tuple[str, ...]]:
        """Return the placeable objects of each region, by its name."""
        placeable = {o.name for o in self.placeable()}
        return {r.name: tuple(n for n in r.objects if n in placeable) for r in self.regions}

    def where(self, launch: LaunchSite) -> str:
        """Return the region's name and, if several places launch it, the calls that lead to this
        one: ``step:5 from main:11``.

        Places that have the same calls, as on one line or without debug information, are numbered:
        ``…, place 1 of 2``.
        """
        places = [other for other in self.launches if _line(other.region) == _line(launch.region)]
        if len(places) == 1:
            return launch.region
        key = (launch.region, launch.calls)
        alike = [other for other in places if (other.region, other.calls) == key]
        calls = f" from {' > '.join(launch.calls)}" if launch.calls else ""
        number = f", place {alike.index(launch) + 1} of {len(alike)}" if len(alike) > 1 else ""
        return f"{launch.region}{calls}{number}"

    def object(self, name: str) -> DataObject:
        """Return the object of that name."""
        found = next((o for o in self.objects if o.name == name), None)
        if found is None:
            raise UnknownName("object", name, [o.name for o in self.objects])
        return found

    def region_frequency(self, region: str) -> float:
        """Return RF: how often a region is launched in one run of the program, from all places."""
        return sum(launch.frequency for launch in self.launches if launch.region == region)

    def regional_locality(self, region: str, name: str) -> float:
        """Return RL: accesses to an object by one iteration of a region, averaged over its launch
        sites.
        """
        sites = [launch for launch in self.launches if launch.region == region]
        return _accesses(sites, name) / (self.region_frequency(region) or 1.0)

    def global_locality(self, name: str) -> float:
        """Return GL: the sum over all regions of RF × RL (equation 1)."""
        return _accesses(self.launches, name)

    def nearest_region(self, region: str, name: str) -> float:
        """Return the paper's reuse distance of an object at a region (4.3): the least distance to a
        region that uses it.

        Each distance is an expectation. So the least of them is at least the expected distance to
        the next use, which is a launch's ``Use.distance``. The region itself counts: otherwise a
        loop of one kernel would have no reuse.
        """
        return min(
            (self.region_distance[region, r.name] for r in self.regions if name in r.objects),
            default=math.inf,
        )

    def access_density(
        self, launch: LaunchSite, use: Use, variables: Mapping[str, int]
    ) -> float | None:
        """Return bytes accessed over bytes allocated (4.2) for these values of the variables, in
        pages: one that is touched counts as a whole.

        None if the trip count (or a variable of it), the size, the kernel or the length of a walk
        is not known: a kernel that accesses nothing was not in the IR. Reuse is not taken into
        account, so the density may be above 1.
        """
        size, trips = self.object(use.object).bytes, launch.trip_count
        if trips is None or size is None or not any(each.locality for each in launch.uses):
            return None
        if trips.variables() - variables.keys():
            return None
        covered = use.covered(trips.at(variables), variables)
        return None if covered is None else covered / max(1, size.at(variables))

    def is_written(self, launch: LaunchSite, name: str) -> bool:
        """Return whether a launch writes an object: by its stores, or by its map clauses where no
        access of the kernel was found.
        """
        if any(use.locality for use in launch.uses):
            return any(use.writes > 0 for use in launch.uses if use.object == name)
        return any(a.map_type & FROM for a in launch.arguments if name in a.objects)

    def variables(self) -> tuple[str, ...]:
        """Return the variables in the formulas of sizes and trip counts, and the bounds of loops
        around launches.
        """
        formulas = [*(o.bytes for o in self.objects), *(site.trip_count for site in self.launches)]
        found = {v for f in formulas if f is not None for v in f.variables()}
        return tuple(sorted(found | self.flow.variables()))


def _accesses(sites: Sequence[LaunchSite], name: str) -> float:
    return sum(x.frequency * use.locality for x in sites for use in x.uses if use.object == name)


def _line(region: str) -> str:
    """Return function:line of a region's name.

    Several regions share it if a template, or files with the same lines, have more kernels.

    >>> _line("step:5.2"), _line("step:5_1")
    ('step:5', 'step:5_1')
    """
    return re.sub(r"[.]\d+$", "", region)

"""A program's model compared with a logged run of it: what `benchmarks.programs --truth` counts.

    regions     launched kernels that the model has
    operands    (kernel, argument) whose memory is on the heap or global: the model knows it
    distances   (kernel, object): mean launches up to the next use, within a tenth; or no next use
    densities   (kernel, object of 4 pages or more): touched pages, on the same side of one half
    writes      (kernel, object): written or not; "written" counts only those that are

An object of the log is one of the model if the calls that lead to the model's allocation led to the
logged one, by their lines. Densities and writes are of kernels whose loop the host's runtime
divides: of others, which ask for their thread's number, only one thread runs.

Variables get the values that logged sizes and iterations give them; bounds of loops get the number
on the command line that fits the logged launches best.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from benchmarks.truth import Log, LoggedLaunch
from tidegate.compiler.analysis.measures import with_values
from tidegate.compiler.analysis.sizes import Formula
from tidegate.compiler.model import LaunchSite, ProgramModel

Site = tuple[int, ...]
KINDS = ("regions", "operands", "distances", "densities", "writes", "written")
_PAGES = 4
_MOST_CANDIDATES = 8


@dataclass
class Agreement:
    """How often model and run agree, and what is wrong where they do not."""

    right: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    of: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    wrong: list[str] = field(default_factory=list)

    def count(self, kind: str, right: bool, what: str) -> None:
        """Count one comparison."""
        self.of[kind] += 1
        self.right[kind] += right
        if not right:
            self.wrong.append(f"{kind}: {what}")


def agreement(model: ProgramModel, log: Log) -> Agreement:
    """Return how a model agrees with a run."""
    return _Comparison(model, log).result()


class _Comparison:
    def __init__(self, model: ProgramModel, log: Log) -> None:
        self.log, self.found = log, Agreement()
        self.names = {site: _names(model, lines) for site, lines in log.lines.items()}
        self.values = _sizes(model, log, self.names)
        self.model = with_values(model, _bounds(model, log, self.values))
        self.places: dict[str, list[LaunchSite]] = defaultdict(list)
        kernel = {r.name: r.kernel for r in model.regions}
        for launch in self.model.launches:
            self.places[kernel[launch.region]].append(launch)

    def result(self) -> Agreement:
        by_kernel: dict[str, list[LoggedLaunch]] = defaultdict(list)
        for launch in self.log.launches:
            by_kernel[launch.kernel].append(launch)
        gaps = _gaps(self.log)
        for kernel, launches in by_kernel.items():
            self.found.count("regions", kernel in self.places, kernel)
            self._operands(kernel, launches)
            for site in dict.fromkeys(s for x in launches for s in _used(self.log, x)):
                names = self._known(kernel, site)
                if names:
                    self._distance(kernel, site, names, gaps[kernel, site])
                    self._pages(kernel, site, names, launches)
        return self.found

    def _known(self, kernel: str, site: Site) -> set[str]:
        """Return the objects of the model that a kernel uses and that are this one of the log."""
        used = {name for place in self.places.get(kernel, ()) for name in place.objects}
        return used & self.names[site]

    def _operands(self, kernel: str, launches: list[LoggedLaunch]) -> None:
        held: dict[int, set[int | str]] = defaultdict(set)
        for launch in launches:
            for number, value in launch.arguments.items():
                held[number].add(value)
        used = {name for place in self.places.get(kernel, ()) for name in place.objects}
        for number, values in held.items():
            on_heap = {self.log.sites[v] for v in values if isinstance(v, int)}
            globals_ = [v for v in values if isinstance(v, str)]
            known = all(self._known(kernel, site) for site in on_heap)
            known &= all(any(_plain(g, name) for name in used) for g in globals_)
            lines = sorted(n for site in on_heap for n in self.log.lines[site])
            self.found.count("operands", known, f"{kernel} argument {number} {lines} {globals_}")

    def _distance(self, kernel: str, site: Site, names: set[str], gaps: list[int]) -> None:
        reused = []
        for place in self.places[kernel]:
            far = [use.distance for use in place.uses if use.object in names]
            if far and min(far) != math.inf and place.frequency > 0:
                reused.append((place.frequency, min(far)))
        weight = sum(often for often, _ in reused)
        estimate = sum(often * far for often, far in reused) / weight if weight else math.inf
        if not self.log.whole and (not gaps or len(self.places[kernel]) > 1):
            return  # the next use, or launches from other places, may have been still to come
        real = sum(gaps) / len(gaps) if gaps else math.inf
        right = estimate == real or abs(estimate - real) <= 0.1 * real
        self.found.count(
            "distances", right, f"{kernel} {sorted(names)}: {estimate:.3g} for {real:.3g}"
        )

    def _pages(self, kernel: str, site: Site, names: set[str], all_: list[LoggedLaunch]) -> None:
        log = self.log
        touched: list[tuple[LoggedLaunch, int, tuple[int, int, bool]]] = []
        for launch in (x for x in all_ if x.trips):
            given = {v for v in launch.arguments.values() if isinstance(v, int)}
            own = [n for n in given if log.sites[n] == site]
            touched += [(launch, n, launch.touched.get(n, (0, 1, False))) for n in own]
        if not touched:
            return
        written = any(pages[2] for *_, pages in touched)
        says = any(
            self.model.is_written(place, name)
            for place in self.places[kernel]
            for name in names & set(place.objects)
        )
        what = f"{kernel} {sorted(names)}: {says} for {written}"
        self.found.count("writes", says == written, what)
        if written:
            self.found.count("written", says, what)
        launch, number, _ = touched[0]
        if log.sizes[number] >= _PAGES * 4096:
            share = [pages[0] / pages[1] for *_, pages in touched]
            real = sum(share) / len(share)
            density = self._density(kernel, names, launch.trips, log.sizes[number])
            what = f"{kernel} {sorted(names)}: {density:.3g} for {real:.3g}"
            self.found.count("densities", (density >= 0.5) == (real >= 0.5), what)

    def _density(self, kernel: str, names: set[str], trips: int, size: int) -> float:
        """Return the model's density for the logged iterations and size; what is not known is taken
        as dense.
        """
        found = [1.0] if not self.places[kernel] else []
        for place in self.places[kernel]:
            uses = [use for use in place.uses if use.object in names]
            if not uses:
                continue
            count = trips or _value(place.trip_count, self.values)
            if count is None or not any(each.locality for each in place.uses):
                found.append(1.0)
                continue
            covered = [use.covered(count, self.values) for use in uses]
            known = [each for each in covered if each is not None]
            found.append(sum(known) / size if len(known) == len(covered) else 1.0)
        return sum(found) / len(found)


def _names(model: ProgramModel, lines: frozenset[int]) -> set[str]:
    """Return the objects of the model that are allocated by calls on these lines."""
    found: dict[str, int] = {}
    for made in model.objects:
        way = {int(call.rpartition(":")[2]) for call in made.calls}
        if made.kind == "heap" and way and way <= lines:
            found[made.name] = len(way)
    return {name for name, length in found.items() if length == max(found.values())}


def _plain(symbol: str, name: str) -> bool:
    """Return whether a global's symbol may have that name in the source."""
    return name.split(".")[0].rpartition("::")[2] in symbol


def _used(log: Log, launch: LoggedLaunch) -> list[Site]:
    return [log.sites[v] for v in launch.arguments.values() if isinstance(v, int)]


def _gaps(log: Log) -> dict[tuple[str, Site], list[int]]:
    """Return the launches from each use of an object by a kernel to its next use by any."""
    gaps: dict[tuple[str, Site], list[int]] = defaultdict(list)
    last: dict[int, tuple[int, str]] = {}
    for at, launch in enumerate(log.launches):
        for number in {v for v in launch.arguments.values() if isinstance(v, int)}:
            if number in last:
                before, kernel = last[number]
                gaps[kernel, log.sites[number]].append(at - before)
            last[number] = (at, launch.kernel)
    return gaps


def _value(formula: Formula | None, values: dict[str, int]) -> int | None:
    if formula is None or formula.variables() - values.keys():
        return None
    return formula.at(values)


def _sizes(model: ProgramModel, log: Log, names: dict[Site, set[str]]) -> dict[str, int]:
    """Return the values of variables that follow from the logged sizes and iterations."""
    equations: list[tuple[Formula, int]] = []
    for number, site in log.sites.items():
        formulas = [o.bytes for o in model.objects if o.name in names[site] and o.bytes is not None]
        equations += [(f, log.sizes[number]) for f in formulas] if len(formulas) == 1 else []
    kernel = {r.name: r.kernel for r in model.regions}
    trips = {launch.kernel: launch.trips for launch in log.launches if launch.trips}
    for place in model.launches:
        if place.trip_count is not None and kernel[place.region] in trips:
            equations.append((place.trip_count, trips[kernel[place.region]]))
    values: dict[str, int] = {}
    for _ in range(3):  # what is known of one formula helps with the next
        for formula, total in equations:
            values |= _solved(formula, total, values)
    return values


def _solved(formula: Formula, total: int, values: dict[str, int]) -> dict[str, int]:
    """Return the value of a formula's only unknown variable, if it occurs in one term."""
    unknown = sorted(formula.variables() - values.keys())
    terms = [(term, count) for term, count in formula.terms if set(term) & set(unknown)]
    if len(unknown) != 1 or len(terms) != 1:
        return {}
    (term, count), power = terms[0], terms[0][0].count(unknown[0])
    rest = formula.at(values | {unknown[0]: 0})
    factor = count * math.prod(values[v] for v in term if v in values)
    if factor == 0 or (total - rest) / factor < 0:
        return {}
    return {unknown[0]: round(((total - rest) / factor) ** (1 / power))}


def _bounds(model: ProgramModel, log: Log, known: dict[str, int]) -> dict[str, int]:
    """Return the values with those of loops' bounds: of the numbers on the command line the one
    that fits the logged launches best.
    """
    numbers = {int(word) for word in log.arguments if word.isdigit() and 0 < int(word) < 10**9}
    values = dict(known)
    for variable in sorted(model.flow.variables() - known.keys()):
        tried: list[dict[str, int]] = [{}, *({variable: n} for n in sorted(numbers))]
        fits = [_misfit(model, log, {**values, **each}) for each in tried[:_MOST_CANDIDATES]]
        values |= tried[fits.index(min(fits))]
    return values


def _misfit(model: ProgramModel, log: Log, values: dict[str, int]) -> float:
    often = model.flow.frequencies(model.flow.turns(values))
    kernel = {r.name: r.kernel for r in model.regions}
    estimated: dict[str, float] = defaultdict(float)
    for launch, frequency in zip(model.launches, often, strict=True):
        estimated[kernel[launch.region]] += frequency
    logged: dict[str, int] = defaultdict(int)
    for seen in log.launches:
        logged[seen.kernel] += 1
    return sum(
        abs(math.log(max(estimated[k], 1e-9) / n)) for k, n in logged.items() if k in estimated
    )

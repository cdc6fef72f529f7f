"""What each open reading of a paper changes by itself.

    python -m benchmarks.readings_apart hybrid [--only machine.unmap,program.first_touch]
        [--applications cfd,bfs] [--schemes um,host,lru,glm,rdm] [--findings H1,H2]

Every value but the default of each open point (``OPEN`` of the paper) is tried with all others at
their defaults, with the setup of ``--robustness``. The table has a row for each: the
findings' numbers, and how many verdicts differ from the default's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tidegate.display.tables import Table
from tidegate.papers import find_paper
from tidegate.papers.ledger import Finding
from tidegate.papers.readings import Reading, Readings, distinct, run_variants
from tidegate.papers.results import Groups


def readings_apart(readings: Readings, only: set[str]) -> Iterator[tuple[str, Reading]]:
    """Yield the default reading, and every one that differs from it in one point."""
    default = {point: values[0] for point, values in readings.points.items()}
    yield "as it is", default
    for point, values in readings.points.items():
        if not only or point in only:
            for value in values[1:]:
                yield f"{point} = {value}", {**default, point: value}


def shown(found: dict[str, Finding], label: str) -> str:
    number = found[label].number if label in found else None
    return "–" if number is None else f"{number:.3g}"


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("paper")
    for name, text in (
        ("only", "open points"),
        ("applications", "applications"),
        ("schemes", "schemes of the grid"),
        ("findings", "beginnings of the findings' labels"),
    ):
        parse.add_argument(f"--{name}", default="", help=f"some {text}, with commas")
    given = parse.parse_args()
    only, applications, schemes, wanted = (
        {part for part in text.split(",") if part}
        for text in (given.only, given.applications, given.schemes, given.findings)
    )
    paper = find_paper(given.paper)
    assert paper.readings, f"{given.paper} has no open readings"
    small = paper.readings.reduce(paper.setup())
    keys = [
        key
        for key in paper.grid(small)
        if paper.readings.includes(small, key, 0)
        and (not schemes or key[1] in schemes)
        and (not applications or str(key[0]).split()[0] in applications)
    ]
    grids = {
        name: {key: paper.readings.variant(key, reading) for key in keys}
        for name, reading in readings_apart(paper.readings, only)
    }
    specs = {v: paper.specification(v, small) for v in distinct(grids.values())}
    runs = run_variants(specs, shares_traces=paper.caches_traces)
    by_reading = {
        name: {
            f.label: f
            for f in paper.findings(small, Groups.from_runs({k: runs[v] for k, v in grid.items()}))
        }
        for name, grid in grids.items()
    }
    default = by_reading["as it is"]
    labels = [
        label
        for label, f in default.items()
        if f.number is not None and (not wanted or any(label.startswith(w) for w in wanted))
    ]
    rows = []
    for name, found in by_reading.items():
        others = sum(f.verdict is not default[label].verdict for label, f in found.items())
        rows.append((name, *(shown(found, label) for label in labels), str(others)))
    columns = ("reading", *labels, "verdicts that differ")
    title = f"{given.paper}: open readings, one at a time; {len(specs)} runs"
    print(Table(columns, rows, title).text())


if __name__ == "__main__":
    main()

"""Parts: the results of a sweep as Parquet files, one for each batch, and their table.

    parts/HASH.parquet     a row per run: its name, its figures, its settings
    failed/HASH.parquet    a row per run that failed: its name, the reason, its settings

HASH is of the names of the batch's runs, and a run's name determines its figures. So a batch that
is done twice gives the same file. Polars and DuckDB read the files in place.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.experiments.sweeps.batches import Failed, Task, Work
from tidegate.experiments.sweeps.places import FileStore

PARTS, FAILED = "parts", "failed"
FIGURES, WHOLE = "figures", "whole"  # what of a run is kept beside its row
READERS = 16  # files read at a time: object storage answers each after some milliseconds
# The first columns of a table, for people; the others follow by name. Parts differ in their columns
# (three-tier runs have their own), and which runs share a part depends on how long runs take.
LEADING = (
    *("run", "workload", "machine", "tiering", "eviction", "prefetch", "placement"),
    *("near_bytes", "middle_bytes", "footprint_bytes", "time_ns", "faults", "evictions"),
)


@dataclass(frozen=True)
class RowsOfRuns(Work):
    """Write a batch's figures as one part. ``detail``: also keep the run as JSON, in a column of
    the same part: all its FIGURES, or the WHOLE run with timelines.
    """

    place: FileStore
    detail: str = ""
    shares_traces: bool = True

    def run(self, task: Task) -> dict[str, Any]:
        return row_of(task, task.spec.run_watched(), self.detail)

    def finish(self, tasks: Sequence[Task], answers: list[Any]) -> list[Any]:
        failed = {t: a for t, a in zip(tasks, answers, strict=True) if isinstance(a, Failed)}
        rows = [a for a in answers if not isinstance(a, Failed)]
        file = _file_of(tasks)
        if failed:
            reasons = [_failure(task, failure.reason) for task, failure in failed.items()]
            self.place.put(f"{FAILED}/{file}", packed(reasons))
        if rows:
            self.place.put(f"{PARTS}/{file}", packed(rows))
        return [a if isinstance(a, Failed) else None for a in answers]

    def recover(self, tasks: Sequence[Task]) -> list[Any] | None:
        part = self.place.get(f"{PARTS}/{_file_of(tasks)}")
        if part is None:
            return None
        there = set(unpacked(part, ["run"])["run"])
        return [None if t.name in there else Failed("see the table of failures") for t in tasks]


def row_of(task: Task, run: Run, detail: str = "") -> dict[str, Any]:
    """Return the figures of a run in one flat row."""
    flat = {k: v for k, v in run.summary.items() if not isinstance(v, dict | list | tuple)}
    row = {"run": task.name, **flat, "settings": task.settings}
    if detail:
        kept = run.to_json()
        if detail == FIGURES:
            kept |= {"inputs": {}, "tables": {}, "notes": []}
        row["detail"] = json.dumps(kept, default=str)
    return row


def run_of(row: dict[str, Any]) -> Run:
    """Return the run of a row that was kept with its detail; its key is its name."""
    return Run.from_json(json.loads(row["detail"]) | {"key": row["run"], "from_store": True})


def _failure(task: Task, reason: str) -> dict[str, Any]:
    return {"run": task.name, "failed": reason, "settings": task.settings}


def _file_of(tasks: Sequence[Task]) -> str:
    return _named(task.name for task in tasks)


def _named(names: Iterable[str]) -> str:
    return hashlib.sha256("".join(sorted(names)).encode()).hexdigest()[:32] + ".parquet"


def packed(rows: Sequence[dict[str, Any]] | pl.DataFrame) -> bytes:
    """Return rows as a Parquet file."""
    table = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, infer_schema_length=None)
    content = io.BytesIO()
    table.write_parquet(content, compression="zstd")
    return content.getvalue()


def unpacked(content: bytes, columns: list[str] | None = None) -> pl.DataFrame:
    """Return the rows of a Parquet file."""
    return pl.read_parquet(io.BytesIO(content), columns=columns)


class SweepTables:
    """The parts in a place. What was read once is not read again."""

    def __init__(self, place: FileStore):
        self.place = place
        self._seen: set[str] = set()  # files whose runs are known
        self._known: set[str] = set()

    def known(self) -> set[str]:
        """Return the names of all runs that are there."""
        new = [file for file in self.place.names(PARTS) if file not in self._seen]
        for file, part in zip(new, self._read(new, ["run"]), strict=True):
            if part is not None:
                self._seen.add(file)
                self._known.update(part["run"])
        return self._known

    def table(self) -> pl.DataFrame:
        """Return the rows of all runs that are there, each once."""
        return self._read_kind(PARTS)

    def failures(self) -> pl.DataFrame:
        """Return the runs that failed and were not made since."""
        failed, known = self._read_kind(FAILED), self.known()
        return failed.filter(~pl.col("run").is_in(list(known))) if failed.height else failed

    def compact(self) -> tuple[int, int]:
        """Merge all parts into one, and drop failures that were made good; return how many files
        there were, and how many there are.
        """
        before = [*self.place.names(PARTS), *self.place.names(FAILED)]
        kept = []
        for kind, rows in ((PARTS, self.table()), (FAILED, self.failures())):
            if rows.height:
                kept.append(f"{kind}/{_named(rows['run'])}")
                self.place.put(kept[-1], packed(rows))
        self.place.remove(set(before) - set(kept))
        return len(before), len(kept)

    def _read_kind(self, kind: str) -> pl.DataFrame:
        parts = [part for part in self._read(self.place.names(kind)) if part is not None]
        if not parts:
            return pl.DataFrame(schema={"run": pl.String})
        rows = pl.concat(parts, how="diagonal_relaxed").unique("run", keep="any").sort("run")
        leading = [name for name in LEADING if name in rows.columns]
        return rows.select(*leading, *sorted(set(rows.columns) - set(leading)))

    def _read(
        self, files: Sequence[str], columns: list[str] | None = None
    ) -> list[pl.DataFrame | None]:
        """Return parts; None for one that another process has just merged."""
        if not files:
            return []
        with ThreadPoolExecutor(READERS) as readers:
            return list(readers.map(lambda file: self._read_one(file, columns), files))

    def _read_one(self, file: str, columns: list[str] | None) -> pl.DataFrame | None:
        content = self.place.get(file)
        if content is None:
            return None
        try:
            return unpacked(content, columns)
        except (PolarsError, OSError) as error:
            raise TidegateError(
                f"{self.place}/{file} is damaged or not a part of a sweep; remove it, and run the "
                "sweep again"
            ) from error

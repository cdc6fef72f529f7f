"""The op file: the four tables of ops, stacked in one Parquet table (zstd).

The column ``table`` says to which table a row belongs; columns that a table does not have are null.
Name, provenance, notes and the hash of the tables are in the file's metadata, key ``tidegate``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from tidegate.errors import TidegateError
from tidegate.files import write_atomically
from tidegate.trace.ops.ops import TABLES, Ops
from tidegate.trace.trace import Provenance

FORMAT = 1
_MOST_ROWS = 1 << 28


def save_ops(ops: Ops, path: str | Path) -> Path:
    """Write ops to ``path``, which must end in .parquet: the whole file or nothing."""
    path = Path(path)
    if path.suffix != ".parquet":
        raise TidegateError(f"cannot write {path}: its name must end in .parquet")
    head = {
        "ops": FORMAT,
        "name": ops.name,
        "provenance": ops.provenance.value,
        "notes": list(ops.notes),
        "sha256": ops.digest,
    }
    stacked = pl.concat(
        [getattr(ops, name).select(pl.lit(name).alias("table"), pl.all()) for name in TABLES],
        how="diagonal",
    )

    def write(partial: Path) -> None:
        stacked.write_parquet(
            partial,
            compression="zstd",
            compression_level=9,
            metadata={"tidegate": json.dumps(head)},
        )

    try:
        write_atomically(path, write)
    except PolarsError as error:
        raise TidegateError(f"cannot write {path}: {error}") from error
    return path


def holds_ops(path: Path) -> bool:
    """Return whether a file is Parquet with ops; False also if it cannot be read."""
    try:
        return '"ops"' in pl.read_parquet_metadata(path).get("tidegate", "")
    except (PolarsError, OSError):
        return False


def load_ops(path: str | Path) -> Ops:
    """Return the ops in a file. Raise TidegateError if it is damaged or holds no ops."""
    path = Path(path)
    head, rows = _read(path)
    try:
        tables = {}
        for name, schema in TABLES.items():
            tables[name] = rows.filter(pl.col("table") == name).select(list(schema))
        ops = Ops(
            str(head["name"]),
            Provenance(head["provenance"]),
            tuple(map(str, head["notes"])),
            **tables,
        )
        expected = str(head["sha256"])
    except (KeyError, TypeError, ValueError, PolarsError) as error:
        raise TidegateError(
            f"{path} does not hold ops: {_one_line(error)}; record them anew"
        ) from None
    if ops.digest != expected:
        raise TidegateError(
            f"{path} is damaged: its content does not match its hash; record it anew"
        )
    return ops


def _read(path: Path) -> tuple[dict[str, Any], pl.DataFrame]:
    if not path.is_file():
        raise TidegateError(f"no file {path}")
    make = "make one with 'tidegate record'"
    try:
        head = json.loads(pl.read_parquet_metadata(path)["tidegate"])
        if head["ops"] != FORMAT:
            raise TidegateError(
                f"{path} has op format {head['ops']}; this Tidegate reads format {FORMAT}"
            )
        if (count := pl.scan_parquet(path).select(pl.len()).collect().item()) > _MOST_ROWS:
            raise TidegateError(f"{path} has {count} rows; at most {_MOST_ROWS} can be read")
        return head, pl.read_parquet(path)
    except (PolarsError, OSError) as error:
        raise TidegateError(
            f"{path} is not a whole Parquet file ({_one_line(error)}); {make}"
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise TidegateError(f"{path} is Parquet, but holds no ops; {make}") from error


def _one_line(error: BaseException) -> str:
    return str(error).split("\n")[0]

"""Traces of other tools, read as Tidegate traces.

    file ──▶ recognise ──▶ Importer ──▶ RawLaunch, RawLaunch …   addresses, as the file has them
                                    └─▶ ImportedTrace            objects and pages, for a geometry
                       ExecutionTrace ──▶ ops ──▶ OpTrace        operators and tensors

An importer is one class: it recognises its format by content and streams launches. Addresses
become objects and pages in ``imported.py``, for all formats alike.

>>> sorted(IMPORTERS)[:3]
['accel-sim', 'csv', 'execution-trace']
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from tidegate.errors import TidegateError
from tidegate.trace.geometry import Geometry
from tidegate.trace.importers.execution_trace import ExecutionTrace
from tidegate.trace.importers.faults import Nsight, UvmTools
from tidegate.trace.importers.imported import Progress
from tidegate.trace.importers.importer import Importer, read_head
from tidegate.trace.importers.instructions import AccelSim, NvBit
from tidegate.trace.importers.lackey import Lackey
from tidegate.trace.importers.requests import Csv, OracleGeneral
from tidegate.trace.importers.serving import KvCache, MoE
from tidegate.trace.trace import Trace

# binary formats with a signature first, loose text formats last
_BY_CONFIDENCE: tuple[type[Importer], ...] = (
    *(Nsight, ExecutionTrace, NvBit, AccelSim, Lackey, KvCache, MoE, UvmTools, OracleGeneral, Csv),
)
IMPORTERS: dict[str, type[Importer]] = {importer.name: importer for importer in _BY_CONFIDENCE}


def import_trace(
    path: str | Path,
    format: str | None = None,
    geometry: Geometry | None = None,
    progress: Progress = lambda read: None,
    **options: str,
) -> Trace:
    """Return the trace in ``path``, a file of another tool.

    ``format`` is recognised by content unless it is given. ``options`` are those of the format,
    such as ``expert_bytes`` of ``moe``. ``progress`` takes the bytes read since the last call.
    """
    path = Path(path)
    found = find_importer(path, format)
    return found(path, **options).trace(geometry or Geometry(), progress)


def find_importer(path: Path, format: str | None = None) -> type[Importer]:
    """Return the importer of this format, or of the one that the content has."""
    if path.is_dir():
        raise TidegateError(f"{path} is a folder; give the file of a trace")
    if not path.is_file():
        raise TidegateError(f"there is no file {path}; give the file of a trace")
    return _by_name(format) if format else recognise(path)


def recognise(path: Path) -> type[Importer]:
    """Return the importer whose format the content of ``path`` has."""
    head = read_head(path)
    if not head:
        raise TidegateError(f"{path} is empty; expected a trace")
    for importer in IMPORTERS.values():
        if importer.recognises(path, head):
            return importer
    raise TidegateError(
        f"{path} has no format that Tidegate recognises; give one with --format: "
        f"{', '.join(IMPORTERS)}"
    )


def _by_name(name: str) -> type[Importer]:
    if name not in IMPORTERS:
        near = get_close_matches(name, IMPORTERS, 1)
        hint = (
            f"; did you mean '{near[0]}'?" if near else f"; expected one of {', '.join(IMPORTERS)}"
        )
        raise TidegateError(f"format must be one that can be imported, got '{name}'{hint}")
    return IMPORTERS[name]

"""tidegate analyze: miss-ratio curve and reuse of a trace, without a machine."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import access_sites, output
from tidegate.cli import run_options as o
from tidegate.cli.output import ProgressBar
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.analysis import Analysis


class UnitName(StrEnum):
    """The unit that is counted."""

    REGION = "region"
    PAGE = "page"


@o.takes_settings(*o.TRACE)
def analyze(
    workload: o.Workload,
    settings: o.Settings,
    unit: Annotated[
        UnitName, typer.Option("--unit", help="Count pages or regions.")
    ] = UnitName.REGION,
    leu: Annotated[
        bool, typer.Option("--leu", help="Which access sites deserve memory (LEU).")
    ] = False,
    near: Annotated[
        str | None,
        typer.Option(
            "--near", help="Near memory, with --leu; by default two thirds of what is touched."
        ),
    ] = None,
    shards: Annotated[
        str | None, typer.Option("--shards", help="Also sample at this rate, e.g. 1% (SHARDS).")
    ] = None,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
    plot: output.PlotTo = None,
) -> None:
    """The exact LRU miss-ratio curve, reuse distances and footprint over time, in one pass.

    tidegate analyze matmul --bytes 1GiB --shards 1% --plot curve.png
    tidegate analyze matmul --leu --near 512MiB --plot references.png
    """
    output.check(as_json, as_csv, plot)
    if near is not None and not leu:
        raise TidegateError(f"--near {near} was given without --leu; the curve has every size")
    if shards is not None and leu:
        raise TidegateError(
            "--shards and --leu were both given; --shards samples the LRU curve, give one"
        )
    from tidegate import units
    from tidegate.analysis import analyze as analyze_trace

    rate = units.fraction(shards) if shards is not None else None
    module: Any = access_sites if leu else sys.modules[__name__]
    found: Any
    with output.user_code():
        trace = o.find_trace(workload, settings)
        with ProgressBar(f"analyze {trace.name}") as bar:
            if leu:
                found = access_sites.analyze(trace, unit.value, near, bar.advance)
            else:
                found = analyze_trace(trace, unit.value, rate, bar.advance)
    output.show(found, module.data(found), module.rows(found), module.show, as_json, as_csv, plot)


def rows(found: Analysis) -> list[dict[str, float]]:
    """Return the curve at up to 64 sizes."""
    from tidegate.analysis.analysis import curve_points

    return curve_points(found)


def data(found: Analysis) -> dict[str, object]:
    return {
        "name": found.name,
        "unit": found.unit,
        "unit_bytes": found.unit_bytes,
        "touches": found.touches,
        "distinct": found.distinct,
        "curve": rows(found),
        "histogram": found.histogram.to_dicts(),
        "footprint": found.footprint.to_dicts(),
    }


def show(found: Analysis) -> None:
    from tidegate.analysis.analysis import analysis_head, analysis_tables

    output.print_text(analysis_head(found))
    output.print_tables(analysis_tables(found))

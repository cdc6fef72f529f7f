"""tidegate live: run scripts with large arrays in live memory, record them, show running arenas."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output, run_options
from tidegate.cli.usage import Verbs
from tidegate.errors import TidegateError
from tidegate.live.arena.setup import EVICTION, PREFETCH

if TYPE_CHECKING:
    from tidegate.live.script.run import ScriptOptions

CATCH_ROOM = 4  # times near memory
_LONGEST = 24 * 3600  # seconds that rates are counted over

app = Verbs(help="Live memory: the same policies on real arrays.")

Script = Annotated[
    str, typer.Argument(help="A Python script; what follows is passed to it.", show_default=False)
]
Arguments = Annotated[
    list[str] | None, typer.Argument(help="The script's own arguments.", show_default=False)
]
NearMemory = Annotated[
    str, typer.Option("--near", help="Near memory: RAM for all large arrays, e.g. 256MiB.")
]
EvictionName = Annotated[
    str,
    typer.Option(
        "--eviction", "-e", help="An eviction policy that sees faults, samples or touch bits."
    ),
]
PrefetchName = Annotated[str, typer.Option("--prefetch", help="A prefetch policy.")]
Store = Annotated[
    str | None, typer.Option("--store", help="A file for far memory; it is gone afterwards.")
]
MinArray = Annotated[
    str, typer.Option("--min-array", help="Arrays of at least this size are live memory.")
]
Middle = Annotated[
    str | None,
    typer.Option("--middle", help="RAM for compressed pages between near memory and the store."),
]
Tiering = Annotated[
    str | None,
    typer.Option(
        "--tiering",
        help="With --middle: where pages go that leave near memory; tier-order by default.",
    ),
]
Watchdog = Annotated[
    float | None,
    typer.Option(
        "--watchdog",
        help="Seconds for one call of a policy; one that takes longer is replaced; 5 by default.",
        show_default=False,
    ),
]
Catch = Annotated[
    str | None,
    typer.Option(
        "--catch",
        help="Large blocks of libraries, too: of torch, of arrow, or of all that calls malloc.",
        show_default=False,
    ),
]
Room = Annotated[
    str | None,
    typer.Option(
        "--room",
        help="With --catch: bytes for all such blocks; four times --near by default.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No summary on stderr.")]
LEAST_WAIT = 0.1  # seconds between two looks at least
CLEAR = "\x1b[2J\x1b[H"  # the terminal
_OWN = {"allow_interspersed_args": False}  # words behind the script are the script's


@app.callback()
def live() -> None:
    """Live memory: the same policies on real arrays."""


@app.command("run", context_settings=_OWN)
def run(
    script: Script,
    arguments: Arguments = None,
    near: NearMemory = "256MiB",
    eviction: EvictionName = EVICTION,
    prefetch: PrefetchName = PREFETCH,
    placement: run_options.Placement = None,
    geometry: run_options.GeometryText = None,
    store: Store = None,
    middle: Middle = None,
    tiering: Tiering = None,
    watchdog: Watchdog = None,
    min_array: MinArray = "1MiB",
    catch: Catch = None,
    room: Room = None,
    quiet: Quiet = False,
) -> None:
    """Run a script, unchanged, with its large NumPy arrays in an arena. Its output and its exit
    code are its own.

    tidegate live run --near 256MiB --eviction cp --prefetch stream script.py arguments
    """
    arena = _arena(near, eviction, prefetch, placement, geometry, store, middle, tiering, watchdog)
    options = _options(arena, None, quiet, catch, _room(near, catch, room))
    _become(script, arguments, options, min_array)


@app.command("record", context_settings=_OWN)
def record(
    script: Script,
    arguments: Arguments = None,
    output_file: Annotated[
        str, typer.Option("-o", "--out", help="The file to write, e.g. my.trace.parquet.")
    ] = "live.trace.parquet",
    near: NearMemory = "256MiB",
    eviction: EvictionName = "lru",
    prefetch: PrefetchName = "none",
    placement: run_options.Placement = None,
    geometry: run_options.GeometryText = None,
    store: Store = None,
    middle: Middle = None,
    tiering: Tiering = None,
    watchdog: Watchdog = None,
    min_array: MinArray = "1MiB",
    quiet: Quiet = False,
) -> None:
    """Run a script as `live run` does and write its faults and notifications as a trace, for
    `tidegate run`.

    tidegate live record -o my.trace.parquet --near 64MiB script.py arguments
    """
    arena = _arena(near, eviction, prefetch, placement, geometry, store, middle, tiering, watchdog)
    options = _options(arena, str(_target(output_file)), quiet)
    _become(script, arguments, options, min_array)


def _target(output_file: str) -> Path:
    """Return where the trace goes; refuse what cannot be written before the script runs."""
    target = Path(output_file).absolute()
    if output_file and target.is_dir():
        raise TidegateError(
            f"{output_file} cannot be written: it is a folder; give a file such as my.trace.parquet"
        )
    if target.suffix != ".parquet":
        raise TidegateError(
            f"a trace cannot be written to '{output_file}'; give a file whose name ends in .parquet"
        )
    if not target.parent.is_dir():
        raise TidegateError(f"{output_file} cannot be written: there is no folder {target.parent}")
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise TidegateError(
            f"{output_file} cannot be written: {error.strerror or error} in {target.parent}; "
            "give another folder"
        ) from error
    return target


def _arena(
    near: str,
    eviction: str,
    prefetch: str,
    placement: str | None,
    geometry: str | None,
    store: str | None,
    middle: str | None,
    tiering: str | None,
    watchdog: float | None,
) -> dict[str, Any]:
    if tiering is not None and middle is None:
        raise TidegateError("--tiering was given without --middle; add e.g. --middle 256MiB")
    if watchdog is not None:
        from tidegate.live.arena.arguments import check_watchdog

        check_watchdog(watchdog)
    given = {
        "near": near,
        "eviction": eviction,
        "prefetch": prefetch,
        "placement": placement,
        "geometry": geometry,
        "store": store,
        "middle": middle,
        "tiering": tiering,
        "watchdog": watchdog,
    }
    return {name: value for name, value in given.items() if value is not None}


def _options(
    arena: dict[str, Any], record: str | None, quiet: bool, catch: str | None = None, room: int = 0
) -> ScriptOptions:
    from tidegate.live.script.run import ScriptOptions

    return ScriptOptions(arena, 0, record, quiet, catch, room)


def _room(near: str, catch: str | None, room: str | None) -> int:
    """Return the bytes for caught blocks."""
    from tidegate import units

    if catch is None:
        if room is not None:
            raise TidegateError("--room was given without --catch; add e.g. --catch torch")
        return 0
    return units.size(room) if room is not None else CATCH_ROOM * units.size(near)


def _become(
    script: str, arguments: list[str] | None, options: ScriptOptions, min_array: str
) -> None:
    """Turn this process into the script's, so that its exit code and its signals are its own."""
    from tidegate import units
    from tidegate.interrupts import block_interrupts

    arena, environment = options.arena, dict(os.environ)
    if Path(script).is_dir():
        raise TidegateError(
            f"{script} is a folder; give a script, such as {Path(script) / 'main.py'}"
        )
    if not Path(script).is_file():
        raise TidegateError(f"there is no script {script}")
    for capacity in ("near", "middle"):  # refuse a wrong size here, before the script's process
        units.size(arena.get(capacity, 0))
    if "geometry" in arena:
        # imported only here: NumPy and polars start threads, and a Ctrl-C that one of them gets
        # while this process is replaced is lost
        from tidegate.trace.geometry import Geometry

        Geometry.parse(arena["geometry"])
    options.min_array = units.size(min_array)
    if options.catch is not None:
        from tidegate.live.script import catch

        catch.check_caught(options.catch)
        catch.prepare(options.catch, environment)
    command = options.command(script, arguments or [])
    block_interrupts()
    os.execve(command[0], command, environment)


@app.command("top")
def top(
    as_json: output.AsJson = False,
    seconds: Annotated[
        float, typer.Option("--seconds", help="How long to count before showing rates.")
    ] = 1.0,
    once: Annotated[
        bool, typer.Option("--once", help="Show once; so do --json and output to a pipe.")
    ] = False,
) -> None:
    """Show the running arenas, again and again until Ctrl-C: faults and hits per second, near use
    and the objects with most faults.

    tidegate live top
    """
    from tidegate.live.arena.running import rates, running_arenas

    if not 0 <= seconds <= _LONGEST:
        raise TidegateError(
            f"--seconds must be from 0 to {_LONGEST}, e.g. --seconds 1, got {seconds:g}"
        )
    again = sys.stdout.isatty() and not once and not as_json
    before = running_arenas()
    try:
        while True:
            if before or again:
                time.sleep(max(seconds, LEAST_WAIT) if again else seconds)
            after = running_arenas()
            found = rates(before, after)
            if as_json:
                output.print_json(found)
            else:
                print(CLEAR if again else "", end="")
                _show(found)
            if not again:
                return
            before = after
    except KeyboardInterrupt:
        if not again:
            raise


def _show(found: list[dict[str, Any]]) -> None:
    if not found:
        print("no arena is running")
        return
    columns = "process|policies|near|of|faults/s|hits|evictions|read|written|most faults"
    drop = ("written", "read", "most faults", "evictions", "of", "hits")
    output.print_table(columns.split("|"), [_row(a) for a in found], left=2, drop=drop)


def _row(arena: dict[str, Any]) -> tuple[str, ...]:
    from tidegate.units import show_size

    share = arena["hit_share"]
    return (
        str(arena["process"]),
        " + ".join(_policy(arena, kind) for kind in ("eviction", "prefetch")),
        show_size(arena["near_bytes"]),
        show_size(arena["bytes"]),
        f"{arena['faults_per_second']:.0f}",
        "–" if share is None else f"{share:.0%}",
        f"{arena['evictions']:,}",
        show_size(arena["bytes_in"]),
        show_size(arena["bytes_out"]),
        ", ".join(o["name"] for o in arena["objects"][:3]),
    )


def _policy(arena: dict[str, Any], kind: str) -> str:
    failed = arena["replaced"].get(kind)
    return f"{arena[kind]} (for {failed})" if failed else str(arena[kind])

"""tidegate live: running arenas."""

from __future__ import annotations

from typing import Any

import typer

from tidegate.cli import output

app = typer.Typer(help="Live memory: the same policies on real arrays.")


@app.callback()
def live() -> None:
    """Live memory: the same policies on real arrays."""


@app.command("top")
def top(as_json: output.AsJson = False) -> None:
    """Show the running arenas: faults, near use and their objects.

    tidegate live top
    """
    from tidegate.live.running import running_arenas

    found = running_arenas()
    if as_json:
        output.print_json(found)
    elif not found:
        print("no arena is running")
    else:
        output.print_table(
            ["process", "policies", "near", "of", "faults/s", "evictions", "read", "written", "most faults"],
            [_row(a) for a in found],
        )


def _row(arena: dict[str, Any]) -> tuple[str, ...]:
    from tidegate.units import show_size

    return (
        str(arena["process"]), f"{arena['eviction']} + {arena['prefetch']}", show_size(arena["near_bytes"]),
        show_size(arena["bytes"]), f"{arena['faults'] / max(arena['seconds'], 1e-9):.0f}", f"{arena['evictions']:,}",
        show_size(arena["bytes_in"]), show_size(arena["bytes_out"]),
        ", ".join(o["name"] for o in arena["objects"][:3]),
    )  # fmt: skip

"""Live memory: the simulator's policies on real arrays, by Linux's userfaultfd (docs/live.md).

Arena (your program) ──requests──▶ supervisor ──forks──▶ pager: engine + policies, mover
   │  arrays                       holds every                │
   └──────────── faults ───────────descriptor─────────────────┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.live.arena.arena import Arena as Arena


def __getattr__(name: str) -> Any:
    """Import Arena on first use, so that starting a script does not wait for it."""
    if name != "Arena":
        raise AttributeError(f"module 'tidegate.live' has no attribute '{name}'")
    from tidegate.live.arena.arena import Arena

    globals()[name] = Arena
    return Arena

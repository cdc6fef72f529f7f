"""Live memory: the simulator's policies on real arrays, by Linux's userfaultfd (docs/live.md).

Arena (your program) ──requests──▶ supervisor ──forks──▶ pager: engine + policies, mover
   │  arrays                       holds every                │
   └──────────── faults ───────────descriptor─────────────────┘
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.live.arena.arena import Arena as Arena
    from tidegate.live.weights.weights import Weights as Weights
    from tidegate.live.weights.weights import load_gguf as load_gguf
    from tidegate.live.weights.weights import load_safetensors as load_safetensors

_WEIGHTS = "tidegate.live.weights.weights"
_HOME = {
    "Arena": "tidegate.live.arena.arena",
    "Weights": _WEIGHTS,
    "load_gguf": _WEIGHTS,
    "load_safetensors": _WEIGHTS,
}


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that starting a script does not wait for it."""
    if name not in _HOME:
        raise AttributeError(f"module 'tidegate.live' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value

"""In place of a mover, for an engine without memory."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.live.transfer.mover import LiveMover


class NoMover(LiveMover):
    """Moves nothing."""

    def __init__(self) -> None:
        self.observe_ns = 0

    def __getattribute__(self, name: str) -> Callable[..., int] | int:
        return 0 if name == "observe_ns" else lambda *_: 0

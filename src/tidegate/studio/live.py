"""Running arenas of this user, pushed to the page."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request

from tidegate.live.arena.running import rates, running_arenas

SECONDS = 0.5  # between two looks


def own_arenas() -> list[dict[str, Any]]:
    """Return the arenas of this user, whoever else's could be seen."""
    return [a for a in running_arenas(residency=True) if a["user"] == os.getuid()]


async def events(request: Request) -> AsyncIterator[str]:
    """Yield server-sent events: what runs, with rates since the event before."""
    before: list[dict[str, Any]] = []
    while not await request.is_disconnected():
        now = await asyncio.to_thread(own_arenas)
        yield f"data: {json.dumps(rates(before, now))}\n\n"
        before = now
        await asyncio.sleep(SECONDS)

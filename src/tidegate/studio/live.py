"""Running arenas of this user, pushed to the page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request

from tidegate.live.arena.running import rates, running_arenas

SECONDS = 0.5  # between two looks


async def events(request: Request) -> AsyncIterator[str]:
    """Yield server-sent events: what runs, with rates since the event before."""
    before: list[dict[str, Any]] = []
    while not await request.is_disconnected():
        now = await asyncio.to_thread(running_arenas, True)
        yield f"data: {json.dumps(rates(before, now))}\n\n"
        before = now
        await asyncio.sleep(SECONDS)

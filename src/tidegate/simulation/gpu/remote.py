"""Remote access: touches of pages that are mapped far, over a link that all slots share.

    slot 3  ──touch──▶ ┐
    slot 7  ──touch──▶ ├─ the link, one after another ──▶ far memory
    slot 9  ──touch──▶ ┘   sharing × bytes each           a counter may see it

A slot that is alone on the link takes as long as the link does, or as near memory would if that is
longer, and a round trip; many wait for one another. ``link_free`` is when the link will have
carried all that was asked of it so far. It never lies before the current round, in which the order
of slots means nothing: within a round the link is late only if more was asked of it than it carries
in that time.

Nothing caches far memory: the driver maps it uncached (uvm_va_block.c, uvm_exp_gpu_cache_sysmem =
0). What several thread blocks of a wave use therefore crosses the link once for each of them
(``Launch.sharing``). A sampled page comes home after its first use, so it crosses once.
"""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.page_flags import UNWRITTEN
from tidegate.simulation.gpu.observation import count_access, notice


@jit_bare
def touch_remote(
    memory: Any,
    constants: Any,
    sharing: Any,
    page: int,
    size: int,
    reference: int,
    time: float,
    near: float,
) -> float:
    """Return when a touch that begins at ``time`` ends; ``near``: how long it would take if near.

    Far memory now has the page, if it had nothing of it.
    """
    books = memory.books[0]
    memory.page_data[page] &= ~UNWRITTEN & 0xFF
    if memory.sampled[page]:
        notice(memory, page, time + constants.remote_latency)
    elif 0 <= reference < sharing.size:
        size = int(size * sharing[reference])
    crossing = size * constants.remote_per_byte
    books.link_free += crossing
    end = max(time + max(near, crossing), books.link_free) + constants.remote_latency
    books.remote_touches += 1
    books.remote_bytes += size
    books.remote_time += end - time
    if not memory.sampled[page]:
        count_access(memory, page, size, end)
    return end

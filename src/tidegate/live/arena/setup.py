"""ArenaSetup: everything an arena's processes are started with, as plain data.

Descriptors keep their numbers from process to process.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

# the policies of an arena by default: the best over the patterns of docs/live-costs.md
EVICTION, PREFETCH = "loop", "stream"
# what a program's end is called if there is nobody left to serve its faults
GONE = (
    "tidegate: live memory cannot go on: its supervisor is gone; the program ends with SIGBUS "
    "(see docs/live-limits.md)"
)


@dataclass
class ArenaSetup:
    """Geometry, policies and descriptors of one arena."""

    name: str
    page: int
    region: int
    pages: int  # of the whole address range
    frames: int
    eviction: str
    prefetch: str
    placement: str
    observed: int | None
    samples: int
    observe_share: float  # of time
    watchdog: float  # seconds that one call of a policy may take
    tiering: str  # "" if there is no middle tier
    middle_bytes: int
    base: int = 0  # the first address
    can_poison: bool = False
    # descriptors; -1: none
    uffd: int = -1
    memory: int = -1  # the memory file that is mapped at base (transfer/near_file.py)
    huge: bool = False  # whole regions may be written to it, and nothing else
    flags: int = -1  # page_state.PageFlags
    copies: int = -1  # page_state.SampledPages
    pidfd: int = -1  # of the program
    store: int = -1
    store_plain: int = -1
    lifeline: int = -1  # never written to; when it closes, the kernel signals the program
    witness: int = -1  # written to when the supervisor ends well
    middle: int = -1
    log: int = -1  # faults and notifications, if they are recorded
    log_events: int = 0  # of which at most so many are kept
    pinned: list[int] = field(default_factory=list)  # regions
    # policies that failed, by kind; another is in their place
    replaced: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> ArenaSetup:
        return cls(**json.loads(text))

    @property
    def descriptors(self) -> list[int]:
        """All descriptors that must be passed on."""
        names = ("uffd", "memory", "flags", "copies", "pidfd", "store", "store_plain", "lifeline")
        every = [getattr(self, name) for name in (*names, "witness", "middle", "log")]
        return [fd for fd in every if fd >= 0]

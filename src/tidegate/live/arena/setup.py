"""Setup: what an arena's processes are started with.

Descriptors keep their numbers from process to process.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field


@dataclass
class Setup:
    """Everything the supervisor and the pager need, as plain data."""

    page: int
    region: int
    pages: int  # of the whole address range
    base: int  # its first address
    frames: int
    eviction: str
    prefetch: str
    placement: str
    observed: int | None
    samples: int
    uffd: int
    can_poison: bool
    memory: int  # the memory file that is mapped at base
    kept: int
    aside: int  # where sampled pages are
    pidfd: int  # of the program
    store: int
    store_plain: int
    lifeline: int  # never written to: that it closes tells the program's kernel that we are gone
    tiering: str = ""  # the placement over tiers, if there is a middle
    middle: int = -1  # its file
    middle_bytes: int = 0
    log: int = -1  # where faults and notifications are recorded
    name: str = ""
    keep_victims: bool = False
    held: list[int] = field(default_factory=list)

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Setup:
        return cls(**json.loads(text))

    @property
    def descriptors(self) -> list[int]:
        """All that must be passed on."""
        every = (
            self.uffd,
            self.memory,
            self.kept,
            self.aside,
            self.pidfd,
            self.store,
            self.store_plain,
            self.lifeline,
            self.log,
            self.middle,
        )
        return [fd for fd in every if fd >= 0]

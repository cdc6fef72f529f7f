"""Costs: what a mechanism's operations take, as far as a runtime knows its machine."""

from __future__ import annotations

from typing import NamedTuple


class Costs(NamedTuple):
    """Times in ns, without what else goes on: a driver or a link may be shared.

    Policies compare them with each other; none of them depends on the program.
    """

    fault: float  # handling a batch of faults, whatever it brings
    observation: float  # sampling a page of a region, noticing its use and bringing it back
    bring: float  # a whole region, by a fault: its way in, and its unmapping from the CPU
    fetch: float  # a whole region, prefetched: the same, but pages are unmapped in batches
    send: float  # a whole region, written back
    remote: float  # one page, used over the link by many: what the link takes, without latency

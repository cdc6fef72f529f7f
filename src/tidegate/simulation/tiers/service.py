"""What a miss costs, and what waits for it.

GPU-orchestrated: threads look the page up, send the victim off and request the page themselves. Up
to ``window`` misses are under way, and the oldest must be served before another begins. Each link
is a server that takes its transfers in order, so many misses together are bound by throughput, and
a lone one by latency. A page comes when its victim is gone, as in BaM, whose threads write a dirty
victim before they read; with spare frames both ways begin together. CPU-orchestrated: one driver
serves one miss after another, from the fault to the last byte. Faults that wait while it is busy
make one batch, and pages of one 2 MB block in a batch share the cost of the block.

Near and middle exchange pages by Hybrid-32T (GMT 2.3): by zero-copy if more than 8 pages are under
way in that direction, else by DMA.

The SSD serves reads and writes from one queue (``shared``), or has one for each. Moving a page from
the middle to the SSD keeps the SSD busy, but no miss waits for it by itself (GMT 2.3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidegate.compiled.jit import jit_within
from tidegate.errors import TidegateError
from tidegate.machine.machine import Machine
from tidegate.policies.interface.tier_policy import Tier
from tidegate.simulation.tiers.state import WAIT_DRIVER, WAIT_HOST, WAIT_STORAGE
from tidegate.simulation.tiers.transfers import HYBRID_PAGES

SERVICES = ("gpu", "cpu")
TRANSFERS = ("hybrid", "zero-copy")
_IN, _OUT = 0, 1  # directions between near and middle memory


class ServiceCosts(NamedTuple):
    """Costs in ns, of one page unless noted."""

    byte: float  # of near memory, by all slots together
    launch: float
    lookup: float  # in the middle
    read: float  # of an SSD that is otherwise idle
    read_latency: float  # at least, from request to arrival
    write: float
    host_in: float
    host_out: float
    host_latency: float
    dma_in: float
    dma_out: float
    batch: float  # of the driver, where the CPU serves misses: per batch,
    block: float  # per 2 MB block in it,
    fault: float  # and per page
    serial_read: float  # by the driver, which waits for it
    most_batched: int  # faults in a batch
    by_cpu: bool
    shared: bool  # reads and writes of the SSD from one queue
    hybrid: bool  # few pages go by DMA
    spare: bool  # a page need not wait for its victim


def costs_of(
    machine: Machine,
    page: int,
    service: str,
    lookup: bool = True,
    shared: bool = True,
    read_ahead: bool = False,
    transfers: str = "hybrid",
    spare: bool = False,
) -> ServiceCosts:
    """Return a machine's costs.

    ``lookup``: is there a middle to look a page up in? ``read_ahead``: where the CPU serves misses,
    its page cache reads so far ahead that only the SSD's bandwidth shows. ``transfers``: one of
    TRANSFERS.
    """
    if machine.storage is None:
        raise TidegateError(
            f"machine {machine.name} must have [storage] for tiers, as a100-pcie3-ssd has; got none"
        )
    if service not in SERVICES:
        raise TidegateError(f"service must be one of {', '.join(SERVICES)}, got '{service}'")
    if transfers not in TRANSFERS:
        raise TidegateError(f"transfers must be one of {', '.join(TRANSFERS)}, got '{transfers}'")
    storage, link, by_cpu = machine.storage, machine.link, service == "cpu"
    reach = 1.0 if by_cpu else link.remote_share
    return ServiceCosts(
        byte=1 / machine.near.bandwidth,
        launch=machine.near.launch_overhead,
        lookup=storage.lookup if lookup and not by_cpu else 0.0,
        read=page / storage.read,
        read_latency=storage.page_read,
        write=page / storage.write,
        host_in=page / (link.inward * reach),
        host_out=page / (link.outward * reach),
        host_latency=storage.host_page,
        dma_in=link.run_overhead + page / link.inward,
        dma_out=link.run_overhead + page / link.outward,
        batch=machine.driver.batch_overhead,
        block=machine.driver.region_overhead,
        fault=link.run_overhead,
        serial_read=page / storage.read if read_ahead else storage.page_read,
        most_batched=machine.driver.batch_faults,
        by_cpu=by_cpu,
        shared=shared,
        hybrid=transfers == "hybrid",
        spare=spare,
    )


@jit_within
def wait_until(memory: Any, when: float, part: int) -> None:
    """Wait until ``when`` for ``part``."""
    clock = memory.clock[0]
    if when > clock.now:
        memory.waits[part] += when - clock.now
        clock.now = when


@jit_within
def compute(memory: Any, size: int) -> None:
    """Spend the time of a touch of near memory."""
    clock, costs = memory.clock[0], memory.costs[0]
    clock.compute += size * costs.byte
    clock.now += size * costs.byte


@jit_within
def begin_miss(memory: Any) -> None:
    """Wait for room among the misses under way."""
    at = memory.cursors[0].oldest_miss
    wait_until(memory, memory.done[at], memory.waits_for[at])


@jit_within
def end_miss(memory: Any, done: float, part: int) -> None:
    """Put a miss under way, which will be served at ``done``."""
    cursors = memory.cursors[0]
    at = cursors.oldest_miss
    memory.done[at], memory.waits_for[at] = done, part
    cursors.oldest_miss = at + 1 if at + 1 < len(memory.done) else 0


@jit_within
def begin_launch(memory: Any) -> None:
    """Spend the overhead of a launch."""
    clock, costs = memory.clock[0], memory.costs[0]
    clock.launching += costs.launch
    clock.now += costs.launch
    memory.counts[0].launches += 1


@jit_within
def drain(memory: Any) -> None:
    """Wait for all misses that are under way, in their order."""
    for i in range(len(memory.done)):
        at = (memory.cursors[0].oldest_miss + i) % len(memory.done)
        wait_until(memory, memory.done[at], memory.waits_for[at])


@jit_within
def serve(memory: Any, page: int, read: int, out: int) -> None:
    """Serve a miss, once it is known where its page is and where its victim goes.

    ``read``: pages read from the SSD, 0 if this one is in the middle. ``out``: where bytes of a
    victim go, STAY for nowhere.
    """
    clock, costs = memory.clock[0], memory.costs[0]
    if costs.by_cpu:
        end_miss(memory, _serve_by_driver(memory, page, read, out), WAIT_DRIVER)
        return
    if out == Tier.MIDDLE:
        gone = _send_to_host(memory)
    else:
        gone = write_storage(memory) if out == Tier.FAR else clock.now
    ready = clock.now + costs.lookup
    if not costs.spare:
        ready = max(ready, gone)
    came = _read_storage(memory, ready, read) if read else _bring_from_host(memory, ready)
    storage = read > 0 if came >= gone else out == Tier.FAR
    end_miss(memory, max(came, gone), WAIT_STORAGE if storage else WAIT_HOST)


@jit_within
def _serve_by_driver(memory: Any, page: int, read: int, out: int) -> float:
    """Serve a miss step after step; return when it is done.

    A victim for the SSD crosses to the host, from where it is written later.
    """
    clock, costs = memory.clock[0], memory.costs[0]
    begin = max(clock.now, clock.driver_free)
    time = begin + _handle_fault(memory, page, begin)
    if out != Tier.STAY:
        time += costs.host_out
        clock.out_busy += costs.host_out
    if out == Tier.FAR:
        write_storage(memory)
    if read:
        reading = costs.serial_read + (read - 1) * costs.read
        time = max(time, clock.read_free) + reading
        clock.read_busy += reading
        clock.read_free = time
        if costs.shared:
            clock.write_free = time
    time += costs.host_in
    clock.in_busy += costs.host_in
    clock.driver_busy += time - begin
    clock.driver_free = time
    return time


@jit_within
def _handle_fault(memory: Any, page: int, begin: float) -> float:
    """Add a fault to the batch that waits for the driver, or to a new one; return its cost."""
    clock, costs, cursors = memory.clock[0], memory.costs[0], memory.cursors[0]
    time = costs.fault
    if clock.now >= clock.batch_begin or cursors.batched == costs.most_batched:
        clock.batch_begin = begin
        cursors.batched = 0
        cursors.batches += 1
        time += costs.batch
    cursors.batched += 1
    block = page // memory.constants[0].block_pages
    if memory.blocks[block] != cursors.batches:
        memory.blocks[block] = cursors.batches
        time += costs.block
    return time


@jit_within
def _read_storage(memory: Any, ready: float, pages: int) -> float:
    clock, costs = memory.clock[0], memory.costs[0]
    clock.read_free = max(ready, clock.read_free) + pages * costs.read
    clock.read_busy += pages * costs.read
    if costs.shared:
        clock.write_free = clock.read_free
    return max(clock.read_free, ready + costs.read_latency)


@jit_within
def write_storage(memory: Any) -> float:
    """Write a page to the SSD; return when that is done."""
    clock, costs = memory.clock[0], memory.costs[0]
    clock.write_free = max(clock.now, clock.write_free) + costs.write
    clock.write_busy += costs.write
    if costs.shared:
        clock.read_free = clock.write_free
    return clock.write_free


@jit_within
def flush_page(memory: Any, from_near: bool) -> None:
    """Write a dirty page at the end of the run; by the CPU, a near one goes to the host first."""
    clock, costs = memory.clock[0], memory.costs[0]
    if costs.by_cpu and from_near:
        clock.out_busy += costs.host_out
        wait_until(memory, clock.now + costs.host_out, WAIT_HOST)
    write_storage(memory)


@jit_within
def wait_for_writes(memory: Any) -> None:
    """Wait until the SSD has written everything."""
    wait_until(memory, memory.clock[0].write_free, WAIT_STORAGE)


@jit_within
def _bring_from_host(memory: Any, ready: float) -> float:
    clock, costs = memory.clock[0], memory.costs[0]
    copied = _is_copied(memory, _IN, ready)
    time = costs.host_in if copied else costs.dma_in
    clock.in_free = max(ready, clock.in_free) + time
    clock.in_busy += time
    return _arrive(memory, _IN, max(clock.in_free, ready + costs.host_latency * copied))


@jit_within
def _send_to_host(memory: Any) -> float:
    clock, costs = memory.clock[0], memory.costs[0]
    copied = _is_copied(memory, _OUT, clock.now)
    time = costs.host_out if copied else costs.dma_out
    clock.out_free = max(clock.now, clock.out_free) + time
    clock.out_busy += time
    return _arrive(memory, _OUT, max(clock.out_free, clock.now + costs.host_latency * copied))


@jit_within
def _is_copied(memory: Any, way: int, ready: float) -> bool:
    """Return whether a page goes by zero-copy: 8 pages before it are still under way."""
    oldest = memory.transfers[way, memory.next_transfer[way]]
    return not memory.costs[0].hybrid or oldest > ready


@jit_within
def _arrive(memory: Any, way: int, when: float) -> float:
    """Remember when a page arrives; return that."""
    at = memory.next_transfer[way]
    memory.transfers[way, at] = when
    memory.next_transfer[way] = at + 1 if at + 1 < HYBRID_PAGES else 0
    return when

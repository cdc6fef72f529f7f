"""What a miss costs, and who waits for it.

GPU-orchestrated: threads look the page up, send the victim off and ask for the page themselves. Up
to ``window`` misses are under way, and the oldest must be served before another begins. Each link
is a server that takes its transfers in order, so many misses together are bound by throughput, and
a lone one by latency. The victim's way out and the page's way in begin together. CPU-orchestrated:
one driver serves one miss after another, from the fault to the last byte.

The SSD serves reads and writes from one queue (``shared``), or has one for each. What moves from
the middle to the SSD keeps the SSD busy, but no miss waits for it by itself (GMT 2.3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidegate.compiled.jit import jit_within
from tidegate.errors import TidegateError
from tidegate.machine.machine import Machine
from tidegate.policies.interface.tier_policy import FAR, MIDDLE, STAY
from tidegate.simulation.tiers.state import (
    COMPUTE,
    DRIVER_BUSY,
    DRIVER_FREE,
    IN_BUSY,
    IN_FREE,
    LAUNCHES,
    LAUNCHING,
    NOW,
    OLDEST_MISS,
    OUT_BUSY,
    OUT_FREE,
    READ_BUSY,
    READ_FREE,
    WAIT_DRIVER,
    WAIT_HOST,
    WAIT_STORAGE,
    WRITE_BUSY,
    WRITE_FREE,
)

SERVICES = ("gpu", "cpu")


class Costs(NamedTuple):
    """All in ns, for one page unless it says otherwise."""

    byte: float  # of near memory, by all slots together
    launch: float
    lookup: float  # in the middle
    read: float  # of the SSD, when it is busy with nothing else
    read_latency: float  # at least, from asking to having
    write: float
    host_in: float
    host_out: float
    host_latency: float
    fault: float  # of the driver, where the CPU serves misses
    serial_read: float  # by the driver, which waits for it
    by_cpu: bool
    shared: bool  # reads and writes of the SSD from one queue


(
    BYTE,
    LAUNCH,
    LOOKUP,
    READ,
    READ_LATENCY,
    WRITE,
    HOST_IN,
    HOST_OUT,
    HOST_LATENCY,
    FAULT,
    SERIAL_READ,
    BY_CPU,
    SHARED,
) = range(13)


def costs_of(
    machine: Machine,
    page: int,
    service: str,
    lookup: bool = True,
    shared: bool = True,
    read_ahead: bool = False,
) -> Costs:
    """A machine's costs. Near and middle exchange pages by Hybrid-32T, which under load is
    zero-copy (see transfers).

    ``lookup``: is there a middle to look a page up in? ``read_ahead``: where the CPU serves misses,
    its page cache reads so far ahead that only the SSD's bandwidth shows.
    """
    if machine.storage is None:
        raise TidegateError(
            f"machine {machine.name} has no [storage]; tiers need one, as a100-pcie3-ssd has"
        )
    if service not in SERVICES:
        raise TidegateError(
            f"service '{service}' is not known; expected one of {', '.join(SERVICES)}"
        )
    storage, link, by_cpu = machine.storage, machine.link, service == "cpu"
    reach = 1.0 if by_cpu else link.remote_share
    return Costs(
        byte=1 / machine.near.bandwidth,
        launch=machine.near.launch_overhead,
        lookup=storage.lookup if lookup and not by_cpu else 0.0,
        read=page / storage.read,
        read_latency=storage.page_read,
        write=page / storage.write,
        host_in=page / (link.inward * reach),
        host_out=page / (link.outward * reach),
        host_latency=storage.host_page,
        fault=machine.driver.batch_overhead + machine.driver.region_overhead + link.run_overhead,
        serial_read=page / storage.read if read_ahead else storage.page_read,
        by_cpu=by_cpu,
        shared=shared,
    )


@jit_within
def wait_until(m: Any, when: float, part: int) -> None:
    """Nothing goes on until ``when``; the waiting is for ``part``."""
    clock = m.clock
    if when > clock[NOW]:
        clock[part] += when - clock[NOW]
        clock[NOW] = when


@jit_within
def compute(m: Any, size: int) -> None:
    m.clock[COMPUTE] += size * m.costs[BYTE]
    m.clock[NOW] += size * m.costs[BYTE]


@jit_within
def begin_miss(m: Any) -> None:
    """Wait for room among the misses under way."""
    at = m.hand[OLDEST_MISS]
    wait_until(m, m.done[at], m.waits_for[at])


@jit_within
def end_miss(m: Any, done: float, part: int) -> None:
    """The miss is under way, and will be served at ``done``."""
    at = m.hand[OLDEST_MISS]
    m.done[at], m.waits_for[at] = done, part
    m.hand[OLDEST_MISS] = at + 1 if at + 1 < len(m.done) else 0


@jit_within
def begin_launch(m: Any) -> None:
    """A launch costs its overhead; all misses of the one before are served."""
    m.clock[LAUNCHING] += m.costs[LAUNCH]
    m.clock[NOW] += m.costs[LAUNCH]
    m.count[LAUNCHES] += 1


@jit_within
def drain(m: Any) -> None:
    """Wait for all misses that are under way, in their order."""
    for k in range(len(m.done)):
        at = (m.hand[OLDEST_MISS] + k) % len(m.done)
        wait_until(m, m.done[at], m.waits_for[at])


# A miss, once it is known where its page comes from and where its victim goes


@jit_within
def serve(m: Any, far: bool, out: int) -> None:
    """Serve a miss.

    ``far``: the page is on the SSD, not in the middle. ``out``: where bytes of a victim go, STAY
    for nowhere.
    """
    if m.costs[BY_CPU]:
        end_miss(m, _by_driver(m, far, out), WAIT_DRIVER)
        return
    gone = _send_to_host(m) if out == MIDDLE else write_storage(m) if out == FAR else m.clock[NOW]
    came = _read_storage(m) if far else _bring_from_host(m)
    storage = far if came >= gone else out == FAR
    end_miss(m, max(came, gone), WAIT_STORAGE if storage else WAIT_HOST)


@jit_within
def _by_driver(m: Any, far: bool, out: int) -> float:
    """One thing after another.

    A victim that is written to the SSD crosses to the host, from where it is written later.
    """
    c = m.clock
    begin = max(c[NOW], c[DRIVER_FREE])
    time = begin + m.costs[FAULT]
    if out != STAY:
        time += m.costs[HOST_OUT]
        c[OUT_BUSY] += m.costs[HOST_OUT]
    if out == FAR:
        write_storage(m)
    if far:
        time = max(time, c[READ_FREE]) + m.costs[SERIAL_READ]
        c[READ_BUSY] += m.costs[SERIAL_READ]
        c[READ_FREE] = time
        if m.costs[SHARED]:
            c[WRITE_FREE] = time
    time += m.costs[HOST_IN]
    c[IN_BUSY] += m.costs[HOST_IN]
    c[DRIVER_BUSY] += time - begin
    c[DRIVER_FREE] = time
    return time


@jit_within
def _read_storage(m: Any) -> float:
    c = m.clock
    ready = c[NOW] + m.costs[LOOKUP]
    c[READ_FREE] = max(ready, c[READ_FREE]) + m.costs[READ]
    c[READ_BUSY] += m.costs[READ]
    if m.costs[SHARED]:
        c[WRITE_FREE] = c[READ_FREE]
    return max(c[READ_FREE], ready + m.costs[READ_LATENCY])


@jit_within
def write_storage(m: Any) -> float:
    """A page is written to the SSD; when that is done."""
    c = m.clock
    c[WRITE_FREE] = max(c[NOW], c[WRITE_FREE]) + m.costs[WRITE]
    c[WRITE_BUSY] += m.costs[WRITE]
    if m.costs[SHARED]:
        c[READ_FREE] = c[WRITE_FREE]
    return c[WRITE_FREE]


@jit_within
def flush_page(m: Any, from_near: bool) -> None:
    """At the end of the run a dirty page is written; where the CPU does it, a near one goes to the
    host first.
    """
    if m.costs[BY_CPU] and from_near:
        m.clock[OUT_BUSY] += m.costs[HOST_OUT]
        wait_until(m, m.clock[NOW] + m.costs[HOST_OUT], WAIT_HOST)
    write_storage(m)


@jit_within
def wait_for_writes(m: Any) -> None:
    """The run is over when the SSD has everything."""
    wait_until(m, m.clock[WRITE_FREE], WAIT_STORAGE)


@jit_within
def _bring_from_host(m: Any) -> float:
    c = m.clock
    ready = c[NOW] + m.costs[LOOKUP]
    c[IN_FREE] = max(ready, c[IN_FREE]) + m.costs[HOST_IN]
    c[IN_BUSY] += m.costs[HOST_IN]
    return max(c[IN_FREE], ready + m.costs[HOST_LATENCY])


@jit_within
def _send_to_host(m: Any) -> float:
    c = m.clock
    c[OUT_FREE] = max(c[NOW], c[OUT_FREE]) + m.costs[HOST_OUT]
    c[OUT_BUSY] += m.costs[HOST_OUT]
    return max(c[OUT_FREE], c[NOW] + m.costs[HOST_LATENCY])

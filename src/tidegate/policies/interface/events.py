"""What crosses between mechanism and policies: events up, requests down. ObservUVM's Table I, made
numbers.

An event is one integer: its kind in the low 8 bits, the region (or launch) above them. The answer
to VICTIM is a region (to OBSERVE, FAILED means none); to everything else it is ignored. That a
policy raised shows in ``request_n``.

A request is one row (verb, a, b, c) that a policy leaves while it is being called; the driver
carries rows out as soon as the call returns.
"""

from __future__ import annotations

VICTIM = 0  # which region is to go? answered with a region
FAULT = 1  # pages of this region faulted and are about to migrate
PREFETCH = 2  # pages of this region are about to migrate without having faulted
EVICTION = 3  # this region is about to leave; its touch bits can still be read
NOTIFICATION = 4  # an observed page of this region was used
LAUNCH = 5  # a launch is about to begin
OBSERVE = 6  # which region is to be observed? answered with a region, or FAILED for none

EVENT_BITS = 8
EVENT_NAMES = {
    VICTIM: "victim",
    FAULT: "on_fault",
    PREFETCH: "on_prefetch",
    EVICTION: "on_eviction",
    NOTIFICATION: "on_notification",
    LAUNCH: "on_launch",
    OBSERVE: "observe",
}

FAILED = -1

ASK_PREFETCH = 1  # pages a … a+b-1
ASK_EVICT = 2  # region a
# pages a … a+b-1 prefer c: 1 far (mapped remotely, never migrated by a fault), 0 no preference
ASK_ADVISE = 3
# tree prefetch takes subtrees that are more than a % occupied; NO_TREE switches it off
ASK_THRESHOLD = 4

ASK_OBSERVE = 5  # a sampled page of region a, among those about to be prefetched
ASK_COUNT = 6  # count remote accesses by region, and notify after a of them (0 stops it)

NO_TREE = 101
REQUEST_ROWS = 1 << 16

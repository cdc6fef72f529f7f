"""Events and requests: messages between mechanism and policies (ObservUVM, Table I), as numbers.

An event is one integer: its kind in the low 8 bits, the region (or launch) above them. The answer
to VICTIM is a region, to OBSERVE a region or FAILED for none; other answers are ignored. If a
policy raises, ``request_n`` is negative.

A request is one row (verb, a, b, c) that a policy leaves while it is called; the driver executes
rows when the call returns.
"""

from __future__ import annotations

VICTIM = 0  # which region is to leave? answer: a region
FAULT = 1  # pages of this region faulted and are about to migrate
PREFETCH = 2  # pages of this region are about to migrate without having faulted
EVICTION = 3  # this region is about to leave; its touch bits can still be read
NOTIFICATION = 4  # an observed page of this region was used
LAUNCH = 5  # a launch is about to begin
OBSERVE = 6  # which region is to be observed? answer: a region, or FAILED for none
FREE = 7  # all data of this region died; its frame is about to be free

EVENT_BITS = 8
EVENT_NAMES = {
    VICTIM: "victim",
    FAULT: "on_fault",
    PREFETCH: "on_prefetch",
    EVICTION: "on_eviction",
    NOTIFICATION: "on_notification",
    LAUNCH: "on_launch",
    OBSERVE: "observe",
    FREE: "on_free",
}

FAILED = -1

ASK_PREFETCH = 1  # pages a … a+b-1
ASK_EVICT = 2  # region a
ASK_ADVISE = 3  # pages a … a+b-1 get advice c, one of ADVICE
ASK_THRESHOLD = 4  # tree prefetch takes subtrees more than a % occupied; NO_TREE switches it off
ASK_OBSERVE = 5  # sample a page of region a, of those about to be prefetched
# count remote accesses by b pages (0: by region), notify after a of them (0: never), of each page?
ASK_COUNT = 6
ASK_DISCARD = 7  # drop region a without writing it back
ASK_PREFETCH_ASYNC = 8  # pages a … a+b-1, by the inward copy stream
ASK_EVICT_ASYNC = 9  # region a, by the outward copy stream

# far: remote, never migrated by a fault; None takes it back; the other two are a pair likewise
ADVICE = {None: 0, "far": 1, "read-mostly": 2, "read-write": 3}
NO_TREE = 101
MOST_ACCESSES = 2**31 - 1  # accesses over the link are counted in 32 bits
REQUEST_ROWS = 1 << 16

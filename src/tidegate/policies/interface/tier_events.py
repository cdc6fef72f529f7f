"""Events from the tiers to a tiering policy: the kind in the low 8 bits, a page above them."""

from __future__ import annotations

PLACE = 0  # where does this page go, a candidate to leave? answer: STAY, MIDDLE or FAR
VICTIM = 1  # which near page is to leave? for policies that choose victims; answer: a page
SPILL = 2  # which page leaves the full middle? answer: a page
RETURN = 3  # this page returns near; answer: KNOWN if it stays whenever it is a candidate
SAMPLES = 4  # a batch of (virtual time, reuse distance) pairs is full
TOUCH = 5  # this page is touched; only for policies that define on_touch: a call per touch

EVENT_BITS = 8
EVENT_NAMES = {
    PLACE: "place",
    VICTIM: "victim",
    SPILL: "spill",
    RETURN: "on_return",
    SAMPLES: "on_samples",
    TOUCH: "on_touch",
}

FAILED = -1  # the policy raised; its caller keeps the exception
KNOWN = 1

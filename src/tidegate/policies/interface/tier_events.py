"""What crosses between the tiers and a placement policy.

An event is its kind in the low 8 bits, a page above them.
"""

from __future__ import annotations

PLACE = 0  # this page is to leave near memory: where does it go? answered with STAY, MIDDLE or FAR
VICTIM = 1  # which near page is to go? asked of placements that choose it themselves
SPILL = 2  # the middle is full: which of its pages makes room? answered with a page
RETURN = (
    # this page, which had left, is about to come near again; answered with KNOWN if it stays
    # whenever it is asked about
    3
)
SAMPLES = 4  # a batch of (virtual time, reuse distance) pairs is there
# this page is touched; relayed only to those who ask for it, as it costs a call per touch
TOUCH = 5

EVENT_BITS = 8
EVENT_NAMES = {
    PLACE: "place",
    VICTIM: "victim",
    SPILL: "spill",
    RETURN: "on_return",
    SAMPLES: "on_samples",
    TOUCH: "on_touch",
}

FAILED = -1  # the policy raised; what it raised is kept by its caller
KNOWN = 1

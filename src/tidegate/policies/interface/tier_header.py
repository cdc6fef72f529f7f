"""What a placement's compiled twin finds in front of its own data; see policies/interface/header.py
for the idea.
"""

from __future__ import annotations

PAGES = 0
NEAR_PAGES = 1  # capacities
MIDDLE_PAGES = 2
NOW = 3  # address: touches so far (one int64)
MIDDLE_USED = 4  # address: pages in the middle (one int64)
# address: per page, the touch at which it left near memory, and a word of the placement's own
# (int64)
HISTORY = 5
PAIRS = 6  # address: the batch of pairs (int64, two a pair)
PAIR_COUNT = 7  # address: how many there are (one int64)
USES = 8  # address: per page, its next touch (int64); 0 unless the future is seen
OWN = 16  # the policy's own words begin here

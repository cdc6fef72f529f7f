"""Constants of the driver that live memory shares: its engine makes the same choices and draws.

They are apart from compiled code, which takes a second to import.
"""

from __future__ import annotations

PREFETCH_TURN = 16  # regions prefetched before the driver looks at faults again
SEED = 0x9E3779B97F4A7C15  # of the random choice of sampled pages; the same in every run
BACK_SOON, STAY_AWAY = 0.5, 0.8  # shares of recently evicted regions (ObservUVM, V-D)

"""A page's last touch: its number and its access site in one word, so that a touch writes once.

Words compare as their touches do. Before its first touch a page has NEVER: both parts are -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare

BITS = 16  # of the access site
NEVER = -1


@jit_bare
def latest(touch: int, reference: int) -> Any:
    """Return the word of a touch."""
    return touch << BITS | np.int64(np.uint16(reference))


@jit_bare
def touch_of(word: Any) -> Any:
    """Return the number of the touch."""
    return word >> BITS


@jit_bare
def reference_of(word: Any) -> Any:
    """Return the access site of the touch."""
    return np.int64(np.int16(word & 0xFFFF))

"""Latest: the number of a page's last touch and the reference that made it, in one word, so that a
touch writes once.

Words compare as their touches do. Before its first touch a page has NEVER, of which both parts are
-1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare

BITS = 16  # of the reference
NEVER = -1


@jit_bare
def latest(touch: int, reference: int) -> Any:
    return touch << BITS | np.int64(np.uint16(reference))


@jit_bare
def touch_of(word: Any) -> Any:
    return word >> BITS


@jit_bare
def reference_of(word: Any) -> Any:
    return np.int64(np.int16(word & 0xFFFF))

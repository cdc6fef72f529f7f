"""Load Numba's array functions without SciPy's linear algebra.

When it loads them, Numba imports that, only to see whether it is there. It takes a fifth of a
second of every command. Whoever compiles ``np.dot`` imports it then.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType

_ASKED_FOR = ("scipy.linalg", "scipy.linalg.cython_blas")


def load_array_functions() -> None:
    """Load Numba's array functions; SciPy counts as there if it is installed."""
    stand_ins = {name: ModuleType(name) for name in _ASKED_FOR}
    if stand_ins.keys() & sys.modules.keys() or find_spec("scipy") is None:
        return  # it is loaded already, or Numba may find out by itself
    sys.modules.update(stand_ins)
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        for name in stand_ins:
            del sys.modules[name]

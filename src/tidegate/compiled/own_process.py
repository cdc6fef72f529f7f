"""Faster starts and compiles in processes that are Tidegate's own: its command and its workers.

Both ways change Numba for the whole process, so a process that only imports Tidegate goes without
them. ``mark_own_process`` comes first, and imports nothing: a command that compiles nothing need
not load Numba.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_SCIPY_PARTS = ("scipy.linalg", "scipy.linalg.cython_blas")
_own = False


def mark_own_process() -> None:
    """Declare that this process is Tidegate's own; call it before anything is compiled."""
    global _own
    _own = True


def prepare_numba() -> None:
    """Make Numba start and compile faster, in a process of Tidegate's own."""
    if _own:
        load_array_functions()
        remember_operator_types()


def load_array_functions() -> None:
    """Load Numba's array functions without SciPy's linear algebra, if SciPy is installed.

    When it loads them, Numba imports that, only to see whether it is there. It takes a fifth of a
    second of every command. Whoever compiles ``np.dot`` imports it then.
    """
    stand_ins = {name: ModuleType(name) for name in _SCIPY_PARTS}
    if stand_ins.keys() & sys.modules.keys() or find_spec("scipy") is None:
        return  # it is loaded already, or Numba may find out by itself
    sys.modules.update(stand_ins)
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        for name in stand_ins:
            del sys.modules[name]


def remember_operator_types() -> None:
    """Have Numba's typing look up operations on numbers that it has resolved before.

    At every ``a + b`` Numba tries, one after the other, all implementations of ``+``, those for
    sets, strings and arrays among them, and it does so each time that it goes through a function.
    For numbers the answer is always the same. This saves a tenth of the core's first compile.
    """
    from numba import types
    from numba.core.registry import cpu_target

    context: Any = cpu_target.typing_context
    resolve = context.resolve_function_type
    known: dict[Any, Any] = {}  # signatures

    def resolve_once(function: Any, args: Any, keywords: Any) -> Any:
        if keywords or not isinstance(function, types.Function):
            return resolve(function, args, keywords)
        signature = known.get((function, args))
        if signature is None:
            signature = resolve(function, args, keywords)
            if signature is not None and is_fixed(function, args, signature):
                known[function, args] = signature
        return signature

    def is_fixed(function: Any, args: Any, signature: Any) -> bool:
        """Return whether Numba's own code answers, the same for all options of a compile."""
        numbers = all(isinstance(a, types.Number | types.Boolean) for a in args)
        return numbers and function.get_impl_key(signature) is function.typing_key

    context.resolve_function_type = resolve_once

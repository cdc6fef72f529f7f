"""Remember the types of operations on numbers.

At every ``a + b`` Numba tries, one after the other, all implementations of ``+``, those for sets,
strings and arrays among them, and it does so each time that it goes through a function. For numbers
the answer is always the same. To remember it saves a tenth of the core's first compile.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.registry import cpu_target

_NUMBERS = (types.Number, types.Boolean)


def remember_operator_types() -> None:
    """Have Numba's typing look up operations on numbers that it has resolved before."""
    context: Any = cpu_target.typing_context
    resolve = context.resolve_function_type
    known: dict[Any, Any] = {}  # signatures

    def resolve_once(function: Any, args: Any, keywords: Any) -> Any:
        if keywords or not isinstance(function, types.Function):
            return resolve(function, args, keywords)
        signature = known.get((function, args))
        if signature is None:
            signature = resolve(function, args, keywords)
            if signature is not None and _is_fixed(function, args, signature):
                known[function, args] = signature
        return signature

    context.resolve_function_type = resolve_once


def _is_fixed(function: Any, args: Any, signature: Any) -> bool:
    """Return whether Numba's own code answers, which is the same for all options of a compile."""
    numbers = all(isinstance(a, _NUMBERS) for a in args)
    return numbers and function.get_impl_key(signature) is function.typing_key

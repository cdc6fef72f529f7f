"""Operations on numbers, whose types Numba is made to remember."""

from __future__ import annotations

import operator

import numba
import numpy as np
import pytest

import tidegate.compiled.jit  # noqa: F401

OPERATORS = ("add", "sub", "mul", "floordiv", "mod", "truediv", "and_", "lshift", "lt", "eq")
KINDS = (np.int64, np.uint64, np.int32, np.uint8, np.float64, np.bool_)


@pytest.mark.parametrize("name", OPERATORS)
def test_types_are_those_of_numba(name):
    """Each is asked for twice: resolved, then remembered."""
    own = getattr(operator, name)
    context = numba.core.registry.cpu_target.typing_context
    assert "resolve_function_type" in vars(context)  # the one that remembers
    context.refresh()
    asked = context.resolve_value_type(own)
    untouched = type(context).resolve_function_type
    for left in KINDS:
        for right in KINDS:
            args = (numba.from_dtype(np.dtype(left)), numba.from_dtype(np.dtype(right)))
            known = [_answer(context.resolve_function_type, asked, args) for _ in range(2)]
            assert known == [_answer(untouched.__get__(context), asked, args)] * 2


def _answer(resolve, function, args):
    try:
        return resolve(function, args, {})
    except numba.core.errors.TypingError:
        return "refused"


def test_the_error_model_decides_anew():
    """What depends on a compile's options is not remembered."""

    def quotient(x, y):
        return divmod(x, y)[0] + x // y

    assert numba.njit(error_model="numpy")(quotient)(1, 0) == 0
    with pytest.raises(ZeroDivisionError):
        numba.njit(quotient)(1, 0)
    assert numba.njit(error_model="numpy")(lambda x, y: x // y)(3, 0) == 0

"""Numba is changed in Tidegate's own processes, and there gives the same; nowhere else is it."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Iterator

import numba
import numpy as np
import pytest

from tidegate.compiled.own_process import remember_operator_types

OPERATORS = ("add", "sub", "mul", "floordiv", "mod", "truediv", "and_", "lshift", "lt", "eq")
KINDS = (np.int64, np.uint64, np.int32, np.uint8, np.float64, np.bool_)


@pytest.fixture
def remembering() -> Iterator[None]:
    """Numba's typing remembers, whatever it did before."""
    context = numba.core.registry.cpu_target.typing_context
    before = vars(context).pop("resolve_function_type", None)
    remember_operator_types()
    yield
    del vars(context)["resolve_function_type"]
    if before is not None:
        vars(context)["resolve_function_type"] = before


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.usefixtures("remembering")
def test_types_are_those_of_numba(name):
    """Each is asked for twice: resolved, then remembered."""
    own = getattr(operator, name)
    context = numba.core.registry.cpu_target.typing_context
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


@pytest.mark.usefixtures("remembering")
def test_the_error_model_decides_anew():
    """What depends on a compile's options is not remembered."""

    def quotient(x, y):
        return divmod(x, y)[0] + x // y

    assert numba.njit(error_model="numpy")(quotient)(1, 0) == 0
    with pytest.raises(ZeroDivisionError):
        numba.njit(quotient)(1, 0)
    assert numba.njit(error_model="numpy")(lambda x, y: x // y)(3, 0) == 0


def printed(script: str) -> list[str]:
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# what a process that imports tidegate, and runs a simulation, finds as it was
LIBRARY = """
import gc, os, signal, sys, warnings
import numba, numpy, polars  # which sets a variable of its own
from numba.core.registry import cpu_target

def state():
    return {
        "numba's typing": sorted(vars(cpu_target.typing_context)),
        "numba's settings": {n: getattr(numba.config, n) for n in dir(numba.config) if n.isupper()},
        "numpy's errors": numpy.geterr(),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)],
        "hooks": (sys.excepthook, sys.unraisablehook, sys.displayhook),
        "warnings": list(warnings.filters),
        "collector": gc.isenabled(),
    }

before = state()
import tidegate
run = tidegate.run("stream", bytes="4MiB", near="2MiB", eviction="lru", cache=False)
assert run.summary
after = state()
changed = [name for name in before if before[name] != after[name]]
assert not changed, changed
fakes = [n for n, m in sys.modules.items() if n.startswith("scipy") and m.__spec__ is None]
assert not fakes, fakes
blas = "scipy.linalg.cython_blas" in sys.modules
print("numba.np.arraymath" in sys.modules, blas)
"""


def test_a_process_that_imports_tidegate_is_left_as_it_was() -> None:
    assert printed(LIBRARY)


@pytest.mark.extra
def test_numba_finds_scipy_by_itself_in_a_users_process() -> None:
    pytest.importorskip("scipy", reason="SciPy is one of the extras")
    assert printed(LIBRARY) == ["True True"]


@pytest.mark.extra
def test_linear_algebra_is_imported_by_who_needs_it() -> None:
    """In a process of Tidegate's own."""
    pytest.importorskip("scipy", reason="SciPy is one of the extras")
    script = """
import sys

from tidegate.compiled.own_process import mark_own_process

mark_own_process()
import tidegate.compiled.jit
import numba.np.arraymath

print("scipy.linalg" in sys.modules, numba.np.arraymath._HAVE_BLAS)

import numba
import numpy as np

print(numba.njit(lambda a: np.dot(a, np.linalg.inv(a)))(np.eye(2) * 4))

import scipy.linalg

print(scipy.linalg.det(np.eye(2)))
"""
    assert printed(script) == ["False True", "[[1. 0.]", " [0. 1.]]", "1.0"]

"""Numba's array functions are loaded without SciPy's linear algebra, which still works."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.extra
pytest.importorskip("scipy", reason="SciPy is one of the extras")

SCRIPT = """
import sys

import tidegate.compiled.jit
import numba.np.arraymath

print("scipy.linalg" in sys.modules, numba.np.arraymath._HAVE_BLAS)

import numba
import numpy as np

print(numba.njit(lambda a: np.dot(a, np.linalg.inv(a)))(np.eye(2) * 4))

import scipy.linalg

print(scipy.linalg.det(np.eye(2)))
"""


def test_linear_algebra_is_imported_by_who_needs_it():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["False True", "[[1. 0.]", " [0. 1.]]", "1.0"], done.stderr

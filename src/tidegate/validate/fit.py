"""Fit a machine's constants to measured values: least squares of the logarithms of their ratios.

Constants and values are positive and span decades, so both are fitted as logarithms: an error of
10 % counts the same in 20 µs as in 2 s. The machine that one starts from counts as a weak value of
its own (an e-fold, one standard error), so constants that no value speaks of stay as they were and
come out with a wide interval.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.errors import TidegateError
from tidegate.machine import Machine

_STEP = 0.04  # of a logarithm: batches and copies are whole, so small steps see nothing
_REACH = 4.0  # of a logarithm: a constant moves by a factor of 55 at most
_START_ERROR = 1.0  # of a logarithm: how far the first guess of a constant may be off
_LEAST_ERROR = 0.02  # relative: the simulation is not better than that

Play = Callable[[Machine], Sequence[float]]


@dataclass(frozen=True)
class Constant:
    """A fitted constant: its value and the share by which it may be off (one standard error)."""

    name: str
    value: float
    error: float


@dataclass(frozen=True)
class Fit:
    """A machine with fitted constants, and what is left of each value's error (ours / measured)."""

    machine: Machine
    constants: tuple[Constant, ...]
    ratios: tuple[float, ...]


def fit(
    machine: Machine,
    names: Sequence[str],
    play: Play,
    measured: Sequence[float],
    errors: Sequence[float] = (),
) -> Fit:
    """Return the machine whose constants ``names`` make ``play`` come nearest to ``measured``.

    ``errors``: the relative error of each measured value. A constant that is 0 is started at a
    small value, because its logarithm is fitted.
    """
    least_squares = least_squares_of()
    if len(measured) < len(names):
        raise TidegateError(
            f"{len(names)} constants cannot be fitted on {len(measured)} values; give more"
        )
    start = np.log([max(constant(machine, name), 1e-3) for name in names])
    weights = 1 / np.maximum(errors if len(errors) else np.zeros(len(measured)), _LEAST_ERROR)

    def residuals(x: np.ndarray) -> np.ndarray:
        values = play(with_constants(machine, dict(zip(names, np.exp(x), strict=True))))
        off = np.log(np.asarray(values) / np.asarray(measured)) * weights
        return np.concatenate((off, (x - start) / _START_ERROR))

    found = least_squares(
        residuals,
        start,
        bounds=(start - _REACH, start + _REACH),
        diff_step=_STEP / np.maximum(np.abs(start), 1e-6),
        loss="soft_l1",
        xtol=1e-3,
        ftol=1e-4,
        max_nfev=25,
    )
    values, spread = np.exp(found.x), standard_errors(found.jac, found.fun)
    left = residuals(found.x)[: len(measured)] / weights
    fitted = with_constants(machine, dict(zip(names, values, strict=True)))
    return Fit(
        fitted, tuple(map(Constant, names, values.tolist(), spread)), tuple(np.exp(left).tolist())
    )


def least_squares_of() -> Callable[..., Any]:
    """Return SciPy's ``least_squares``.

    Raise TidegateError if SciPy is not installed.
    """
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise TidegateError("fitting needs scipy: pip install 'tidegate[calibrate]'") from None
    return least_squares  # type: ignore[no-any-return]


def standard_errors(jacobian: np.ndarray, residuals: np.ndarray) -> list[float]:
    """Return a standard error of each logarithm; of a constant of which the values say little,
    about an e-fold.
    """
    free = max(1, len(residuals) - jacobian.shape[1])
    variance = max(1.0, float(residuals @ residuals) / free)
    covariance = np.linalg.inv(jacobian.T @ jacobian) * variance
    return [float(error) for error in covariance.diagonal() ** 0.5]


def constant(machine: Machine, name: str) -> float:
    """Return a machine's constant.

    >>> from tidegate.machine import load_machine
    >>> constant(load_machine("t4-pcie3"), "link.inward")
    12.3
    """
    table, _, field = name.partition(".")
    return float(getattr(getattr(machine, table), field))


def with_constants(machine: Machine, values: Mapping[str, float]) -> Machine:
    """Return a machine with other constants, by their names."""
    for name, value in values.items():
        table, _, field = name.partition(".")
        part = dataclasses.replace(getattr(machine, table), **{field: float(value)})
        machine = dataclasses.replace(machine, **{table: part})
    return machine

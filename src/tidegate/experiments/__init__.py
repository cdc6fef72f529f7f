"""Runs and grids of runs: their specification, their outcome, and the store that keeps them."""

from tidegate.experiments.comparison import Comparison, compare
from tidegate.experiments.grid import run_grid
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec, run

__all__ = ["Comparison", "Run", "RunSpec", "compare", "run", "run_grid"]

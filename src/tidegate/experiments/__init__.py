"""Runs and grids of runs: what is asked, what happened, and where it is kept."""

from tidegate.experiments.ask import Ask, run
from tidegate.experiments.comparison import Comparison, compare
from tidegate.experiments.grid import run_grid
from tidegate.experiments.runs import Run

__all__ = ["Ask", "Comparison", "Run", "compare", "run", "run_grid"]

"""Runs and grids of runs: their specification, their outcome, and the store that keeps them."""

from tidegate.experiments.comparison import Comparison, compare
from tidegate.experiments.grid import run_grid
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec, run
from tidegate.experiments.sweeps.cluster import Slurm
from tidegate.experiments.sweeps.sweep import Sweep, Swept
from tidegate.experiments.workload_analysis import analyze

__all__ = [
    "Comparison",
    "Run",
    "RunSpec",
    "Slurm",
    "Sweep",
    "Swept",
    "analyze",
    "compare",
    "run",
    "run_grid",
]

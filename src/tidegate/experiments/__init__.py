"""Runs and grids of runs: what is asked, what happened, and where it is kept."""

from tidegate.experiments.ask import Ask, run
from tidegate.experiments.comparison import Comparison, compare
from tidegate.experiments.grid import run_grid
from tidegate.experiments.runs import Run
from tidegate.experiments.tier_race import TierRace, race_tiers
from tidegate.experiments.tiered import TieredAsk

__all__ = [
    "Ask",
    "Comparison",
    "Run",
    "TierRace",
    "TieredAsk",
    "compare",
    "race_tiers",
    "run",
    "run_grid",
]

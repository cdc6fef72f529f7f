"""Analysis of traces without a machine: reuse distances, miss-ratio curves, Belady, footprint."""

from tidegate.analysis.analysis import Analysis, analyze
from tidegate.analysis.belady import belady_misses, vmin_misses
from tidegate.analysis.curves import MissRatioCurve, belady_curve, lru_curve
from tidegate.analysis.flat import clock_misses, fifo_misses, lru_misses
from tidegate.analysis.footprint import Footprint
from tidegate.analysis.ghosts import arc_misses, s3_fifo_misses, two_q_misses
from tidegate.analysis.remaining import remaining_distances
from tidegate.analysis.reuse import ReuseDistances
from tidegate.analysis.sequence import Sequence
from tidegate.analysis.shards import Shards, shards_curve

__all__ = [
    "Analysis",
    "Footprint",
    "MissRatioCurve",
    "ReuseDistances",
    "Sequence",
    "Shards",
    "analyze",
    "arc_misses",
    "belady_curve",
    "belady_misses",
    "clock_misses",
    "fifo_misses",
    "lru_curve",
    "lru_misses",
    "remaining_distances",
    "s3_fifo_misses",
    "shards_curve",
    "two_q_misses",
    "vmin_misses",
]

"""Analysis of traces without a machine: reuse distances, miss-ratio curves, Belady, footprint."""

from tidegate.analysis.analysis import Analysis, analyze
from tidegate.analysis.arc import arc_misses
from tidegate.analysis.belady import belady_misses
from tidegate.analysis.curves import MissRatioCurve, belady_curve, lru_curve
from tidegate.analysis.flat import clock_misses, fifo_misses, lru_misses
from tidegate.analysis.footprint import Footprint
from tidegate.analysis.remaining import remaining_distances
from tidegate.analysis.reuse import ReuseDistances
from tidegate.analysis.s3_fifo import s3_fifo_misses
from tidegate.analysis.sequence import Sequence
from tidegate.analysis.shards import Shards, shards_curve
from tidegate.analysis.two_q import two_q_misses
from tidegate.analysis.vmin import vmin_misses

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

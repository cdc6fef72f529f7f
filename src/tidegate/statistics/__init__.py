"""Statistical caching: what distributions of reuse intervals are worth (Chen et al., MEMSYS'19; Li et al.)."""

from tidegate.statistics.intervals import Touches
from tidegate.statistics.leu import leu_curve, leu_misses
from tidegate.statistics.osl import osl_leases, osl_misses

__all__ = ["Touches", "leu_curve", "leu_misses", "osl_leases", "osl_misses"]

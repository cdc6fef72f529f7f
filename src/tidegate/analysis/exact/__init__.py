"""Statistical caching: what distributions of reuse intervals are worth (Chen et al., MEMSYS'19; Li
et al.).
"""

from tidegate.analysis.exact.intervals import Touches
from tidegate.analysis.exact.leu import leu_curve, leu_misses, leu_stays
from tidegate.analysis.exact.osl import osl_leases, osl_misses
from tidegate.analysis.exact.references import ReferenceAnalysis, analyze_references

__all__ = [
    "ReferenceAnalysis",
    "Touches",
    "analyze_references",
    "leu_curve",
    "leu_misses",
    "leu_stays",
    "osl_leases",
    "osl_misses",
]

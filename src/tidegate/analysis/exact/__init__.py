"""Exact statistics of reuse intervals: LEU, OSL and access sites (Chen et al., MEMSYS'19; Li et
al.).
"""

from tidegate.analysis.exact.access_sites import AccessSiteAnalysis, analyze_access_sites
from tidegate.analysis.exact.intervals import TouchSequence
from tidegate.analysis.exact.leu import leu_curve, leu_misses, leu_stays
from tidegate.analysis.exact.osl import osl_leases, osl_misses

__all__ = [
    "AccessSiteAnalysis",
    "TouchSequence",
    "analyze_access_sites",
    "leu_curve",
    "leu_misses",
    "leu_stays",
    "osl_leases",
    "osl_misses",
]

"""Exact LEU: its misses, stays and stack, with the search for a victim they need.

misses             count misses and stays at one capacity, misses at all capacities
victim_search      the block with the lowest priority, without looking at every block
priorities         the priority of a block as a line that falls with time; the highest line
rational           the paper's equations in rational arithmetic: the oracle of the tests
"""

from tidegate.analysis.exact.leu.misses import leu_curve, leu_misses, leu_stays

__all__ = ["leu_curve", "leu_misses", "leu_stays"]

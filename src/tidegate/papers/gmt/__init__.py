"""GMT (ASPLOS'24): GPU, host and SSD as three tiers.

setup     what can be varied;  grid: what is run
findings  the claims
figures   Figures 4, 7, 8, 9, 10 and 14;  transfers: Figure 6
optimistic  HMM with the hit rates of GMT-Reuse;  sweeps: Figures 11 to 13
readings  what the paper leaves open
"""

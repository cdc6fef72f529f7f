"""GMT (ASPLOS'24): GPU, host and SSD as three tiers.

setup     what can be varied;  grid: what is run
findings  the claims, and HMM with the hit rates of GMT-Reuse
figures   Figures 4 and 7 to 14;  transfers: Figure 6
paper     the reproduction, and what the paper leaves open
"""

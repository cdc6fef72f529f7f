"""CPPE (IPDPS'20): coordinated page prefetch and eviction.

setup     what can be varied;  grid: what is run
findings  the claims, at both levels
figures   Figures 3, 4, 7, 8 and 9, the sizes of the structures of VI-C, and the sensitivity study
crossing  beyond the paper: its systems on ObservUVM's applications, and the reverse
paper     the reproduction, and what the paper leaves open
"""

"""CPPE (IPDPS'20): coordinated page prefetch and eviction.

setup     what can be varied;  grid: what is run
findings  the claims, at both levels
figures   Figures 3, 7, 8 and 9, and the sizes of the structures of VI-C
crossing  beyond the paper: its systems on ObservUVM's applications, and the reverse
readings  what the paper leaves open
"""

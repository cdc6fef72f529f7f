"""SC'19: compiler-assisted hybrid implicit and explicit GPU memory management.

setup       what can be varied
grid        what is run, also bfs with part of its edges accessed, and speed-ups by workload
findings    the claims
figures     Figures 1, 2, 4, 5a and 6
paper       the reproduction, and what the paper leaves open
"""

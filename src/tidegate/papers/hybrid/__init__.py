"""SC'19: compiler-assisted hybrid implicit and explicit GPU memory management.

setup       what can be varied;  grid: what is run, also bfs with part of its edges accessed
findings    the claims, and speed-ups by workload
inner_loop  cfd's example of Figure 3, decided without a run
figures     Figures 1, 2, 4, 5a and 6
paper       the reproduction, and what the paper leaves open
"""

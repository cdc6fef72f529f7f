"""ObservUVM (ISCA'26): observability-aided GPU memory oversubscription.

setup       what can be varied;  grid: what is run
findings    the claims on the grid of applications and systems
figures     Figures 9 to 13
locality    Figure 5;  recorder: the policy that counts for it
saturation  Figure 3;  counters: its microbenchmark
readings    what the paper leaves open
"""

"""ObservUVM (ISCA'26): observability-aided GPU memory oversubscription.

setup       what can be varied
findings    the claims on the grid of applications and systems
figures     Figures 9 to 13, 14, 16 and 17
locality    Figure 5, and the policy that counts for it
saturation  Figure 3, and its microbenchmark
paper       the reproduction: what is run, and what the paper leaves open
"""

"""Statistical caching (MEMSYS'19): its worked examples, its stack property, and LEU on every suite.

setup     what can be varied;  grid: what is run
examples  the worked examples, to the digit (L1 to L3), and the stack property (L4)
curves    Figure 1: misses over size under LEU, OSL and others, and the bounds (L5)
gaps      beyond the paper: how far every eviction policy stays from Belady, LEU among them
"""

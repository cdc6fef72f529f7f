"""An ordinary NumPy script: it knows nothing of Tidegate.

python examples/larger_than_ram.py          # takes 480 MB of RAM for its arrays
tidegate live run --near 128MiB --eviction lru --prefetch region examples/larger_than_ram.py
"""

import sys

import numpy as np

million = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
position = np.zeros((int(million * 1e6), 2))
velocity = np.full(len(position), 0.5)
for _step in range(5):
    position[:, 0] += velocity
    position[:, 1] -= velocity
print(f"mean {position.mean():.3f}, furthest {position.max():.3f}")

"""The histogram of reuse distances, in buckets that double: 0, 1, 2–3, 4–7, 8–15 …"""

from __future__ import annotations

import numpy as np
import polars as pl

from tidegate.analysis.reuse import ReuseDistances


def histogram(reuse: ReuseDistances, unit_bytes: int) -> pl.DataFrame:
    """Return one row per bucket, and a last row without bounds for first touches.

    ``at_least``, ``below``: distances in ids; ``bytes``: ``at_least`` in bytes; ``touches``;
    ``share`` of all touches.
    """
    counts = reuse.counts[: reuse.farthest + 1]
    edges = [0] + [1 << k for k in range(len(counts).bit_length() + 1)]
    at_least = [edge for edge in edges if edge < len(counts)]
    below = edges[1 : len(at_least) + 1]
    return pl.DataFrame(
        {
            "at_least": [*at_least, None],
            "below": [*below, None],
            "bytes": [*(edge * unit_bytes for edge in at_least), None],
            "touches": [*np.add.reduceat(counts, at_least).tolist(), reuse.cold],
        },
        schema={"at_least": pl.Int64, "below": pl.Int64, "bytes": pl.Int64, "touches": pl.Int64},
    ).with_columns((pl.col("touches") / reuse.touches).alias("share"))

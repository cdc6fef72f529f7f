"""How fast is live memory? ``python -m benchmarks.live``: policies against one another on the same arrays, in one run."""

from __future__ import annotations

import time

import numpy as np

from tidegate.live import Arena

NEAR = 64 << 20
PAGE = 64 << 10
PASSES = 5


def cyclic(eviction: str, prefetch: str) -> tuple[float, float]:
    """Seconds and bytes read, of passes over an array of 1.5 times near memory that was written before."""
    with Arena(NEAR, eviction=eviction, prefetch=prefetch) as arena:
        a = arena.empty(NEAR * 3 // 2 // 8, "u8")
        a[:] = 1
        before, begin = arena.stats()["bytes_in"], time.perf_counter()
        for _ in range(PASSES):
            assert a.sum() == len(a)
        return time.perf_counter() - begin, arena.stats()["bytes_in"] - before


def random_reads(reads: int = 4000) -> float:
    """Microseconds per fault of one page in an array of four times near memory."""
    with Arena(NEAR, eviction="lrm", geometry="64KiB/64KiB") as arena:
        a = arena.empty(4 * NEAR, "u1")
        a[::PAGE] = 1
        pages = np.random.default_rng(1).integers(0, 4 * NEAR // PAGE, reads)
        before, begin = arena.stats()["faults"], time.perf_counter()
        assert all(a[page * PAGE] == 1 for page in pages)
        return (time.perf_counter() - begin) * 1e6 / (arena.stats()["faults"] - before)


def main() -> None:
    for eviction, prefetch in (("lrm", "region"), ("lru", "region"), ("mru", "region"), ("cp", "region")):
        seconds, read = cyclic(eviction, prefetch)
        print(f"{PASSES} cyclic passes, {eviction} + {prefetch}: {seconds:.2f} s, {read / 1e6:.0f} MB read", flush=True)
    print(f"a fault of a 64 KB page, far tier and eviction included: {random_reads():.0f} us")


if __name__ == "__main__":
    main()

"""HYB: floats sorted into buckets, then every bucket by merging."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.random_pages import generator
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import (
    FLOAT,
    across,
    blocks,
    change,
    launch_of,
    step,
    use,
    use_floats,
    use_sector,
)

BUCKETS = 1024  # DIVISIONS
HISTO_BLOCKS, HISTO_THREADS = 64, 96
WARP, BAND = 32, 128  # threads of a bucket block, and about how many elements each has
PREFIX_THREADS, FIRST_THREADS, PASS_THREADS, PACK_THREADS = 128, 256, 208, 256
FEWEST_BLOCKS = 8
FOUR = 4 * FLOAT  # bytes of a float4
_CHUNK = 256  # float4s that a thread merges in a step: a page

_INPUT, _OUTPUT, _OFFSETS, _INDICE, _PIVOTS, _L_OFFSETS, _PREFIX, _HISTOGRAM = range(8)


class Sorted(NamedTuple):
    """The starts of the buckets, padded to float4s and packed."""

    bucket: NDArray[np.int16]  # of every element
    start: NDArray[np.int64]  # in float4s, and where the last ends
    packed: NDArray[np.int64]  # in floats, likewise
    largest: int  # floats of the largest bucket, padded


@workload("cppe-HYB")
class HybridSort(Derived):
    """A bucket sort, then a merge sort, of n uniform floats: hybridsort of Rodinia, executed.

        histogram1024        64 × 96 threads:  input[t], t = 96 b + tx, + 6144, …;  the histogram
        bucketcount          32 threads, B = ⌈n / 4096⌉ blocks, t = 32 b + tx, + 32 B, …:
                             input[t], indice[t] is written;  then prefixoffsets[1024 b …]
        bucketprefixoffset   8 × 128 threads:  prefixoffsets[1024 i + 128 b + tx], i = 0 … B - 1,
                             summed up in place
        bucketsort           as bucketcount:  input[t], indice[t]
                             output[bucket's place + rank] is written
        mergeSortFirst       256 threads, a float4 each:  output[t] to input[t]
        mergeSortPass        208 threads, 2, 4, 8, … float4s each, within buckets:  both halves
                             merged into the other list
        mergepack            256 floats of a bucket:  from its padded to its packed place

    input and output change places in every pass. Grid order: blockIdx.x fastest. Buckets hold n /
    1024 each, but for chance: pivots divide the values evenly. Both halves of a merge are assumed
    to be used up evenly; a step is a page of each thread's output. Access sites: the arrays as they
    are allocated. Table II: hybridsort, 104 MB, Type VI; 2^23 floats make 104.0 MiB (Rodinia's own
    default is 2^22: 52 MiB).
    """

    bytes = published_footprint("cppe-HYB", "size of the eight arrays")
    seed = Option(1, "seed of the floats (a choice)", least=0)

    @property
    def n(self) -> int:
        return largest_fit(self.bytes, _sizes)

    def sizes(self) -> dict[str, int]:
        return _sizes(self.n)

    def launches(self, space: Space) -> Launches:
        n = self.n
        count = across(n, WARP * BAND)
        sort = _filled(n, self.seed)
        cursor = _prefixed(sort.bucket, count) + 4 * sort.start[:-1]
        fours, prefixes = int(sort.start[-1]), BUCKETS // PREFIX_THREADS
        yield launch_of(space, "histogram1024Kernel", _histogram, HISTO_BLOCKS, (n,))
        yield launch_of(space, "bucketcount", _bucketcount, count, (n,))
        yield launch_of(space, "bucketprefixoffset", _prefixoffset, prefixes, (count,))
        shape = (n, sort.bucket, cursor)
        yield launch_of(space, "bucketsort", _bucketsort, count, shape)
        count = across(fours, FIRST_THREADS)
        yield launch_of(space, "mergeSortFirst", _first, count, (fours,))
        yield from self._merged(space, sort)

    def _merged(self, space: Space, sort: Sorted) -> Launches:
        """Yield passes until a thread has a whole bucket, then the packing."""
        source, each, threads_each = _INPUT, 2, 2
        while threads_each > 1:
            threads_each = -(-sort.largest // (4 * each))
            needed = threads_each * BUCKETS
            blocks, threads = -(-needed // PASS_THREADS), PASS_THREADS
            if blocks < FEWEST_BLOCKS:
                blocks, threads = FEWEST_BLOCKS, -(-needed // FEWEST_BLOCKS)
            shape = (source, each, threads, threads_each, sort.start)
            yield launch_of(space, "mergeSortPass", _pass, blocks, shape)
            source, each = _OUTPUT - source, 2 * each
        pieces = across(sort.largest, PACK_THREADS)
        places = (source, pieces, sort.start, sort.packed)
        yield launch_of(space, "mergepack", _pack, pieces * BUCKETS, places)


def _sizes(n: int) -> dict[str, int]:
    padded, table = FLOAT * (n + 4 * BUCKETS), FLOAT * BUCKETS
    sizes = {"input": padded, "output": padded, "offsets": table, "indice": FLOAT * n}
    sizes |= dict.fromkeys(("pivotpoints", "l_offsets"), table)
    return sizes | {"prefixoffsets": table * -(-n // (WARP * BAND)), "histogram": table}


def _filled(n: int, seed: int) -> Sorted:
    bucket = generator(seed, 0).integers(BUCKETS, size=n, dtype=np.int16)
    held = np.bincount(bucket, minlength=BUCKETS)
    fours = -(-held // 4)
    start, packed = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in (fours, held))
    return Sorted(bucket, start, packed, 4 * int(fours.max()))


@jit
def _prefixed(bucket: Any, blocks: int) -> Any:
    """Return, for every bucket block and bucket, how many elements earlier blocks put there."""
    before = np.zeros((blocks + 1, BUCKETS), np.int64)
    for t in range(len(bucket)):
        before[t // WARP % blocks + 1, bucket[t]] += 1
    for block in range(blocks):
        before[block + 1] += before[block]
    return before[:-1]


@jit
def _histogram(log: Any, count: int, shape: Any) -> None:
    n = shape[0]
    for block in blocks(log, count):
        for t in range(HISTO_THREADS * block, n, HISTO_THREADS * HISTO_BLOCKS):
            use_floats(log, _INPUT, t, min(n, t + HISTO_THREADS), False)
        use_floats(log, _HISTOGRAM, 0, BUCKETS, True)


@jit
def _bucketcount(log: Any, count: int, shape: Any) -> None:
    n = shape[0]
    for block in blocks(log, count):
        for t in range(WARP * block, n, WARP * count):
            use_floats(log, _INPUT, t, min(n, t + WARP), False)
            use_floats(log, _PIVOTS, 0, BUCKETS, False)
            use_floats(log, _INDICE, t, min(n, t + WARP), True)
        use_floats(log, _PREFIX, BUCKETS * block, BUCKETS * (block + 1), True)


@jit
def _prefixoffset(log: Any, count: int, shape: Any) -> None:
    for block in blocks(log, count):
        for i in range(shape[0]):
            at = FLOAT * (BUCKETS * i + PREFIX_THREADS * block)
            change(log, _PREFIX, at, at + FLOAT * PREFIX_THREADS)
        use_floats(log, _OFFSETS, PREFIX_THREADS * block, PREFIX_THREADS * (block + 1), True)


@jit
def _bucketsort(log: Any, count: int, shape: Any) -> None:
    n, bucket, cursors = shape
    for block in blocks(log, count):
        cursor = cursors[block].copy()  # a copy: a block that finds no room is done again
        use_floats(log, _L_OFFSETS, 0, BUCKETS, False)
        use_floats(log, _PREFIX, BUCKETS * block, BUCKETS * (block + 1), False)
        for t in range(WARP * block, n, WARP * count):
            stop = min(n, t + WARP)
            use_floats(log, _INPUT, t, stop, False)
            use_floats(log, _INDICE, t, stop, False)
            for i in range(t, stop):
                use_sector(log, _OUTPUT, FLOAT * cursor[bucket[i]], True)
                cursor[bucket[i]] += 1


@jit
def _first(log: Any, count: int, shape: Any) -> None:
    fours = shape[0]
    for block in blocks(log, count):
        low, high = FOUR * FIRST_THREADS * block, FOUR * min(fours, FIRST_THREADS * (block + 1))
        use(log, _OUTPUT, low, high, False)
        use(log, _INPUT, low, high, True)


@jit
def _pass(log: Any, count: int, shape: Any) -> None:
    source, each, threads, threads_each, start = shape
    for block in blocks(log, count):
        for done in range(0, each, _CHUNK):
            step(log)
            for thread in range(threads * block, threads * (block + 1)):
                bucket = thread // threads_each
                if bucket < BUCKETS:
                    low = start[bucket] + thread % threads_each * each
                    _merge(log, source, low, min(low + each, start[bucket + 1]), each // 2, done)


@jit
def _merge(log: Any, source: int, low: int, high: int, half: int, done: int) -> None:
    """Merge a thread's float4s ``low`` to ``high``, in the step after ``done``."""
    middle = min(low + half, high)
    reach = min(done + _CHUNK, 2 * half)
    use(log, source, FOUR * (low + done // 2), FOUR * min(middle, low + reach // 2), False)
    use(log, source, FOUR * (middle + done // 2), FOUR * min(high, middle + reach // 2), False)
    use(log, _OUTPUT - source, FOUR * (low + done), FOUR * min(high, low + reach), True)


@jit
def _pack(log: Any, count: int, shape: Any) -> None:
    source, pieces, start, packed = shape
    for block in blocks(log, count):
        bucket, at = block // pieces, block % pieces * PACK_THREADS
        held = packed[bucket + 1] - packed[bucket]
        stop = min(held, at + PACK_THREADS)
        if at < stop:
            # the padding is in front once the bucket is sorted
            padded, place = 4 * start[bucket + 1] - held, packed[bucket]
            use_floats(log, source, padded + at, padded + stop, False)
            use_floats(log, _OUTPUT - source, place + at, place + stop, True)

"""HYB: floats sorted into buckets, then every bucket by merging."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import (
    FLOAT,
    across,
    closed,
    fitted,
    going,
    jump,
    step,
    stream,
    use,
)
from tidegate.workloads.draw import generator
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

BUCKETS = 1024  # DIVISIONS
HISTO_BLOCKS, HISTO_THREADS = 64, 96
WARP, BAND = 32, 128  # threads of a bucket block, and about how many elements each has
PREFIX_THREADS, FIRST_THREADS, PASS_THREADS, PACK_THREADS = 128, 256, 208, 256
FEWEST_BLOCKS = 8
FOUR = 4 * FLOAT  # bytes of a float4
_CHUNK = 256  # float4s that a thread merges in a step: a page

ARRAYS = (
    "input",
    "output",
    "offsets",
    "indice",
    "pivotpoints",
    "l_offsets",
    "prefixoffsets",
    "histogram",
)
_INPUT, _OUTPUT, _OFFSETS, _INDICE, _PIVOTS, _L_OFFSETS, _PREFIX, _HISTOGRAM = range(8)


class Sorted(NamedTuple):
    """The buckets: where they begin, padded to float4s and packed."""

    bucket: NDArray[np.int16]  # of every element
    start: NDArray[np.int64]  # in float4s, and where the last ends
    packed: NDArray[np.int64]  # in floats, likewise
    largest: int  # floats of the largest bucket, padded


@workload("cppe-HYB")
class HybridSort(Workload):
    """A bucket sort, then a merge sort, of n uniform floats: hybridsort of Rodinia; the buckets are
    really filled.

        histogram1024        64 × 96 threads:  input[t], t = 96 b + tx, + 6144, …;  then the histogram
        bucketcount          32 threads, B = ⌈n / 4096⌉ blocks:  t = 32 b + tx, + 32 B, …:  input[t], indice[t] is written;
                             then prefixoffsets[1024 b …]
        bucketprefixoffset   8 × 128 threads:  prefixoffsets[1024 i + 128 b + tx], i = 0 … B - 1, summed up in place
        bucketsort           as bucketcount:  input[t], indice[t];  output[bucket's place + rank] is written
        mergeSortFirst       256 threads, a float4 each:  output[t] to input[t]
        mergeSortPass        208 threads, 2, 4, 8, … float4s each, within buckets:  both halves merged into the other list
        mergepack            256 floats of a bucket:  from its padded to its packed place

    input and output change places in every pass. Grid order: blockIdx.x fastest. Buckets hold n /
    1024 each, but for chance: pivots divide the values evenly. Both halves of a merge are taken to
    be used up evenly; a step is a page of each thread's output. References: the arrays as they are
    allocated. Table II: hybridsort, 104 MB, Type VI; 2^23 floats make 104.0 MiB (Rodinia's own
    default is 2^22: 52 MiB).
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-HYB"), "size of the eight arrays", parse=units.size, least=1
    )
    seed = Option(1, "of the floats (a choice)", least=0)

    @property
    def n(self) -> int:
        return fitted(self.bytes, _sizes)

    def sizes(self) -> dict[str, int]:
        return _sizes(self.n)

    def launches(self, space: Space) -> Iterator[Launch]:
        n = self.n
        blocks = across(n, WARP * BAND)
        sort = _filled(n, self.seed)
        cursor = _prefixed(sort.bucket, blocks) + 4 * sort.start[:-1]
        yield Launch("histogram1024Kernel", stream(space, _histogram, HISTO_BLOCKS, (n,)))
        yield Launch("bucketcount", stream(space, _bucketcount, blocks, (n, blocks)))
        yield Launch(
            "bucketprefixoffset", stream(space, _prefixoffset, BUCKETS // PREFIX_THREADS, (blocks,))
        )
        yield Launch(
            "bucketsort", stream(space, _bucketsort, blocks, (n, blocks, sort.bucket, cursor))
        )
        fours = int(sort.start[-1])
        yield Launch(
            "mergeSortFirst", stream(space, _first, across(fours, FIRST_THREADS), (fours,))
        )
        yield from self._merged(space, sort)

    def _merged(self, space: Space, sort: Sorted) -> Iterator[Launch]:
        """Passes until a thread has a whole bucket, then the packing."""
        source, each, threads_each = _INPUT, 2, 2
        while threads_each > 1:
            threads_each = -(-sort.largest // (4 * each))
            needed = threads_each * BUCKETS
            blocks, threads = -(-needed // PASS_THREADS), PASS_THREADS
            if blocks < FEWEST_BLOCKS:
                blocks, threads = FEWEST_BLOCKS, -(-needed // FEWEST_BLOCKS)
            yield Launch(
                "mergeSortPass",
                stream(space, _pass, blocks, (source, each, threads, threads_each, sort.start)),
            )
            source, each = _OUTPUT - source, 2 * each
        across_bucket = -(-sort.largest // PACK_THREADS)
        shape = (source, across_bucket, sort.start, sort.packed)
        yield Launch("mergepack", stream(space, _pack, across_bucket * BUCKETS, shape))


def _sizes(n: int) -> dict[str, int]:
    padded, table = FLOAT * (n + 4 * BUCKETS), FLOAT * BUCKETS
    prefix = table * -(-n // (WARP * BAND))
    return dict(
        zip(ARRAYS, (padded, padded, table, FLOAT * n, table, table, prefix, table), strict=True)
    )


def _filled(n: int, seed: int) -> Sorted:
    bucket = generator(seed, 0).integers(BUCKETS, size=n, dtype=np.int16)
    held = np.bincount(bucket, minlength=BUCKETS)
    fours = -(-held // 4)
    start, packed = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in (fours, held))
    return Sorted(bucket, start, packed, 4 * int(fours.max()))


@jit
def _prefixed(bucket: Any, blocks: int) -> Any:
    """For every bucket block and bucket, how many elements earlier blocks put there."""
    before = np.zeros((blocks + 1, BUCKETS), np.int64)
    for t in range(len(bucket)):
        before[t // WARP % blocks + 1, bucket[t]] += 1
    for block in range(blocks):
        before[block + 1] += before[block]
    return before[:-1]


@jit
def _histogram(log: Any, block: int, count: int, shape: Any) -> Any:
    n = shape[0]
    while block < count and going(log):
        for t in range(HISTO_THREADS * block, n, HISTO_THREADS * HISTO_BLOCKS):
            use(log, _INPUT, FLOAT * t, FLOAT * min(n, t + HISTO_THREADS), False)
        use(log, _HISTOGRAM, 0, FLOAT * BUCKETS, True)
        block += closed(log)
    return block


@jit
def _bucketcount(log: Any, block: int, count: int, shape: Any) -> Any:
    n, blocks = shape
    while block < count and going(log):
        for t in range(WARP * block, n, WARP * blocks):
            use(log, _INPUT, FLOAT * t, FLOAT * min(n, t + WARP), False)
            use(log, _PIVOTS, 0, FLOAT * BUCKETS, False)
            use(log, _INDICE, FLOAT * t, FLOAT * min(n, t + WARP), True)
        use(log, _PREFIX, FLOAT * BUCKETS * block, FLOAT * BUCKETS * (block + 1), True)
        block += closed(log)
    return block


@jit
def _prefixoffset(log: Any, block: int, count: int, shape: Any) -> Any:
    while block < count and going(log):
        for i in range(shape[0]):
            at = FLOAT * (BUCKETS * i + PREFIX_THREADS * block)
            use(log, _PREFIX, at, at + FLOAT * PREFIX_THREADS, True)
        use(
            log,
            _OFFSETS,
            FLOAT * PREFIX_THREADS * block,
            FLOAT * PREFIX_THREADS * (block + 1),
            True,
        )
        block += closed(log)
    return block


@jit
def _bucketsort(log: Any, block: int, count: int, shape: Any) -> Any:
    n, blocks, bucket, cursors = shape
    while block < count and going(log):
        cursor = cursors[block].copy()  # a block that finds no room is done again
        use(log, _L_OFFSETS, 0, FLOAT * BUCKETS, False)
        use(log, _PREFIX, FLOAT * BUCKETS * block, FLOAT * BUCKETS * (block + 1), False)
        for t in range(WARP * block, n, WARP * blocks):
            stop = min(n, t + WARP)
            use(log, _INPUT, FLOAT * t, FLOAT * stop, False)
            use(log, _INDICE, FLOAT * t, FLOAT * stop, False)
            for i in range(t, stop):
                jump(log, _OUTPUT, FLOAT * cursor[bucket[i]], True)
                cursor[bucket[i]] += 1
        block += closed(log)
    return block


@jit
def _first(log: Any, block: int, count: int, shape: Any) -> Any:
    fours = shape[0]
    while block < count and going(log):
        low, high = FOUR * FIRST_THREADS * block, FOUR * min(fours, FIRST_THREADS * (block + 1))
        use(log, _OUTPUT, low, high, False)
        use(log, _INPUT, low, high, True)
        block += closed(log)
    return block


@jit
def _pass(log: Any, block: int, count: int, shape: Any) -> Any:
    source, each, threads, threads_each, start = shape
    while block < count and going(log):
        for done in range(0, each, _CHUNK):
            step(log)
            for thread in range(threads * block, threads * (block + 1)):
                bucket = thread // threads_each
                if bucket < BUCKETS:
                    low = start[bucket] + thread % threads_each * each
                    _merge(log, source, low, min(low + each, start[bucket + 1]), each // 2, done)
        block += closed(log)
    return block


@jit
def _merge(log: Any, source: int, low: int, high: int, half: int, done: int) -> None:
    """A thread's float4s ``low`` to ``high``: what it reads of both halves, and writes, in the step
    after ``done``.
    """
    middle = min(low + half, high)
    reach = min(done + _CHUNK, 2 * half)
    use(log, source, FOUR * (low + done // 2), FOUR * min(middle, low + reach // 2), False)
    use(log, source, FOUR * (middle + done // 2), FOUR * min(high, middle + reach // 2), False)
    use(log, _OUTPUT - source, FOUR * (low + done), FOUR * min(high, low + reach), True)


@jit
def _pack(log: Any, block: int, count: int, shape: Any) -> Any:
    source, across_bucket, start, packed = shape
    while block < count and going(log):
        bucket, at = block // across_bucket, block % across_bucket * PACK_THREADS
        held = packed[bucket + 1] - packed[bucket]
        stop = min(held, at + PACK_THREADS)
        if at < stop:
            # the padding is in front once the bucket is sorted
            padded = 4 * start[bucket + 1] - held
            use(log, source, FLOAT * (padded + at), FLOAT * (padded + stop), False)
            use(
                log,
                _OUTPUT - source,
                FLOAT * (packed[bucket] + at),
                FLOAT * (packed[bucket] + stop),
                True,
            )
        block += closed(log)
    return block

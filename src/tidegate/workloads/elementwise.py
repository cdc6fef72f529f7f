"""Passes over several objects in step, as element-wise kernels make: ``b[i] = f(a[i], …)``; one of
them is blackscholes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from tidegate.options import Option
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Launch, Object, Segment
from tidegate.workloads.program import Derived, Launches, Space, bytes_within, footprint, workload


def merged_blocks(geometry: Geometry, thread_block: int) -> tuple[int, int]:
    """Return pages per block and the launch's width, for ``thread_block`` bytes of each object.

    The thread blocks of one page touch it at the same time, so they are one block that takes as
    many slots.

    >>> merged_blocks(Geometry(), 1024), merged_blocks(Geometry(256, 4096), 1024)
    ((1, 64), (4, 1))
    """
    return max(1, thread_block // geometry.page), max(1, geometry.page // thread_block)


def one_pass(
    space: Space, names: Sequence[str], block: int, writes: Collection[str] = ()
) -> Iterator[Segment]:
    """Yield one pass over the objects ``names``, page by page; those in ``writes`` are written.

    A block is ``block`` pages of the longest object and the pages of the others beside them: where
    object x has X pages and the longest has L, page t of the longest goes with page t·X/L of x. An
    object's access site is its place in ``names``.
    """
    objects = [space[name] for name in names]
    written = np.array([name in writes for name in names], dtype=np.uint8)
    longest = max(o.pages for o in objects)
    rows = max(1, SEGMENT_TOUCHES // (block * len(names))) * block
    for first in range(0, longest, rows):
        at = np.arange(first, min(first + rows, longest))
        yield _rows(space.geometry, objects, written, block, at, longest)


def _rows(
    geometry: Geometry,
    objects: Sequence[Object],
    written: np.ndarray,
    block: int,
    at: np.ndarray,
    longest: int,
) -> Segment:
    """Return the touches at pages ``at`` of the longest object; a row is a page."""
    index = np.stack([at * o.pages // longest for o in objects], axis=1)
    # -1 before the first page
    before = np.stack([(at - 1) * o.pages // longest for o in objects], axis=1)
    new = index != before  # a shorter object stays on its page for several rows, which is one touch
    touches_before = np.concatenate([[0], np.cumsum(new.sum(axis=1))])
    starts = touches_before[np.append(np.arange(0, len(at), block), len(at))]
    pairs = zip(objects, index.T, strict=True)
    used = np.stack([bytes_within(o, i, geometry) for o, i in pairs], axis=1)
    site = np.broadcast_to(np.arange(len(objects), dtype=np.int16), new.shape)
    pages = index + np.array([o.first_page for o in objects])
    return Segment(starts, pages[new], written[site[new]], used[new], site[new])


# bytes of each vector: 128 threads of one float2, that is two options, each
_THREAD_BLOCK = 128 * 8

# Operations per option, counted in BlackScholes_kernel.cuh: 18 in each of two cndGPU and 23 around
# them; exp, log, rsqrt and a division count as one each, and fabs, signs and comparisons as none.
_FLOPS = 2 * 18 + 23


@workload("blackscholes")
class BlackScholes(Derived):
    """Prices of European options: BlackScholes of NVIDIA's CUDA samples (5_Domain_Specific).

        opt = blockDim.x * blockIdx.x + threadIdx.x            128 threads, each two options
        d_CallResult[opt], d_PutResult[opt] =
            f(d_StockPrice[opt], d_OptionStrike[opt], d_OptionYears[opt])

    The sample prices the same options over and over, a launch each time (512 times; here
    ``iterations``). Access sites, in order of use: 0 = stock, 1 = strike, 2 = years, 3 = call, 4 =
    put.
    """

    bytes = footprint("1GiB", "size of the five vectors together")
    iterations = Option(4, "how often all options are priced", least=1)

    def sizes(self) -> dict[str, int]:
        options = self.bytes // 40 * 2  # a thread prices two
        return dict.fromkeys(("call", "put", "stock", "strike", "years"), 4 * options)

    def launches(self, space: Space) -> Launches:
        block, width = merged_blocks(space.geometry, _THREAD_BLOCK)
        order = ["stock", "strike", "years", "call", "put"]
        for _ in range(self.iterations):
            touches = one_pass(space, order, block, writes=["call", "put"])
            yield Launch("BlackScholesGPU", touches, width, intensity=_FLOPS / 20)

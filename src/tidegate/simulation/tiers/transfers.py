"""Transfers between near and middle memory: DMA, zero-copy by X threads, and Hybrid-XT (GMT, 2.3
and Figure 6).

DMA is one engine: each page that is not contiguous takes a call and its bytes, one after another.
In zero-copy the threads of a warp load a page themselves. One page takes long (50 µs with all 32
threads, and longer with fewer), but every page has a warp of its own, so many come at once, up to
the share of the link that loads reach. Hybrid-XT takes zero-copy for more than 8 pages, if X
threads of the warp can help, and DMA otherwise.

Nothing here is fitted to Figure 6: calls, link, share and the 50 µs are the machine's. The crossing
at 8 pages comes out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.machine.machine import Machine

WARP = 32  # threads
HYBRID_PAGES = 8  # GMT 2.3: the crossing in Figure 6a


@dataclass(frozen=True)
class Transfers:
    """Costs of moving pages from the middle to near memory, in ns."""

    page: int  # bytes
    call: float  # of a DMA transfer
    link: float  # bytes per ns
    share: float  # of the link, that zero-copy reaches
    warp_page: float  # a page by one whole warp

    @classmethod
    def of(cls, machine: Machine) -> Transfers:
        """Return those of a machine, inward."""
        if machine.storage is None:
            raise TidegateError(
                f"machine {machine.name} must have [storage] for tiers, as a100-pcie3-ssd has; "
                "got none"
            )
        link = machine.link
        return cls(
            machine.geometry.page,
            link.run_overhead,
            link.inward,
            link.remote_share,
            machine.storage.host_page,
        )

    def dma(self, pages: int) -> float:
        """Return the time of ``pages`` pages that lie apart, by DMA."""
        return pages * (self.call + self.page / self.link)

    def zero_copy(self, pages: int, threads: int = WARP) -> float:
        """Return the same by zero-copy, by ``threads`` threads of a warp for each page."""
        if not pages:
            return 0.0
        return max(self.warp_page * WARP / threads, pages * self.page / (self.link * self.share))

    def hybrid(self, pages: int, threads: int, least: int = WARP) -> float:
        """Return Hybrid-XT's, X = ``least``: zero-copy for many pages and threads, else DMA."""
        return (
            self.zero_copy(pages, threads)
            if pages > HYBRID_PAGES and threads >= least
            else self.dma(pages)
        )

    def bandwidth(self, pages: int, time: float) -> float:
        """Return bytes per ns, which is GB/s."""
        return pages * self.page / time if time else 0.0


def crossing(transfers: Transfers) -> int:
    """Return the fewest pages for which zero-copy by a whole warp is quicker than DMA.

    >>> from tidegate.machine import load_machine
    >>> crossing(Transfers.of(load_machine("a100-pcie3-ssd")))
    8
    """
    return next(n for n in range(1, 10_000) if transfers.zero_copy(n) < transfers.dma(n))


def delivered(
    transfers: Transfers,
    skew: float,
    *,
    pages: int = 1 << 14,
    near: int = 1 << 12,
    warps: int = 16,
    rounds: int = 64,
    seed: int = 1,
) -> dict[str, float]:
    """Return GB/s of each scheme for zipf-distributed requests (Figure 6b), a page per thread and
    round.

    The numbers of pages, warps and near pages are assumed, as the paper does not give them. The
    ``near`` pages requested most are near already; the others are transferred, each once in a
    round. The threads of a warp that miss can help to move its pages; those that hit go on.
    """
    generator = np.random.default_rng(seed)
    weights = np.arange(1, pages + 1, dtype=np.float64) ** -skew
    edges = np.cumsum(weights / weights.sum())
    time = dict.fromkeys(("dma", "zero-copy", *(f"hybrid-{x}t" for x in (8, 16, 32))), 0.0)
    moved = 0
    for _ in range(rounds):
        requested = np.searchsorted(edges, generator.random((warps, WARP))).clip(max=pages - 1)
        lanes = (requested >= near).sum(axis=1)
        fresh = _first_requested(requested, near)
        total, busy = int(fresh.sum()), fresh > 0
        moved += total
        time["dma"] += transfers.dma(total)
        time["zero-copy"] += _by_warps(transfers, fresh[busy], lanes[busy])
        for x in (8, 16, 32):
            time[f"hybrid-{x}t"] += _hybrid(transfers, fresh[busy], lanes[busy], x)
    return {scheme: moved * transfers.page / t if t else 0.0 for scheme, t in time.items()}


def _first_requested(requested: NDArray[np.int64], near: int) -> NDArray[np.int64]:
    """Return how many pages each warp moves: those it is the first to request in this round."""
    pages, at = np.unique(requested, return_index=True)
    return np.bincount(at[pages >= near] // requested.shape[1], minlength=len(requested))


def _by_warps(transfers: Transfers, pages: NDArray[np.int64], lanes: NDArray[np.int64]) -> float:
    """Return the time of zero-copy: each warp moves page after page, all share the link."""
    if not len(pages):
        return 0.0
    slowest = float((pages * transfers.warp_page * WARP / lanes).max())
    return max(slowest, int(pages.sum()) * transfers.page / (transfers.link * transfers.share))


def _hybrid(
    transfers: Transfers, pages: NDArray[np.int64], lanes: NDArray[np.int64], least: int
) -> float:
    """Return the time of Hybrid-XT: warps with enough threads copy while DMA moves the rest."""
    copies = (lanes >= least) & (pages.sum() > HYBRID_PAGES)
    return max(
        _by_warps(transfers, pages[copies], lanes[copies]), transfers.dma(int(pages[~copies].sum()))
    )

"""LEU's equations as the paper prints them, in rational arithmetic: slow and exact.

The oracle of the compiled LEU. ``tesla`` is the time elapsed since the last access, ``lease`` how
long after that access a block would stay, both in touches (Chen et al., MEMSYS'19, section 3.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

NOTHING = Fraction(0)


@dataclass
class Distribution:
    """P(ri | block) or P(ri | access site): counts of intervals, and the number of accesses."""

    counts: Counter[int] = field(default_factory=Counter)
    accesses: int = 0

    def share(self, interval: int) -> Fraction:
        """Return P(ri = interval)."""
        return Fraction(self.counts[interval], self.accesses)

    def share_upto(self, interval: int) -> Fraction:
        """Return P(ri ≤ interval)."""
        return Fraction(sum(n for ri, n in self.counts.items() if ri <= interval), self.accesses)

    def hit_ratio(self, tesla: int, lease: int) -> Fraction:
        """Return the chance of a use within the lease if there was none so far (equation 1).

        If every interval has passed, the equation is 0/0. No further use is expected: 0.
        """
        passed = self.share_upto(tesla)
        return (self.share_upto(lease) - passed) / (1 - passed) if passed < 1 else NOTHING

    def ppuc(self, tesla: int, lease: int) -> Fraction:
        """Return the profit per unit of cost (equation 2). The cost is the time still to stay."""
        return self.hit_ratio(tesla, lease) / (lease - tesla)

    def priority(self, tesla: int) -> tuple[Fraction, int | None]:
        """Return the largest PPUC over all leases, and the (shortest) lease that has it; None if no
        use is expected.

        Only intervals need be tried as leases: between two of them the profit is constant and the
        cost rises.
        """
        leases = sorted(ri for ri in self.counts if ri > tesla)
        if not leases:
            return NOTHING, None
        best = max(leases, key=lambda lease: self.ppuc(tesla, lease))
        return self.ppuc(tesla, best), best


def distributions(
    blocks: Sequence[Hashable], owners: Sequence[Hashable] | None = None, endless: bool = False
) -> dict[Hashable, Distribution]:
    """Return the distribution of every owner: access sites if ``owners`` are given, else blocks.

    ``endless``: the touches are one period of an endless sequence, as in the paper's examples.

    >>> distributions("aabb", endless=True)["a"].share(3)
    Fraction(1, 2)
    """
    found: dict[Hashable, Distribution] = {}
    n = len(blocks)
    following = {blocks[i]: i + n for i in range(n - 1, -1, -1)} if endless else {}
    for i in range(n - 1, -1, -1):
        distribution = found.setdefault((owners or blocks)[i], Distribution())
        distribution.accesses += 1
        if blocks[i] in following:
            distribution.counts[following[blocks[i]] - i] += 1
        following[blocks[i]] = i
    return found


class LEUResult(NamedTuple):
    """LEU's misses in a sequence, and the resident blocks after every touch."""

    misses: int
    resident: list[frozenset[Any]]


def exact_leu(
    blocks: Sequence[Any], capacity: int, owners: Sequence[Any] | None = None
) -> LEUResult:
    """Run LEU plainly: at every miss, rank all resident blocks. Of equals, evict the one touched
    first.

    >>> exact_leu("abcabcabc", 2).misses
    6
    """
    owners = owners or blocks
    known = distributions(blocks, owners)
    last: dict[Any, tuple[int, Any]] = {}
    resident: set[Any] = set()
    misses, states = 0, []
    for now, block in enumerate(blocks):
        if block not in resident:
            misses += 1
            if len(resident) == capacity:
                resident.remove(min(resident, key=lambda b: _rank(known, *last[b], now)))
            resident.add(block)
        last[block] = now, owners[now]
        states.append(frozenset(resident))
    return LEUResult(misses, states)


def _rank(
    known: Mapping[Any, Distribution], when: int, owner: Any, now: int
) -> tuple[Fraction, int]:
    """Return the priority of a block last touched at ``when`` by ``owner``, and then its time."""
    return known[owner].priority(now - when)[0], when

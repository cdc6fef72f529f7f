"""LEU's equations as the paper prints them, in rational arithmetic: slow, and right to the digit.

The compiled LEU is held against this. ``tesla`` is the time elapsed since the last access,
``lease`` how long after that access a block would stay; both are counted in touches (Chen et al.,
MEMSYS'19, section 3.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

NOTHING = Fraction(0)


@dataclass
class Distribution:
    """P(ri | block) or P(ri | reference): how often each interval was seen, among how many
    accesses.
    """

    counts: Counter[int] = field(default_factory=Counter)
    accesses: int = 0

    def share(self, interval: int) -> Fraction:
        """P(ri = interval)."""
        return Fraction(self.counts[interval], self.accesses)

    def share_upto(self, interval: int) -> Fraction:
        """P(ri ≤ interval)."""
        return Fraction(sum(n for ri, n in self.counts.items() if ri <= interval), self.accesses)

    def hit_ratio(self, tesla: int, lease: int) -> Fraction:
        """Equation 1: the chance of a use within the lease, knowing that there was none so far.

        Where every interval has passed, the equation is 0/0. The distribution promises no further
        use: 0.
        """
        passed = self.share_upto(tesla)
        return (self.share_upto(lease) - passed) / (1 - passed) if passed < 1 else NOTHING

    def ppuc(self, tesla: int, lease: int) -> Fraction:
        """Equation 2: profit per unit of cost, the cost being the time still to stay."""
        return self.hit_ratio(tesla, lease) / (lease - tesla)

    def priority(self, tesla: int) -> tuple[Fraction, int | None]:
        """The largest PPUC over all leases, and the (shortest) lease that has it; None if no use is
        expected.

        Only intervals need be tried as leases: between two of them the profit is the same and the
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
    """The distribution of every owner; of every block if no ``owners`` (references) are given.

    ``endless``: the touches are one period of a sequence that goes on like that for ever, as the
    paper's examples do.

    >>> distributions("aabb", endless=True)["a"].share(3)
    Fraction(1, 2)
    """
    found: dict[Hashable, Distribution] = {}
    following = (
        {block: i + len(blocks) for i, block in reversed(list(enumerate(blocks)))}
        if endless
        else {}
    )
    for i in range(len(blocks) - 1, -1, -1):
        distribution = found.setdefault((owners or blocks)[i], Distribution())
        distribution.accesses += 1
        if blocks[i] in following:
            distribution.counts[following[blocks[i]] - i] += 1
        following[blocks[i]] = i
    return found


class LEUResult(NamedTuple):
    """What LEU makes of a sequence: its misses, and what is resident after every touch."""

    misses: int
    resident: list[frozenset[Any]]


def exact_leu(
    blocks: Sequence[Any], capacity: int, owners: Sequence[Any] | None = None
) -> LEUResult:
    """LEU written down plainly: at every miss all resident blocks are ranked. Of equals, the one
    touched first goes.

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
                ranks = {
                    b: (known[last[b][1]].priority(now - last[b][0])[0], last[b][0])
                    for b in resident
                }
                resident.remove(min(ranks, key=lambda b: ranks[b]))
            resident.add(block)
        last[block] = now, owners[now]
        states.append(frozenset(resident))
    return LEUResult(misses, states)

"""TierReuse: predicted reuse decides."""

from __future__ import annotations

from typing import Any

from tidegate.options import Option
from tidegate.policies.interface.tier_policy import Spill, Tier, TierPolicy
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import tiering
from tidegate.policies.structures.column import Column

PUBLISHED_NEAR = 262_144  # pages of GMT's Tier-1, 16 GB: samples are scaled by what ours is of it

# A page's chain is one number: its last right class and its last prediction, both plus one, in two
# bits each, then nine weights of 6 bits.
_PREDICTED, _WEIGHTS, _BITS, _MOST = 2, 4, 6, 63

assert tuple(Tier) == (0, 1, 2)  # classes of reuse: short, medium, long


def class_of(distance: float, near: int, reach: int) -> int:
    """Return STAY for short, MIDDLE for medium, FAR for long reuse (equation 1).

    It adds up comparisons: a processor would mispredict branches.
    """
    beyond = not distance < near
    return beyond + (beyond & (not distance < reach))


def learn(chain: int, right: int) -> int:
    """Weigh the step from the last right class to ``right``, the class of a page that returns."""
    state = (chain & 3) - 1
    if state >= 0:
        at = _WEIGHTS + _BITS * (3 * state + right)
        if chain >> at & _MOST == _MOST:  # halve the row, so that old steps count for less
            for to in range(3):
                place = _WEIGHTS + _BITS * (3 * state + to)
                chain -= ((chain >> place & _MOST) - (chain >> place & _MOST) // 2) << place
        chain += 1 << at
    return chain & ~15 | right + 1


def predict(chain: int) -> int:
    """Return the heaviest step out of the last right class; -1 without a history.

    It is that class itself if no other step is heavier.
    """
    state = (chain & 3) - 1
    if state < 0:
        return -1
    row = chain >> (_WEIGHTS + 3 * _BITS * state)
    best, most = state, row >> (_BITS * state) & _MOST
    for to in range(3):
        if row >> (_BITS * to) & _MOST > most:
            best, most = to, row >> (_BITS * to) & _MOST
    return best


def remember(chain: int, predicted: int) -> int:
    """Return the page's chain with its latest prediction."""
    return chain & ~(3 << _PREDICTED) | (predicted + 1) << _PREDICTED


@tiering("tier-reuse")
class TierReuse(TierPolicy):
    """Predict when the victim is used again, and place it in the tier that reaches so far
    (GMT-Reuse, 2.1.3 and 2.2).

    Virtual time (touches) stands for reuse distance, by a line through sampled pairs. When a page
    returns, the time it was away says which tier was right; a Markov chain of three states per page
    remembers which tier was right after which. Short reuse stays near, and CLOCK goes on; medium
    reuse goes to the middle, if there is room; long reuse goes far, unless over 80 % of the latest
    victims did and the middle would lie idle.
    """

    sees = Everything()
    batch = Option(
        10_000, "pairs after which the line is drawn anew, at 16 GB of near memory", least=1
    )
    samples = Option(
        200_000, "pairs in all ('hundreds of thousands'), at 16 GB of near memory", least=0
    )
    every = Option(1, "one page in so many is sampled", least=1)
    window = Option(
        64, "latest predictions that the rule for an idle middle looks at", least=1, most=1024
    )
    idle = Option(
        0.8,
        "share of long reuse among them above which victims go to the middle all the same",
        least=0,
        most=1,
    )
    full = Option(
        "discard",
        "which page leaves a full middle: the newcomer, or the oldest (2.1.3, 2.2)",
        choices=("discard", "fifo"),
    )
    reach = Option(
        "middle",
        "medium reuse is below the size of: the middle (equation 1), or both tiers (Figure 7)",
        choices=("middle", "both"),
    )
    unknown = Option("middle", "where a page without a history goes", choices=("middle", "far"))
    weights = Option(
        "page", "whose steps a prediction weighs: a page's own, or all", choices=("page", "shared")
    )

    @property
    def makes_room(self) -> Spill:
        return Spill.NOBODY if self.full == "discard" else Spill.OLDEST

    def sampling(self, near: int) -> tuple[int, int, int]:
        scaled = [max(1, round(n * near / PUBLISHED_NEAR)) for n in (self.batch, self.samples)]
        return scaled[0], scaled[1] if self.samples else 0, self.every

    def start(self) -> None:
        near, middle = self.memory.near_pages, self.memory.middle_pages
        self._reach = middle if self.reach == "middle" else near + middle
        self._unknown = Tier.MIDDLE if self.unknown == "middle" else Tier.FAR
        self._chains = Column(0)
        self._shares = self.weights == "shared"
        self._shared = [0] * 9  # steps of all pages, by class before and class after
        self._recent = [0] * self.window  # 1 for long reuse: a ring of the latest predictions
        self._next = self._long = 0
        self._enough = int(self.idle * self.window)
        self._predictions = self._right = self._unpredicted = self._fits = 0
        # The regression begins with a page that is touched twice running: virtual time 1, distance
        # 0. It is known without sampling, and on a loop, where all distances are the same, it is
        # what makes a line. Until the first batch distances are taken for virtual times.
        self._n = self._x = self._xx = 1.0
        self._y = self._xy = 0.0
        self._slope, self._offset = 1.0, 0.0

    def place(self, page: int) -> int:
        chain = self._chains[page]
        predicted = self._predict(chain)
        self._chains[page] = remember(chain, predicted)
        if predicted < 0:
            self._unpredicted += 1
            return self._unknown
        if predicted == Tier.STAY:
            return Tier.STAY
        # long reuse goes to the middle if too much was long of late
        idle = self._long > self._enough
        long = 1 if predicted == Tier.FAR else 0
        self._long += long - self._recent[self._next]
        self._recent[self._next] = long
        self._next = self._next + 1 if self._next + 1 < self.window else 0
        return Tier.MIDDLE if idle else predicted

    def on_return(self, page: int) -> int | None:
        away = self.memory.now - self.memory.left(page)
        distance = self._slope * away + self._offset  # equation 3
        right = class_of(distance, self.memory.near_pages, self._reach)
        chain = self._chains[page]
        predicted = (chain >> _PREDICTED & 3) - 1
        self._predictions += predicted >= 0
        self._right += predicted == right
        if self._shares:
            state = (chain & 3) - 1
            if state >= 0:
                self._shared[3 * state + right] += 1
            self._chains[page] = right + 1
            return None  # what others do until it leaves may change the prediction
        chain = learn(chain, right)
        if predict(chain) == Tier.STAY:
            self._chains[page] = remember(chain, Tier.STAY)
            return Tier.STAY
        self._chains[page] = chain
        return None

    def _predict(self, chain: int) -> int:
        """Return the heaviest step out of the page's last right class; -1 without a history."""
        if not self._shares:
            return predict(chain)
        state = (chain & 3) - 1
        if state < 0:
            return -1
        best = state
        for to in range(3):
            if self._shared[3 * state + to] > self._shared[3 * state + best]:
                best = to
        return best

    def on_samples(self) -> None:
        """Fit the line to all pairs so far by ordinary least squares (equation 2)."""
        pairs = self.memory.pairs
        for i in range(len(pairs)):
            x, y = float(pairs[i, 0]), float(pairs[i, 1])
            self._n += 1
            self._x += x
            self._y += y
            self._xx += x * x
            self._xy += x * y
        spread = self._n * self._xx - self._x * self._x
        if spread > 0:
            self._slope = (self._n * self._xy - self._x * self._y) / spread
            self._offset = (self._y - self._slope * self._x) / self._n
        self._fits += 1

    def report(self) -> dict[str, Any]:
        return {
            "predictions": self._predictions,
            "right": self._right,
            "unpredicted": self._unpredicted,
            "fits": self._fits,
            "slope": self._slope,
            "offset": self._offset,
        }

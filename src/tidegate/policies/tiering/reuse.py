"""Predicted reuse decides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.addresses import floats_at, words_at
from tidegate.compiled.jit import jit, jit_bare, jit_policy
from tidegate.options import Option
from tidegate.policies.interface.tier_events import KNOWN, PLACE, RETURN, SAMPLES
from tidegate.policies.interface.tier_header import (
    HISTORY,
    NEAR_PAGES,
    NOW,
    OWN,
    PAGES,
    PAIR_COUNT,
    PAIRS,
)
from tidegate.policies.interface.tier_policy import (
    FAR,
    MIDDLE,
    NOBODY,
    OLDEST,
    STAY,
    TierPolicy,
    TierTwin,
)
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import tiering

PUBLISHED_NEAR = 262_144  # pages of GMT's Tier-1, 16 GB: samples are scaled by what ours is of it

# A page's memory in one word: its last right class and the last prediction, both plus one, then
# nine weights of 6 bits.
_PREDICTED, _WEIGHTS, _BITS, _MOST = 2, 4, 6, 63
# Own words beside: the sums of a regression, and what is counted.
_N, _X, _Y, _XX, _XY, _SLOPE, _OFFSET = range(7)  # as floats
_PREDICTIONS, _RIGHT, _BLIND, _LONG, _NEXT, _WINDOW, _ENOUGH, _REACH, _UNKNOWN, _FITS = range(7, 17)
_RECENT, _WORDS = 17, 17 + 1024  # the window of recent predictions is at most so long


@jit
def distance(rvtd: float, slope: float, offset: float) -> float:
    """Equation 3: the remaining reuse distance, from the remaining virtual time."""
    return slope * rvtd + offset


assert (STAY, MIDDLE, FAR) == (0, 1, 2)


@jit
def class_of(distance: float, near: int, reach: int) -> int:
    """Equation 1: STAY for short, MIDDLE for medium, FAR for long reuse.

    Added up, for which of them it is no processor could guess.
    """
    beyond = not distance < near
    return beyond + (beyond & (not distance < reach))


@jit
def learn(word: int, right: int) -> int:
    """The page came back, and ``right`` would have been its tier: weigh the step from the class
    before to this one.
    """
    state = (word & 3) - 1
    if state >= 0:
        at = _WEIGHTS + _BITS * (3 * state + right)
        if word >> at & _MOST == _MOST:  # halve the row, so that old steps count for less
            for to in range(3):
                place = _WEIGHTS + _BITS * (3 * state + to)
                word -= ((word >> place & _MOST) - (word >> place & _MOST) // 2) << place
        word += 1 << at
    return word & ~15 | right + 1


@jit
def predict(word: int) -> int:
    """The heaviest step out of the last right class; that class itself if none is heavier; -1
    without a history.
    """
    state = (word & 3) - 1
    if state < 0:
        return -1
    row = word >> (_WEIGHTS + 3 * _BITS * state)
    best, most = state, row >> (_BITS * state) & _MOST
    for to in range(3):
        if row >> (_BITS * to) & _MOST > most:
            best, most = to, row >> (_BITS * to) & _MOST
    return best


@jit
def fit(sums: Any, pairs: Any) -> None:
    """Ordinary least squares over all pairs so far (equation 2)."""
    for i in range(len(pairs)):
        x, y = float(pairs[i, 0]), float(pairs[i, 1])
        sums[_N] += 1
        sums[_X] += x
        sums[_Y] += y
        sums[_XX] += x * x
        sums[_XY] += x * y
    spread = sums[_N] * sums[_XX] - sums[_X] * sums[_X]
    if spread > 0:
        sums[_SLOPE] = (sums[_N] * sums[_XY] - sums[_X] * sums[_Y]) / spread
        sums[_OFFSET] = (sums[_Y] - sums[_SLOPE] * sums[_X]) / sums[_N]


@jit
def foretold(word: int, found: int) -> int:
    """The page's memory with its latest prediction."""
    return word & ~(3 << _PREDICTED) | (found + 1) << _PREDICTED


@jit
def decide(w: Any, found: int) -> int:
    """Where a candidate goes of which ``found`` is predicted; long reuse goes to the middle if too
    much of late was long.
    """
    return _decide(w, found)


@jit_bare
def _decide(w: Any, found: int) -> int:
    if found < 0:
        w[_BLIND] += 1
        return w[_UNKNOWN]
    if found == STAY:
        return STAY
    at = _RECENT + w[_NEXT]
    idle = w[_LONG] > w[_ENOUGH]
    w[_LONG] += (found == FAR) - w[at]
    w[at] = found == FAR
    w[_NEXT] = w[_NEXT] + 1 if w[_NEXT] + 1 < w[_WINDOW] else 0
    return MIDDLE if idle else found


@jit
def judge(w: Any, line: Any, word: int, waited: int, near: int) -> int:
    """A page was away for ``waited`` touches: which tier was right, was it predicted, and what is
    to be learnt of it.
    """
    return _judge(w, line, word, waited, near)


@jit_bare
def _judge(w: Any, line: Any, word: int, waited: int, near: int) -> int:
    right = class_of(distance(waited, line[_SLOPE], line[_OFFSET]), near, w[_REACH])
    predicted = (word >> _PREDICTED & 3) - 1
    w[_PREDICTIONS] += predicted >= 0
    w[_RIGHT] += predicted == right
    return learn(word, right)


@jit_policy
def _reuse(own: int, event: int) -> int:
    kind, page = event & 255, event >> 8
    h, w, line = words_at(own, OWN), words_at(own + 8 * OWN, _WORDS), floats_at(own + 8 * OWN, 7)
    history = words_at(h[HISTORY], 2 * h[PAGES])
    if kind == PLACE:
        found = predict(history[2 * page + 1])
        history[2 * page + 1] = foretold(history[2 * page + 1], found)
        return _decide(w, found)
    if kind == RETURN:
        waited = words_at(h[NOW], 1)[0] - history[2 * page]
        word = _judge(w, line, history[2 * page + 1], waited, h[NEAR_PAGES])
        stays = predict(word) == STAY
        history[2 * page + 1] = foretold(word, STAY) if stays else word
        return KNOWN if stays else 0
    if kind == SAMPLES:
        filled = words_at(h[PAIR_COUNT], 1)[0]
        fit(line, words_at(h[PAIRS], 2 * filled).reshape(filled, 2))
        w[_FITS] += 1
    return 0


@tiering("tier-reuse")
class TierReuse(TierPolicy):
    """Predict when the victim is used again, and place it in the tier that reaches so far
    (GMT-Reuse, 2.1.3 and 2.2).

    Virtual time (touches) stands for reuse distance, by a line through sampled pairs. When a page
    comes back, the time it was away says where it should have been; a Markov chain of three states
    per page remembers which tier was right after which. Short reuse stays near, and CLOCK goes on;
    medium reuse goes to the middle, if there is room; long reuse goes far, unless over 80 % of the
    latest victims did and the middle would lie idle.
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
        "who leaves a full middle: the newcomer, or the oldest (2.1.3, 2.2)",
        choices=("discard", "fifo"),
    )
    reach = Option(
        "middle",
        "medium reuse is below the size of: the middle (equation 1), or both tiers (Figure 7)",
        choices=("middle", "both"),
    )
    unknown = Option("middle", "where a page without a history goes", choices=("middle", "far"))
    compiled = TierTwin(
        _reuse,
        lambda policy, pages, near, middle: policy.words(near, middle),
        lambda policy, words: policy.take_back(words),
    )

    @property
    def makes_room(self) -> int:
        return NOBODY if self.full == "discard" else OLDEST

    def sampling(self, near: int) -> tuple[int, int, int]:
        scaled = [max(1, round(n * near / PUBLISHED_NEAR)) for n in (self.batch, self.samples)]
        return scaled[0], scaled[1] if self.samples else 0, self.every

    def start(self) -> None:
        self._words: dict[int, int] = {}
        self._own = self.words(self.memory.near_pages, self.memory.middle_pages)
        self._line = self._own[:7].view(np.float64)

    def place(self, page: int) -> int:
        word = self._words.get(page, 0)
        found = int(predict(word))
        self._words[page] = int(foretold(word, found))
        return int(decide(self._own, found))

    def on_return(self, page: int) -> int | None:
        waited = self.memory.now - self.memory.left(page)
        word = int(
            judge(self._own, self._line, self._words.get(page, 0), waited, self.memory.near_pages)
        )
        stays = int(predict(word)) == STAY
        self._words[page] = int(foretold(word, STAY)) if stays else word
        return STAY if stays else None

    def on_samples(self) -> None:
        fit(self._line, self.memory.pairs)
        self._own[_FITS] += 1

    def words(self, near: int, middle: int) -> NDArray[np.int64]:
        """Everything that is remembered, as the twin has it."""
        own = np.zeros(_WORDS, np.int64)
        line = own[:7].view(np.float64)
        # A page that is touched twice running: virtual time 1, distance 0. It is known without
        # sampling, and on a loop, where all distances are the same, it is what makes a line. Until
        # the first batch distances are taken for virtual times.
        fit(line, np.array([[1, 0]]))
        line[_SLOPE] = 1.0
        own[_WINDOW], own[_ENOUGH] = self.window, int(self.idle * self.window)
        own[_REACH] = middle if self.reach == "middle" else near + middle
        own[_UNKNOWN] = MIDDLE if self.unknown == "middle" else FAR
        return own

    def take_back(self, own: NDArray[np.int64]) -> None:
        """What the twin has counted."""
        self._own = own[:_RECENT].copy()
        self._line = self._own[:7].view(np.float64)

    def report(self) -> dict[str, Any]:
        return {
            "predictions": int(self._own[_PREDICTIONS]),
            "right": int(self._own[_RIGHT]),
            "unpredicted": int(self._own[_BLIND]),
            "fits": int(self._own[_FITS]),
            "slope": float(self._line[_SLOPE]),
            "offset": float(self._line[_OFFSET]),
        }

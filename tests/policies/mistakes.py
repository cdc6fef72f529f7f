"""A policy with every mistake that compiled code must not hide; ``which`` chooses one.

They are one class, so that they are compiled once. A line that ends in # N is mistake N.
"""

from __future__ import annotations

from tidegate.policy import Column, Draws, EvictionPolicy, Heap, Marks, Option, Order, Orders

LAST = 33


class Mistaken(EvictionPolicy):
    """Evict the oldest, and make a mistake when the third victim is chosen."""

    which = Option(0, "number of the mistake", least=0)

    def start(self):
        self.numbers, self.fractions = [1, 2, 3], [0.5, 1.5]
        self.uses, self.weights = Column(0), Column(0.0)
        self.marks, self.heap, self.orders = Marks(), Heap(), Orders(2)
        self.other, self.draws = Order(), Draws(1)
        self.zero, self.calls, self.fraction = 0, 0, 0.0

    def on_fault(self, region):
        self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        self.calls += 1
        if self.calls == 3:
            self.mistake()
        return self.order.head

    def mistake(self):
        which, zero, beyond = self.which, self.zero, self.memory.regions
        if which == 1:
            self.calls += 1 // zero  # 1
        if which == 2:
            self.calls += 7 % zero  # 2
        if which == 3:
            self.fraction = 1.0 / zero  # 3
        if which == 4:
            self.fraction = 1.0 % zero  # 4
        if which == 5:
            self.calls += self.numbers[3 + zero]  # 5
        if which == 6:
            self.calls += self.numbers[-4 + zero]  # 6
        if which == 7:
            self.numbers[3 + zero] = 1  # 7
        if which == 8:
            self.fraction = self.fractions[beyond]  # 8
        if which == 9:
            self.uses[beyond] += 1  # 9
        if which == 10:
            self.uses[zero - 1] = 1  # 10
        if which == 11:
            self.weights[beyond] = 0.5  # 11
        if which == 12:
            self.marks.add(beyond)  # 12
        if which == 13:
            self.marks.remove(zero)  # 13
        if which == 14:
            self.heap[beyond] = 1  # 14
        if which == 15:
            self.calls += self.heap[zero]  # 15
        if which == 16:
            self.calls += self.heap.lowest  # 16
        if which == 17:
            self.heap.remove(zero)  # 17
        if which == 18:
            self.orders[2 + zero].move_to_tail(zero)  # 18
        if which == 19:
            self.orders[0].remove(zero)  # 19
        if which == 20:
            self.calls += self.other.head  # 20
        if which == 21:
            self.order.move_to_tail(beyond)  # 21
        if which == 22:
            self.calls += self.draws.below(zero)  # 22
        if which == 23:
            self.memory.prefetch(-1 + zero, 1)  # 23
        if which == 24:
            self.memory.prefetch(2**62 + zero, 2**62 + zero)  # 24
        if which == 25:
            self.memory.evict(beyond)  # 25
        if which == 26:
            self.memory.advise(zero, 10**9 + zero, "far")  # 26
        if which == 27:
            self.memory.set_prefetch_threshold(102 + zero)  # 27
        if which == 28:
            self.calls += self.memory.is_resident(-1 + zero)  # 28
        if which == 29:
            self.calls += self.memory.is_served(beyond)  # 29
        if which == 30:
            self.order.remove(beyond - 1)  # 30
        if which == 31:
            assert zero == 1, "zero is one"  # 31
        if which == 32:
            self.calls += min(number for number in self.order if number < zero)  # 32
        if which == 33:
            self.calls += len(self.memory.faulted(-1 + zero))  # 33

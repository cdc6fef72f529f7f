"""Policies with defects. Each has its message in ``says``; the line ends with # here."""

from __future__ import annotations

from policies.subset import Base
from tidegate.policy import Column


class Broken(Base):
    """State for the others."""

    def start(self):
        self.uses, self.zero = Column(0), 0
        self.numbers, self.rounds = [1, 2], 0


class Raises(Broken):
    says = "raised in victim(): ValueError: it is Tuesday"

    def victim(self):
        if len(self.order) > 2:
            raise ValueError("it is Tuesday")  # here
        return self.order.head


class WrongRegion(Broken):
    says = "IndexError: region must be 0 to 39, got "

    def on_fault(self, region):
        self.uses[region + 40] += 1  # here
        super().on_fault(region)


class WrongIndex(Broken):
    says = "IndexError: list index out of range"

    def on_fault(self, region):
        super().on_fault(region)
        self.zero += self.numbers[region]  # here


class RemovesTwice(Broken):
    says = "KeyError: "

    def on_eviction(self, region):
        self.order.remove(region)
        self.order.remove(region)  # here


class DividesByZero(Broken):
    says = "ZeroDivisionError: integer division or modulo by zero"

    def victim(self):
        return self.order.head // self.zero  # here


class Overflows(Broken):
    says = "does not fit the 64 bits that compiled code has"

    def victim(self):
        self.rounds = self.rounds * 1_000_003 + 12345  # here
        return self.order.head


class OverflowsInPlace(Broken):
    says = "does not fit the 64 bits that compiled code has"

    def start(self):
        super().start()
        self.rounds = 1

    def on_fault(self, region):
        super().on_fault(region)
        self.rounds *= 1_000_003  # here


class ChangesWhileIterating(Broken):
    says = "RuntimeError: OrderedDict mutated during iteration"

    def on_eviction(self, region):
        super().on_eviction(region)
        for other in self.order:  # here
            self.order.move_to_tail(other)


class AnswersNothing(Broken):
    says = "answered victim() with None; expected the number of a resident region"

    def victim(self):
        pass

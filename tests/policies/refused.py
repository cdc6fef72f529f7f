"""Policies that cannot be compiled. Each has its reason in ``says``; the line ends with # here."""

from __future__ import annotations

import random

from policies.subset import Base
from tidegate.policy import Column, Marks, Order

TABLE = {1: 2}


class PlainSet(Base):
    says = "self.seen is a set, which compiled code cannot keep; Marks() is a set of regions"

    def start(self):
        self.seen = set()

    def on_fault(self, region):
        self.seen.add(region)  # here
        super().on_fault(region)


class PlainDict(Base):
    says = "self.count is a dict, which compiled code cannot keep; Column(default) holds a number"

    def start(self):
        self.count = {}

    def on_fault(self, region):
        self.count[region] = self.count.get(region, 0) + 1  # here
        super().on_fault(region)


class Nothing(Base):
    says = "self.last is None, which compiled code cannot keep; use -1 for none"

    def start(self):
        self.last = None

    def on_fault(self, region):
        self.last = region  # here
        super().on_fault(region)


class Text(Base):
    says = "self.mode is a str, which compiled code cannot keep; use a number"

    def start(self):
        self.mode = "a"

    def victim(self):
        return self.order.head if self.mode == "a" else self.order.tail  # here


class SetLater(Base):
    says = "self.when is not set in start(); set it there"

    def on_fault(self, region):
        self.when = region  # here
        super().on_fault(region)


class FractionForRegion(Base):
    says = "victim() must answer a region, not a fraction"

    def victim(self):  # here
        return self.order.head / 1 if len(self.order) > 1000 else self.order.head * 1.0


class BecomesFraction(Base):
    says = "self.score begins as a whole number and becomes a fraction; let it begin as 0.0"

    def start(self):
        self.score = 0

    def on_fault(self, region):
        self.score = 0.5 * self.score + region  # here
        super().on_fault(region)


class BecomesNumber(Base):
    says = "self.flag begins as True or False and becomes a number; let it begin as 0"

    def start(self):
        self.flag = False

    def on_fault(self, region):
        self.flag = region  # here
        super().on_fault(region)


class FractionInColumn(Base):
    says = "a Column of whole numbers cannot hold a fraction; let it begin as 0.0"

    def start(self):
        self.heat = Column(0)

    def on_fault(self, region):
        self.heat[region] = 0.5  # here
        super().on_fault(region)


class KeyFunction(Base):
    says = "functions within methods cannot be compiled; use a method"

    def start(self):
        self.count = Column(0)

    def victim(self):
        return min(self.order, key=lambda r: self.count[r])  # here


class Except(Base):
    says = "compiled code knows 'except Exception' alone; test before you act"

    def victim(self):
        try:
            return self.order.head
        except IndexError:  # here
            return 0


class PythonsRandom(Base):
    says = "self.rng is a Random, which compiled code cannot keep"

    def start(self):
        self.rng = random.Random(1)

    def victim(self):
        return self.order.head if self.rng.random() < 2 else 0  # here


class SetOfResident(Base):
    says = "iterate over sorted(self.resident)"

    def victim(self):
        for region in self.resident:  # here
            return region
        return 0


class LoopOverMarks(Base):
    says = "Marks have no order to iterate in; keep an Order too"

    def start(self):
        self.marks = Marks()

    def victim(self):
        for region in self.marks:  # here
            return region
        return self.order.head


class LargeConstant(Base):
    says = "11400714819323198485 does not fit the 64 bits that compiled code has"

    def victim(self):
        return self.order.head + 0x9E3779B97F4A7C15 - 11400714819323198485  # here


class ModuleVariable(Base):
    says = "victim uses TABLE, a dict of the module, which compiled code cannot; keep it on self"

    def victim(self):  # here
        return self.order.head + TABLE[1] - 2


class MadeLate(Base):
    says = "compiled code cannot use Order; make structures in start()"

    def victim(self):
        order = Order()  # here
        return self.order.head + len(order)


class UnknownMethod(Base):
    says = "an Order has no 'popitem' in compiled code"

    def victim(self):
        region, _ = self.order.popitem(last=False)  # here
        self.order.move_to_head(region)
        return region


class CallsItself(Base):
    says = "it calls itself; use a loop"

    def down(self, number):
        return number if number == 0 else self.down(number - 1)  # here

    def victim(self):
        return self.order.head + self.down(3)


class Walrus(Base):
    says = "':=' cannot be compiled; assign in a line of its own"

    def victim(self):
        return self.order.head if (region := self.order.tail) > 3 else region  # here


class Star(Base):
    says = "total takes '*' or '**'; compiled code knows plain arguments"

    def total(self, *numbers):  # here
        return sum(numbers)

    def victim(self):
        return self.order.head + self.total(0, 0)


class TwoNames(Base):
    says = "self.second is the same object as self.first"

    def start(self):
        self.first = self.second = Order()

    def on_fault(self, region):
        self.first.move_to_tail(region)
        self.second.move_to_tail(region)  # here
        super().on_fault(region)

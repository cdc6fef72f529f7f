"""A policy of your own: the example of the README."""

from itertools import islice

from tidegate.policy import EvictionPolicy, Option


class Lagged(EvictionPolicy):
    """Evict a recent region, but not the very last ones: they are still being used."""

    lag = Option(16, "regions at the tail that are left alone", least=0)

    def on_fault(self, region):
        self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        return next(islice(reversed(self.order), self.lag, None), self.order.head)

    def finished(self):
        assert set(self.order) == self.resident

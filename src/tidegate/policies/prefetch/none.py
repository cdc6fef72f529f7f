"""No prefetch."""

from __future__ import annotations

from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch


@prefetch("none")
class NoPrefetch(PrefetchPolicy):
    """Only pages that faulted migrate."""

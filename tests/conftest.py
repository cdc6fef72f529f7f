"""For all tests: hypothesis sets no deadlines, which on a busy machine say nothing of the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("tidegate", deadline=None)
settings.load_profile("tidegate")

"""Measured runs of real cards beside simulated ones, and machine files fitted to a card.

points/*.toml ──▶ Point ──▶ play ──▶ Row ──▶ Validation: ledger, picture, page
probe.cu ──▶ CSV ──▶ fit ──▶ a machine's file, with a source for each constant
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

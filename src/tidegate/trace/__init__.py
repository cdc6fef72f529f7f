"""Traces: the objects, launches, blocks and touches of a program, streamed or in a file.

Names are imported when they are first used: live memory and many commands need traces and no
files, and polars takes half a second to import.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

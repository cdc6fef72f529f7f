"""Tidegate: run programs larger than their fast memory.

    import tidegate
    run = tidegate.run("matmul(bytes=1GiB)", oversubscribe="50%", eviction="lru-ideal")
    run.summary, run.timeline, run.plot()

``__init__.pyi`` has the names. Each is imported when it is first used, so that starting is quick.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

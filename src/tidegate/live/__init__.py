"""Live memory: the simulator's policies on real arrays, by Linux's userfaultfd (docs/live.md).

Arena (your program) ──requests──▶ supervisor ──forks──▶ pager: engine + policies, mover
   │  arrays                       holds every                │
   └──────────── faults ───────────descriptor─────────────────┘
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

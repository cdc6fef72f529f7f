"""Live memory: the policies of the simulator on real arrays, by Linux's userfaultfd. See docs/live.md.

Arena (your program) ──control──▶ supervisor ──forks──▶ pager: engine + policies, mover
   │  arrays                       holds every                │
   └──────────── faults ───────────descriptor─────────────────┘
"""

from __future__ import annotations

from tidegate.live.arena import Arena as Arena

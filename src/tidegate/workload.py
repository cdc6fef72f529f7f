"""What the author of a workload needs.

from tidegate.workload import Launch, Workload, blocks_of

class Rows(Workload):
    def sizes(self):
        return {"a": 64 << 20}

    def launches(self, space):
        yield Launch("pass", [blocks_of(16, space["a"].pages, bytes=64)])
"""

from tidegate.options import Option
from tidegate.trace.build import blocks_of
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Copy, Launch, Object, Provenance
from tidegate.workloads.program import Workload

__all__ = ["Copy", "Geometry", "Launch", "Object", "Option", "Provenance", "Workload", "blocks_of"]

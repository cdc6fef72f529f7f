"""The fourteen applications of ObservUVM's Table II. Those of one shape share a module."""

from __future__ import annotations

from tidegate.workloads.suites import GB, Member

MACHINE = "rtx3090-pcie4"

_OBSERVUVM = """
    MM 10.1   GMM 12.0   SRK 9.6   SR2 8.3   HEL 7.9   2DC 18.0   GMV 23.6
    LU 12.0   BLK 10.0   SPM 8.0   AN 10.3   SN 19.8   BTR 5.0    BFS 2.1
"""


def _members() -> list[Member]:
    words, source = _OBSERVUVM.split(), "ObservUVM (ISCA'26), Table II"
    pairs = zip(words[::2], words[1::2], strict=True)
    return [Member(name, round(float(size) * GB), source) for name, size in pairs]


MEMBERS = _members()

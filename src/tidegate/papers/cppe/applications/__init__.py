"""The 23 applications of CPPE's Table II. Those of one shape share a module."""

from __future__ import annotations

from tidegate.workloads.suites import Member

MACHINE = "gpgpusim-28sm"

# The same reading of CPPE's MB: 2DC n = 4096 (128), HOT n = 1024 (12), SRD n = 2048 (96), HSD 512 ×
# 512 × 8 (24), PAT 100,000 × 100 (38.5) and KMN's 494,020 points (130) are the benchmarks' own
# sizes, and only as MiB do they match the table.
MB = 2**20

# By access type, the bytes of the benchmark's own problem that the table's megabytes round, where
# it is known.
_CPPE = {
    "I": {"HOT": 12 * MB, "LEU": 5_829_240, "2DC": 128 * MB, "3DC": round(127.5 * MB)},
    "II": {"BKP": 9_437_460, "PAT": 40_400_000, "DWT": 27 * MB}
    | {"KMN": 136_349_520, "SAD": 8_948_016},
    "III": {"NW": 33_587_208, "BFS": 38_999_880, "MVT": 67_174_400, "BIC": 67_174_400},
    "IV": {"SRD": 96 * MB, "HSD": 24 * MB, "MRQ": 5_267_456, "STN": 4 * MB},
    "V": {"HWL": 42_898_404, "SGM": 12_578_816, "HIS": round(13.2 * MB), "SPV": round(27.3 * MB)},
    "VI": {"B+T": 37_094_864, "HYB": 109_101_056},
}


def _members() -> list[Member]:
    source = "CPPE (IPDPS'20), Table II"
    return [
        Member(f"cppe-{name}", size, source, kind)
        for kind, applications in _CPPE.items()
        for name, size in applications.items()
    ]


MEMBERS = _members()

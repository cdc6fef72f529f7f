"""Suites: the applications a paper evaluates, at the paper's sizes.

>>> suite("observuvm", scale=1 / 8)[:2]
['MM(bytes=1355599053)', 'GMM(bytes=1610612736)']
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import TidegateError, UnknownName

# A reading: the papers write GB and mean GiB. Only so has Table II of ObservUVM round problems: BLK 2^29 options, GMM
# n = 32768, 2DC n = 49152 and MM n = 30000 come out at 10.0, 12.0, 18.0 and 10.1.
GB = 2**30

# The same reading of CPPE's MB: 2DC n = 4096 (128), HOT n = 1024 (12), SRD n = 2048 (96), HSD 512 × 512 × 8 (24), PAT
# 100,000 × 100 (38.5) and KMN's 494,020 points (130) are the benchmarks' own sizes, and only as MiB are they the table's.
MB = 2**20


@dataclass(frozen=True)
class Member:
    """One application: the name it is registered under, its footprint, and where in the paper that stands."""

    name: str
    bytes: int
    source: str
    kind: str = ""  # the paper's name for its way of using memory, if it has one


def _table(source: str, gigabytes: dict[str, float]) -> list[Member]:
    return [Member(name, round(size * GB), source) for name, size in gigabytes.items()]


def _cppe(applications: dict[str, tuple[str, int]]) -> list[Member]:
    source = "CPPE (IPDPS'20), Table II"
    return [Member(f"cppe-{name}", size, source, kind) for name, (kind, size) in applications.items()]


SUITES: dict[str, list[Member]] = {
    "observuvm": _table(
        "ObservUVM (ISCA'26), Table II",
        {
            "MM": 10.1, "GMM": 12.0, "SRK": 9.6, "SR2": 8.3, "HEL": 7.9, "2DC": 18.0, "GMV": 23.6, "LU": 12.0, "BLK": 10.0,
            "SPM": 8.0, "AN": 10.3, "SN": 19.8, "BTR": 5.0, "BFS": 2.1,
        },
    ),
    # The access type, and the bytes of the benchmark's own problem that the table's megabytes round, where it is known.
    "cppe": _cppe(
        {
            "HOT": ("I", 12 * MB), "LEU": ("I", 5_829_240), "2DC": ("I", 128 * MB), "3DC": ("I", round(127.5 * MB)),
            "BKP": ("II", 9_437_460), "PAT": ("II", 40_400_000), "DWT": ("II", 27 * MB), "KMN": ("II", 136_349_520),
            "SAD": ("II", 8_948_016), "NW": ("III", 33_587_208), "BFS": ("III", 38_999_880), "MVT": ("III", 67_174_400),
            "BIC": ("III", 67_174_400), "SRD": ("IV", 96 * MB), "HSD": ("IV", 24 * MB), "MRQ": ("IV", 5_267_456),
            "STN": ("IV", 4 * MB), "HWL": ("V", 42_898_404), "SGM": ("V", 12_578_816), "HIS": ("V", round(13.2 * MB)),
            "SPV": ("V", round(27.3 * MB)), "B+T": ("VI", 37_094_864), "HYB": ("VI", 109_101_056),
        }
    ),
}  # fmt: skip


def suite(name: str, scale: float = 1.0) -> list[str]:
    """The workloads of a suite, as specs; each at ``scale`` times the paper's size, which keeps its objects' ratios."""
    if not scale > 0:
        raise TidegateError(f"a scale of {scale} is none; expected something like 1 or 0.125")
    return [f"{member.name}(bytes={round(member.bytes * scale)})" for member in members(name)]


def members(name: str) -> list[Member]:
    """The applications of a suite, in the paper's order."""
    if name not in SUITES:
        raise UnknownName("suite", name, SUITES)
    return SUITES[name]


def published_bytes(name: str, application: str) -> int:
    """The footprint that a suite's paper gives for one of its applications.

    >>> published_bytes("observuvm", "2DC")
    19327352832
    """
    return next(member.bytes for member in members(name) if member.name == application)

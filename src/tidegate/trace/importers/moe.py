"""Routing logs of mixture-of-experts models: which experts each token used, layer by layer.

    {"token": 0, "layer": 3, "experts": [17, 4]}        JSON lines, or
    0 3 17 4                                            token, layer, then experts, as numbers

Each expert of each layer is an object of ``expert_bytes``; a token's use of a layer is one launch,
which reads its experts. Tokens with the same number are one batch: their experts are read together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import numpy as np

from tidegate import units
from tidegate.options import Option
from tidegate.trace.importers.importer import Allocation, Importer, RawLaunch, lines
from tidegate.trace.trace import Provenance

_STRIDE = 1 << 40  # addresses of one expert
_MOST = 1 << 16  # layers, and experts of a layer


class MoE(Importer):
    """Experts read by the tokens of a log."""

    name = "moe"
    title = "MoE routing log"
    provenance = Provenance.RECORDED
    notes = ("routing is recorded; sizes and the order of pages within an expert are assumed",)
    expert_bytes = Option(
        units.size("336MiB"),  # Mixtral 8x7B: three matrices of 4096 × 14336 in bf16
        "bytes of one expert's weights",
        parse=units.size,
        least=1,
    )

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        first = next((line for line in head.split(b"\n") if line.strip()), b"")
        if first.lstrip().startswith(b"{"):
            return b'"experts"' in first and b'"layer"' in first
        fields = first.split()
        return len(fields) >= 3 and all(f.isdigit() for f in fields) and path.suffix == ".moe"

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        for (_, layer), rows in groupby(self._rows(progress), key=lambda row: row[:2]):
            experts = list(dict.fromkeys(e for row in rows for e in row[2]))
            yield self._launch(layer, experts)

    def allocations(self) -> list[Allocation]:
        used = {(layer, e) for _, layer, es in self._rows(lambda read: None) for e in es}
        return [
            Allocation(f"layer {layer} expert {e}", _address(layer, e), self.expert_bytes)
            for layer, e in sorted(used)
        ]

    def _launch(self, layer: int, experts: list[int]) -> RawLaunch:
        """Each expert's weights are read by a row of blocks, a few pages each."""
        grain = 1 << 16
        count = -(-self.expert_bytes // grain)
        offsets = np.arange(count, dtype=np.uint64) * np.uint64(grain)
        size = np.minimum(grain, self.expert_bytes - np.arange(count, dtype=np.int64) * grain)
        n = len(experts)
        return RawLaunch(
            f"layer {layer}",
            np.arange(n * count, dtype=np.int64) // 4,
            np.concatenate([np.uint64(_address(layer, e)) + offsets for e in experts]),
            np.tile(size, n),
            np.zeros(n * count, np.uint8),
            np.zeros(n * count, np.int16),
        )

    def _rows(self, progress: Callable[[int], None]) -> Iterator[tuple[int, int, list[int]]]:
        for number, line in enumerate(lines(self.path, progress), 1):
            if line.strip():
                try:
                    token, layer, experts = _row(line)
                except (ValueError, KeyError, TypeError):
                    raise self.wrong(
                        f"line {number}", "token, layer and experts expected"
                    ) from None
                if not 0 <= layer < _MOST or not all(0 <= e < _MOST for e in experts):
                    raise self.wrong(f"line {number}", f"numbers must be 0 to {_MOST - 1}")
                if experts:
                    yield token, layer, experts


def _row(line: bytes) -> tuple[int, int, list[int]]:
    if line.lstrip().startswith(b"{"):
        row = json.loads(line)
        return int(row.get("token", 0)), int(row["layer"]), [int(e) for e in row["experts"]]
    token, layer, *experts = (int(f) for f in line.replace(b",", b" ").split())
    return token, layer, experts


def _address(layer: int, expert: int) -> int:
    return ((layer << 16 | expert) + 1) * _STRIDE


FORMAT = MoE

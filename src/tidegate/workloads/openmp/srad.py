"""srad: speckle-reducing diffusion of an image."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.openmp.offloaded import Offloaded, Stream, region
from tidegate.workloads.program import Space, workload

_SIDES = ("dn", "ds", "dw", "de")


@workload("openmp-srad")
class SRAD(Offloaded):
    """Diffusion of an image: examples/openmp/srad.c, five regions.

        extract, compress  image[i] = f(image[i])
        speckle            sums over image[i]
        coefficients       dn, ds, dw, de, c [i] = f(image[i] and its four neighbours)
        diffuse            image[i] += f(c[i], c south and east of it, dn, ds, dw, de [i])

    Neighbours are within a page or two of element i; the four index arrays are a row or a column
    long and stay where they are first touched.
    """

    program = "srad"
    fresh = frozenset((*_SIDES, "c"))
    bytes = Option(units.size("512MiB"), "size of all arrays together", parse=units.size, least=1)
    iterations = Option(
        100, "of the diffusion (as Rodinia runs it; the program's own default is 4)", least=1
    )

    def variables(self) -> dict[str, int]:
        side = (math.isqrt(16 + 6 * self.bytes) - 4) // 12  # 24 side² + 16 side are all
        return {"rows": side, "columns": side}

    def launches(self, space: Space) -> Iterator[Launch]:
        side = self.variables()["rows"]
        n, row = side * side, 4 / side
        change = (Stream("image", 4, write=True),)
        written = [Stream(name, 4, write=True) for name in (*_SIDES, "c")]
        index = [Stream(name, row) for name in ("north", "south", "west", "east")]
        read = [Stream(name, 4) for name in (*_SIDES, "c")]
        iteration = (
            region(space, "speckle", n, (Stream("image", 4),)),
            region(space, "coefficients", n, (Stream("image", 4), *index, *written)),
            region(
                space, "diffuse", n, (*read, Stream("south", row), Stream("east", row), *change)
            ),
        )
        yield region(space, "extract", n, change)
        for _ in range(self.iterations):
            yield from iteration
        yield region(space, "compress", n, change)

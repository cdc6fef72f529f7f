"""srad: speckle-reducing diffusion of an image."""

from __future__ import annotations

import math

from tidegate.options import Option
from tidegate.papers.hybrid.applications.offloaded import Offloaded
from tidegate.workloads.offloaded import StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload

_SIDES = ("dn", "ds", "dw", "de")


@workload("openmp-srad")
class SRAD(Offloaded):
    """Diffusion of an image: examples/openmp/srad.c, five kernel regions.

        extract, compress  image[i] = f(image[i])
        speckle            sums over image[i]
        coefficients       dn, ds, dw, de, c [i] = f(image[i] and its four neighbours)
        diffuse            image[i] += f(c[i], c south and east of it, dn, ds, dw, de [i])

    Neighbours are within a page or two of element i; the four index arrays are a row or a column
    long and stay resident.
    """

    program = "srad"
    unwritten = frozenset((*_SIDES, "c"))
    bytes = footprint("512MiB", "size of all arrays together")
    iterations = Option(
        100, "iterations of the diffusion (as Rodinia runs it; the program's default is 4)", least=1
    )

    def variables(self) -> dict[str, int]:
        side = (math.isqrt(16 + 6 * self.bytes) - 4) // 12  # 24 side² + 16 side are all
        return {"rows": side, "columns": side}

    def launches(self, space: Space) -> Launches:
        side = self.variables()["rows"]
        n, row = side * side, 4 / side
        image, change = StreamedBytes("image", 4), StreamedBytes("image", 4, write=True)
        written = [StreamedBytes(name, 4, write=True) for name in (*_SIDES, "c")]
        index = [StreamedBytes(name, row) for name in ("north", "south", "west", "east")]
        read = [StreamedBytes(name, 4) for name in (*_SIDES, "c")]
        read += [StreamedBytes("south", row), StreamedBytes("east", row)]
        iteration = (
            loop_launch(space, "speckle", n, image),
            loop_launch(space, "coefficients", n, image, *index, *written),
            loop_launch(space, "diffuse", n, *read, change),
        )
        yield loop_launch(space, "extract", n, change)
        for _ in range(self.iterations):
            yield from iteration
        yield loop_launch(space, "compress", n, change)

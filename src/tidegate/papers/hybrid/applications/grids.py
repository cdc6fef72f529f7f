"""hotspot, srad and cfd: every cell of a grid from its neighbours, step after step."""

from __future__ import annotations

import math

from tidegate.options import Option
from tidegate.papers.hybrid.applications import Offloaded
from tidegate.workloads.offloaded import StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload


@workload("openmp-hotspot")
class Hotspot(Offloaded):
    """The temperature of a chip: examples/openmp/hotspot.c, one region, launched once per step.

        single_iteration  result[i] = f(temp[i], temp[i ± 1], temp[i ± side], power[i])

    Rows above and below are within a page or two of element i, which the neighbouring blocks have
    just used.
    """

    program = "hotspot"
    unwritten = frozenset(("result",))
    bytes = footprint("512MiB", "size of the three arrays together")
    steps = Option(2, "launches (as Rodinia runs it; the program's own default is 8)", least=1)

    def variables(self) -> dict[str, int]:
        return {"side": math.isqrt(self.bytes // 12)}

    def launches(self, space: Space) -> Launches:
        elements = self.variables()["side"] ** 2
        source, result = "temp", "result"
        for _ in range(self.steps):
            accesses = (
                StreamedBytes(source, 4),
                StreamedBytes("power", 4),
                StreamedBytes(result, 4, write=True),
            )
            yield loop_launch(space, "single_iteration", elements, *accesses)
            source, result = result, source


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
            loop_launch(space, "diffuse", n, *read, image, change),
        )
        yield loop_launch(space, "extract", n, image, change)
        for _ in range(self.iterations):
            yield from iteration
        yield loop_launch(space, "compress", n, image, change)


_CELL = 132  # bytes of all arrays for one cell
_FAR = 20  # bytes of the far field


@workload("openmp-cfd")
class CFD(Offloaded):
    """Euler equations: examples/openmp/cfd.c, five kernel regions.

    Arrays of structures lie as planes, one per component.

        copy                 old_variables[i] = variables[i]
        compute_step_factor  step_factors[i] = f(variables[i + v n], areas[i])
        compute_flux         fluxes[i + v n] = f(variables[i + v n], neighbours[i + k n],
                             normals[i + (3 k + d) n], and the variables of the four neighbours)
        time_step            variables[i + v n] =
                                 old_variables[i + v n] + f(step_factors[i], fluxes[i + v n])

    The mesh is a square, so neighbours are a cell or a row away, which is within a page or two.
    """

    program = "cfd"
    unwritten = frozenset(("variables", "old_variables", "fluxes", "step_factors"))
    bytes = footprint("512MiB", "size of all arrays together")
    iterations = Option(
        100, "iterations of the outer loop (Rodinia has 2000; after a few, all are alike)", least=1
    )

    def variables(self) -> dict[str, int]:
        return {"side": math.isqrt(max(0, self.bytes - _FAR) // _CELL)}

    def launches(self, space: Space) -> Launches:
        n = self.variables()["side"] ** 2

        def planes(name: str, count: int, write: bool = False) -> list[StreamedBytes]:
            return [StreamedBytes(name, 4, 4 * n * k, write) for k in range(count)]

        read, written = planes("variables", 5), planes("variables", 5, write=True)
        far_field, areas, factors = (
            StreamedBytes("far_field", 20 / n),
            StreamedBytes("areas", 4),
            "step_factors",
        )
        flux = (*planes("neighbours", 4), *planes("normals", 12), *read, far_field)
        flux += tuple(planes("fluxes", 5, write=True))
        step = (
            StreamedBytes(factors, 4),
            *planes("old_variables", 5),
            *planes("fluxes", 5),
            *written,
        )
        copy = StreamedBytes("variables", 4), StreamedBytes("old_variables", 4, write=True)
        factor = (*read, areas, StreamedBytes(factors, 4, write=True))
        yield loop_launch(space, "initialize_variables", n, far_field, *written)
        before = (
            loop_launch(space, "copy", 5 * n, *copy),
            loop_launch(space, "compute_step_factor", n, *factor),
        )
        stage = (
            loop_launch(space, "compute_flux", n, *flux),
            loop_launch(space, "time_step", n, *step),
        )
        for _ in range(self.iterations):
            yield from (*before, *stage, *stage, *stage)

"""cfd: the Euler equations on unstructured cells."""

from __future__ import annotations

import math

from tidegate.options import Option
from tidegate.papers.hybrid.applications.offloaded import Offloaded
from tidegate.workloads.offloaded import StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload

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

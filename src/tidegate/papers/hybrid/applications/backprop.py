"""backprop: one training step of a three-layer network."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.hybrid.applications.offloaded import Offloaded
from tidegate.trace.trace import Launch
from tidegate.workloads.offloaded import StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload


@workload("openmp-backprop")
class Backprop(Offloaded):
    """Training of a network: examples/openmp/backprop.c, two regions, launched for either layer.

        layer_forward   result[j] = f(Σ_k weights[k * (to + 1) + j] * source[k])
        adjust_weights  weights, previous [k * (to + 1) + j] += f(delta[j], source[k])

    Rows of weights are read one after another. That is what threads of all units j do that walk
    down the rows k together, and what Rodinia's own kernel does, which has a thread for each
    weight; the paper's programs are as fast as Rodinia's.
    """

    program = "backprop"
    bytes = footprint("512MiB", "size of all arrays together")
    hidden = Option(
        16, "hidden units (Rodinia's, the program's default); tiny networks have fewer", least=1
    )
    out = Option(1, "output units (the program's own default)", least=1)

    def variables(self) -> dict[str, int]:
        hidden = max(1, min(self.hidden, self.bytes // 128))
        rest = 8 * (hidden + 1) + 8 * (self.out + 1) + 8 * (hidden + 1) * (self.out + 1)
        into = max(0, (self.bytes - rest) // (8 * (hidden + 1) + 4)) - 1  # -1: too small for any
        return {"in": into, "hidden": hidden, "out": self.out}

    def launches(self, space: Space) -> Launches:
        into, hidden, out = self.variables().values()
        name = "layer_forward"
        yield _forward(space, name, into, hidden, "input_units", "hidden_units", "input_weights")
        name = "layer_forward/2"
        yield _forward(space, name, hidden, out, "hidden_units", "output_units", "hidden_weights")
        yield _adjust(space, "adjust_weights", hidden, out, "hidden", "output_delta")
        yield _adjust(space, "adjust_weights/2", into, hidden, "input", "hidden_delta")


def _forward(
    space: Space, name: str, inputs: int, units: int, source: str, result: str, weights: str
) -> Launch:
    n = (inputs + 1) * (units + 1)
    written = StreamedBytes(result, 4 * (units + 1) / n, write=True)
    return loop_launch(
        space,
        name,
        n,
        StreamedBytes(weights, 4),
        StreamedBytes(source, 4 * (inputs + 1) / n),
        written,
    )


def _adjust(space: Space, name: str, inputs: int, units: int, layer: str, delta: str) -> Launch:
    n = (inputs + 1) * (units + 1)
    read = (
        StreamedBytes(delta, 4 * (units + 1) / n),
        StreamedBytes(f"{layer}_units", 4 * (inputs + 1) / n),
    )
    written = [
        StreamedBytes(f"{layer}_{array}", 4, write=True) for array in ("weights", "previous")
    ]
    return loop_launch(space, name, n, *read, *written)

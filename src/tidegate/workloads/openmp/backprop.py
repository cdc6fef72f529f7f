"""backprop: one training step of a three-layer network."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.openmp.offloaded import Offloaded, Stream, region
from tidegate.workloads.program import Space, workload


@workload("openmp-backprop")
class Backprop(Offloaded):
    """Training of a network: examples/openmp/backprop.c, two regions, each launched for either
    layer of weights.

        layer_forward   result[j] = f(Σ_k weights[k * (to + 1) + j] * source[k])
        adjust_weights  weights, previous [k * (to + 1) + j] += f(delta[j], source[k])

    Rows of weights are read one after another. That is what threads of all units j do that go down
    the rows k together, and what Rodinia's own kernel does, which has a thread for each weight; the
    paper's programs are as fast as Rodinia's.
    """

    program = "backprop"
    bytes = Option(units.size("512MiB"), "size of all arrays together", parse=units.size, least=1)
    hidden = Option(
        16,
        "hidden units (Rodinia's, and the program's own default); a tiny network has fewer",
        least=1,
    )
    out = Option(1, "output units (the program's own default)", least=1)

    def variables(self) -> dict[str, int]:
        hidden = max(1, min(self.hidden, self.bytes // 128))
        rest = 8 * (hidden + 1) + 8 * (self.out + 1) + 8 * (hidden + 1) * (self.out + 1)
        into = max(0, (self.bytes - rest) // (8 * (hidden + 1) + 4)) - 1  # -1: too small for any
        return {"in": into, "hidden": hidden, "out": self.out}

    def launches(self, space: Space) -> Iterator[Launch]:
        into, hidden, out = self.variables().values()
        yield _forward(
            space, "layer_forward", into, hidden, ("input_units", "hidden_units", "input_weights")
        )
        yield _forward(
            space,
            "layer_forward/2",
            hidden,
            out,
            ("hidden_units", "output_units", "hidden_weights"),
        )
        names = ("output_delta", "hidden_units", "hidden_weights", "hidden_previous")
        yield _adjust(space, "adjust_weights", hidden, out, names)
        names = ("hidden_delta", "input_units", "input_weights", "input_previous")
        yield _adjust(space, "adjust_weights/2", into, hidden, names)


def _forward(
    space: Space, name: str, inputs: int, units_: int, names: tuple[str, str, str]
) -> Launch:
    source, result, weights = names
    n = (inputs + 1) * (units_ + 1)
    return region(
        space,
        name,
        n,
        (
            Stream(weights, 4),
            Stream(source, 4 * (inputs + 1) / n),
            Stream(result, 4 * (units_ + 1) / n, write=True),
        ),
    )


def _adjust(
    space: Space, name: str, inputs: int, units_: int, names: tuple[str, str, str, str]
) -> Launch:
    delta, source, weights, previous = names
    n = (inputs + 1) * (units_ + 1)
    return region(
        space,
        name,
        n,
        (
            Stream(delta, 4 * (units_ + 1) / n),
            Stream(source, 4 * (inputs + 1) / n),
            Stream(weights, 4, write=True),
            Stream(previous, 4, write=True),
        ),
    )

"""Small programs for tests of advice, without PyTorch."""

from __future__ import annotations

from tidegate.advice import Subject
from tidegate.trace.ops import Ops, OpsBuilder
from tidegate.trace.trace import Provenance

MIB = 1 << 20


def decode(layers: int = 12, tokens: int = 4, size: int = 4 * MIB) -> Ops:
    """Weights that are read in a loop, and a small activation."""
    build = OpsBuilder()
    weights = [build.tensor(f"layers.{n}.weight", "weight", size, host=True) for n in range(layers)]
    x = build.tensor("x", "activation", MIB // 4)
    for token in range(tokens):
        for n, weight in enumerate(weights):
            build.launch("mm", f"layers.{n}", "decode", token, 1e6, "bfloat16")
            build.use(weight, 0, size)
            build.use(x, 0, MIB // 4, write=True)
    return build.finish("decode", Provenance.ASSUMED)


def train(layers: int = 10, size: int = 4 * MIB, flops: float = 4e10) -> Ops:
    """Activations that are made forwards and used backwards; each dies then."""
    build = OpsBuilder()
    before = build.tensor("input", "input", size, host=True)
    made = [before]
    for n in range(layers):
        after = build.tensor(f"layers.{n}/mm", "activation", size)
        build.launch("mm", f"layers.{n}", "forward", 0, flops, "bfloat16")
        build.use(made[-1], 0, size)
        build.use(after, 0, size, write=True)
        made.append(after)
    for n in range(layers, 0, -1):
        build.launch("mm", f"layers.{n - 1}", "backward", 0, flops, "bfloat16")
        build.use(made[n], 0, size)
        build.use(made[n - 1], 0, size)
        build.die(made[n])
    return build.finish("train", Provenance.ASSUMED)


def subject_of(ops: Ops) -> Subject:
    return Subject(ops.name, ops)

"""Small ops for tests, by hand and by hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tidegate.trace.ops import KINDS, Ops, OpsBuilder
from tidegate.trace.trace import Provenance

KIB, MIB = 1 << 10, 1 << 20


@st.composite
def small_ops(draw: Any, largest: int = 3 * MIB) -> Ops:
    """Ops of a few launches; tensors are born, used, and may die and be born again."""
    build = OpsBuilder()
    alive: list[int] = []
    dead: list[int] = []
    size = st.one_of(st.integers(1, 2000), st.integers(1, largest))
    used = False
    for step in range(draw(st.integers(1, 8))):
        for _ in range(draw(st.integers(0 if alive else 1, 3))):
            name, kind = draw(st.sampled_from("abc")), draw(st.sampled_from(KINDS))
            alive.append(build.tensor(name, kind, draw(size), draw(st.booleans())))
        if dead and draw(st.booleans()):
            build.be_born(dead[-1])
            alive.append(dead.pop())
        build.launch(draw(st.sampled_from(["mm", "add"])), "layer", "forward", step, step * 1e6)
        for _ in range(draw(st.integers(0 if used else 1, 4))):
            build.use(*draw(operands(build, draw(st.sampled_from(alive)))))
            used = True
        for tensor in draw(st.lists(st.sampled_from(alive), unique=True, max_size=len(alive))):
            build.die(tensor)
            alive.remove(tensor)
            dead.append(tensor)
    return build.finish("small", Provenance.ASSUMED, ("by hand",))


@st.composite
def operands(draw: Any, build: OpsBuilder, tensor: int) -> tuple[Any, ...]:
    """The arguments of ``use``: swept, in rows, or gathered."""
    size = build.sizes[tensor]
    low = draw(st.integers(0, size - 1))
    high = draw(st.integers(low + 1, size))
    used = draw(st.integers(1, high - low))
    row = draw(st.one_of(st.just(0), st.integers(1, used)))
    stride = draw(st.integers(row, high - low)) if row and draw(st.booleans()) else 0
    return tensor, low, high, used, draw(st.booleans()), row, stride, draw(st.integers(0, 2))


def chain(sizes: list[int], host: bool = True) -> Ops:
    """Each launch reads the tensor before and writes the next one; then the one before dies."""
    build = OpsBuilder()
    before = build.tensor("x0", "input", sizes[0], host)
    for n, size in enumerate(sizes[1:], 1):
        after = build.tensor(f"x{n}", "activation", size)
        build.launch(f"op{n}", "model", "forward", 0, 1000.0, "bfloat16")
        build.use(before, 0, sizes[n - 1])
        build.use(after, 0, size, write=True)
        build.die(before)
        before = after
    return build.finish("chain", Provenance.ASSUMED)

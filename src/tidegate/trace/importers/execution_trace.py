"""PyTorch execution traces: what ExecutionTraceObserver writes while a program runs (Chakra 1.1).

    {"id": 17, "name": "aten::addmm", "ctrl_deps": 8, "inputs": {"values": [[11, 12, 0, 128, 4,
     "cuda:0"], …], "shapes": …, "strides": …}, "outputs": …, "attrs": [… "op_schema" …]}

A tensor is its number, its storage's, offset and count of elements, their size, and the device. An
operator that calls others is a launch of its own only if they do not use all of its storages:
``linear`` calls ``addmm``, which uses all of them; ``addmm`` may call ``copy_``, which does not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tidegate.errors import TidegateError
from tidegate.trace.geometry import Geometry
from tidegate.trace.importers.importer import LONGEST_LINE, Importer, RawLaunch, open_packed
from tidegate.trace.ops import Ops, OpsBuilder, OpTrace
from tidegate.trace.ops.build import Span, make_span
from tidegate.trace.trace import Provenance

_ALLOCATE = ("aten::empty", "aten::new_empty", "aten::resize_", "aten::set_")
_OVERWRITE = ("zero_", "fill_", "copy_", "normal_", "uniform_", "bernoulli_", "random_")
_WEIGHTED = ("addmm", "mm", "convolution", "embedding", "layer_norm", "batch_norm", "linear")
_DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "signed char": "int8",
}
_MOST = 1 << 47  # bytes of a storage


class TraceOperand(NamedTuple):
    storage: int
    span: Span
    write: bool
    group: int
    on_gpu: bool


class Node(NamedTuple):
    """One operator."""

    id: int
    parent: int
    name: str
    operands: tuple[TraceOperand, ...]
    active: bool  # it writes something
    flops: float
    dtype: str


class ExecutionTrace(Importer):
    """Operators and their tensors, recorded while a program ran."""

    name = "execution-trace"
    title = "PyTorch execution trace"
    provenance = Provenance.RECORDED
    notes = (
        "a tensor lives from its first to its last use: the file has no deaths",
        "sizes of storages and kinds of tensors are inferred from how operators use them",
    )

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        return head.lstrip().startswith(b"{") and b'"schema"' in head and b"chakra" in head

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        raise TidegateError(f"{self.path} holds operators; use its ops")

    def trace(self, geometry: Geometry, progress: Callable[[int], None]) -> OpTrace:
        return OpTrace(self.ops(progress), geometry)

    def ops(self, progress: Callable[[int], None] = lambda read: None) -> Ops:
        """Return the operators of the file as ops."""
        with self.damage_named():
            nodes, phases = self._read(progress)
            kernels = _kernels(nodes)
            on_gpu = any(o.on_gpu for n in kernels for o in n.operands)
            return _build(self.path.name, kernels, phases, on_gpu, self.notes)

    def _read(self, progress: Callable[[int], None]) -> tuple[dict[int, Node], dict[int, str]]:
        """Return the operators by number, with the nearest operator above as parent, and phases."""
        nodes: dict[int, Node] = {}
        others: dict[int, int] = {}  # parents of what is no operator
        phases: dict[int, str] = {}
        for row in _rows(self.path, progress):
            number, name = int(row["id"]), str(row["name"])
            if name.startswith("autograd::engine"):
                phases[number] = "backward"
            elif name.startswith("Optimizer.step"):
                phases[number] = "optimiser"
            attributes = {a["name"]: a["value"] for a in row.get("attrs", ())}
            schema = str(attributes.get("op_schema", ""))
            parent = int(row["ctrl_deps"])
            if schema.startswith("aten::") or attributes.get("kernel_backend") == "triton":
                nodes[number] = _node(number, parent, name, schema, row)
            else:
                others[number] = parent
        return _with_parents(nodes, others, phases)


def _rows(path: Path, progress: Callable[[int], None]) -> Iterator[dict[str, Any]]:
    """Yield the objects of the list "nodes", one at a time: files may be larger than memory."""
    decoder, text, begun = json.JSONDecoder(), "", False
    with open_packed(path) as file:
        while chunk := file.read(1 << 20):
            progress(len(chunk))
            text += chunk.decode("utf-8", "replace")
            if not begun:
                at = text.find('"nodes"')
                if at < 0 or (at := text.find("[", at)) < 0:
                    if len(text) > 1 << 22:
                        raise ValueError("there are no nodes")
                    continue
                text, begun = text[at + 1 :], True
            done = 0
            while True:
                start = _skip(text, done)
                if start >= len(text):
                    done = start
                    break
                if text[start] == "]":
                    return
                try:
                    row, done = decoder.raw_decode(text, start)
                except json.JSONDecodeError:
                    if len(text) - start > LONGEST_LINE:
                        raise
                    break  # the rest of it is in the next chunk
                yield row
            text = text[done:]
    raise ValueError("it ends before its list of nodes does")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _with_parents(
    nodes: dict[int, Node], others: dict[int, int], phases: dict[int, str]
) -> tuple[dict[int, Node], dict[int, str]]:
    """Climb over what is no operator; a phase is that of the nearest node that has one."""
    found, of = {}, {}
    for number, node in nodes.items():
        parent, phase, climbed = node.parent, phases.get(node.parent), 0
        while parent in others and climbed < 10_000:
            phase = phase or phases.get(parent)
            parent, climbed = others[parent], climbed + 1
        found[number] = node._replace(parent=parent if parent in nodes else -1)
        if phase:
            of[number] = phase
    for number in sorted(found):  # parents have smaller numbers
        above = found[number].parent
        if number not in of and above in of:
            of[number] = of[above]
    return found, of


def _node(number: int, parent: int, name: str, schema: str, row: dict[str, Any]) -> Node:
    written = _written(schema)
    inputs, outputs = row["inputs"], row["outputs"]
    operands: list[TraceOperand] = []
    for position, (value, shape, stride) in enumerate(_triples(inputs)):
        write = written[position] if position < len(written) else not schema
        for tensor, group in _tensors(value, shape, stride):
            overwrites = write and name.removeprefix("aten::") in _OVERWRITE
            if not overwrites:
                operands.append(tensor._replace(group=group))
            if write:
                operands.append(tensor._replace(group=group, write=True))
    read = {o.storage for o in operands}
    fresh = [
        tensor._replace(group=group, write=True)
        for value, shape, stride in _triples(outputs)
        for tensor, group in _tensors(value, shape, stride)
        if tensor.storage not in read
    ]
    active = bool(fresh or any(o.write for o in operands)) and not name.startswith(_ALLOCATE)
    types = [*outputs.get("types", ()), *inputs.get("types", ())]
    dtype = next((t[7:-1] for t in map(str, types) if t.startswith("Tensor(")), "")
    shapes = [*inputs["shapes"], *outputs["shapes"]]
    return Node(
        number,
        parent,
        name.removeprefix("aten::"),
        (*operands, *fresh),
        active,
        _flops(name, inputs["shapes"], shapes[-1:] or [[]]),
        _DTYPES.get(dtype, dtype),
    )


def _triples(given: dict[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    values, shapes = given["values"], given["shapes"]
    yield from zip(values, shapes, given.get("strides") or [[]] * len(values), strict=False)


def _tensors(value: Any, shape: Any, stride: Any) -> Iterator[tuple[TraceOperand, int]]:
    """Yield the tensors of an argument, and their places in its list."""
    if not isinstance(value, list):
        return
    if len(value) == 6 and isinstance(value[5], str):
        _, storage, offset, count, size, device = value
        if count > 0 and size > 0 and storage:
            span = make_span(int(offset), list(map(int, shape)), list(map(int, stride)), int(size))
            if span is not None:
                if not 0 <= span.low < span.high <= _MOST:
                    raise ValueError(f"a tensor must lie within {_MOST} bytes, got {span.high}")
                yield TraceOperand(int(storage), span, False, 0, device.startswith("cuda")), 0
        return
    strides = (
        stride if isinstance(stride, list) and len(stride) == len(value) else [[]] * len(value)
    )
    if isinstance(shape, list) and len(shape) == len(value):
        for group, each in enumerate(zip(value, shape, strides, strict=True)):
            for operand, _ in _tensors(*each):
                yield operand, group


@lru_cache(maxsize=4096)
def _written(schema: str) -> tuple[bool, ...]:
    """Return for each argument of a schema whether it is written.

    >>> _written("aten::add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)")
    (True, False, False)
    """
    inside = schema.partition("(")[2].rpartition(") ->")[0]
    parts, depth, start = [], 0, 0
    for at, c in enumerate(inside):
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(inside[start:at])
            start = at + 1
    parts.append(inside[start:])
    return tuple("!" in p.partition("=")[0] for p in parts if p.strip() not in ("*", ""))


def _flops(name: str, shapes: Any, result: Any) -> float:
    """Return the floating-point operations of matrix products, convolutions and attention."""
    operator = name.removeprefix("aten::")
    try:
        if operator in ("mm", "bmm"):
            return 2.0 * math.prod(shapes[0]) * shapes[1][-1]
        if operator in ("addmm", "baddbmm"):
            return 2.0 * math.prod(shapes[1]) * shapes[2][-1]
        if operator in ("convolution", "_convolution", "cudnn_convolution"):
            return 2.0 * math.prod(result[0]) * math.prod(shapes[1][1:])
        if operator.startswith("_scaled_dot_product"):
            times = 2.5 if operator.endswith("backward") else 1.0
            q, k = (shapes[1], shapes[2]) if times > 1 else (shapes[0], shapes[1])
            return times * 4.0 * math.prod(q) * k[-2]
    except (IndexError, TypeError):
        pass
    return 0.0


def _kernels(nodes: dict[int, Node]) -> list[Node]:
    """Return the operators that launch kernels, in order."""
    below: dict[int, list[Node]] = {}
    roots: list[Node] = []
    for number in sorted(nodes, reverse=True):  # children have larger numbers than their parents
        node = nodes[number]
        own = below.pop(number, [])
        if node.active:
            covered = {o.storage for kernel in own for o in kernel.operands}
            if not {o.storage for o in node.operands} <= covered:
                own = [node]
        (below.setdefault(node.parent, []) if node.parent >= 0 else roots).extend(own)
    return sorted(roots, key=lambda node: node.id)


def _build(
    name: str, kernels: list[Node], phases: dict[int, str], on_gpu: bool, notes: tuple[str, ...]
) -> Ops:
    sizes: dict[int, int] = {}
    last: dict[int, int] = {}
    kinds: dict[int, str] = {}
    launches = []
    for node in kernels:
        own = [o for o in node.operands if o.on_gpu or not on_gpu]
        if own:
            launches.append((node, own))
    for n, (node, own) in enumerate(launches):
        for o in own:
            sizes[o.storage] = max(sizes.get(o.storage, 0), o.span.high)
            last[o.storage] = n
            if o.storage not in kinds:
                kinds[o.storage] = "activation" if o.write else "input"
            if kinds[o.storage] == "input" and any(w in node.name for w in _WEIGHTED):
                kinds[o.storage] = "weight"
    if not launches:
        raise ValueError("no operator uses a tensor")
    build, numbers = OpsBuilder(), {}

    def add(storage: int) -> None:
        kind = kinds[storage]
        numbers[storage] = build.tensor(
            f"storage {storage}", kind, sizes[storage], host=kind != "activation"
        )

    for storage, kind in kinds.items():  # what is first read was there before
        if kind != "activation":
            add(storage)
    for n, (node, own) in enumerate(launches):
        for o in own:
            if o.storage not in numbers:
                add(o.storage)
        build.launch(node.name, "", phases.get(node.id, "forward"), 0, node.flops, node.dtype)
        for o in own:
            build.use(numbers[o.storage], *o.span[:3], o.write, *o.span[3:], o.group)
        for storage in sorted({o.storage for o in own if last[o.storage] == n}):
            if kinds[storage] != "weight":
                build.die(numbers[storage])
    return build.finish(name, Provenance.RECORDED, notes)

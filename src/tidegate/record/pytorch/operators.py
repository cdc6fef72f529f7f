"""PyTorch's operators: what they write, what they gather, how much they compute."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from tidegate.trace.ops.build import Span, make_span

_ALLOCATE = {"empty", "empty_like", "empty_strided", "empty_permuted", "empty_quantized"}
_ALLOCATE |= {"new_empty", "new_empty_strided", "resize_", "set_"}
_IGNORED = {"lift_fresh", "lift_fresh_copy", "_local_scalar_dense", "record_stream", "_version"}
# these overwrite what they mutate without reading it
_OVERWRITE = {"zero_", "fill_", "copy_", "normal_", "uniform_", "bernoulli_", "random_"}
_OVERWRITE |= {"exponential_", "log_normal_", "cauchy_", "geometric_", "_foreach_zero_"}
_OVERWRITE |= {"_foreach_copy_", "trunc_normal_"}
_GATHER = {"embedding", "index_select", "gather", "index", "_unsafe_index", "take"}
_SCATTER = {"index_put_", "_index_put_impl_", "index_copy_", "scatter_", "index_add_"}
_SCATTER |= {"scatter_add_", "_unsafe_index_put", "index_fill_"}
# operators of the CPU, and what a GPU runs in their place
_ON_GPU = {
    "_scaled_dot_product_flash_attention_for_cpu": "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu_backward": (
        "_scaled_dot_product_flash_attention_backward"
    ),
    "native_batch_norm": "cudnn_batch_norm",
    "native_batch_norm_backward": "cudnn_batch_norm_backward",
}


class Operator(NamedTuple):
    """An operator's schema, as far as recording needs it."""

    name: str
    ignored: bool
    allocates: bool  # memory without a kernel
    writes: tuple[bool, ...]  # of each argument
    writes_named: dict[str, bool]
    mutates: bool
    reads_what_it_writes: bool
    gathers: bool
    scatters: bool
    lists: bool  # a foreach operator


def describe(function: Any) -> Operator:
    """Return what is known of an operator."""
    schema = function._schema
    name = schema.name.partition("::")[2]
    written = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
    return Operator(
        _ON_GPU.get(name, name),
        name in _IGNORED or function.namespace in ("prim", "profiler"),
        name in _ALLOCATE,
        tuple(written),
        {a.name: w for a, w in zip(schema.arguments, written, strict=True)},
        any(written),
        name not in _OVERWRITE and "out" not in schema.overload_name,
        name in _GATHER,
        name in _SCATTER,
        name.startswith("_foreach") or name.startswith("_fused_"),
    )


def span(tensor: Any) -> Span | None:
    """Return the bytes of its storage that a tensor uses, None if it has no elements."""
    count, size, offset = tensor.numel(), tensor.element_size(), tensor.storage_offset()
    if tensor.is_contiguous():
        low = offset * size
        return Span(low, low + count * size, count * size, 0, 0) if count else None
    return make_span(offset, tensor.shape, tensor.stride(), size)


def row_of(operator: str, tensor: Any, arguments: Any) -> int:
    """Return the bytes of one row that an operator gathers from or scatters to a tensor."""
    size = tensor.element_size()
    if operator in ("gather", "scatter_", "scatter_add_", "take") or tensor.dim() == 0:
        return int(size)
    if operator in ("index_select", "index_copy_", "index_add_", "index_fill_"):
        dimension = arguments[1] % tensor.dim()
    elif operator == "embedding":
        dimension = 0
    else:
        indices = arguments[1]
        dimension = max((d for d, index in enumerate(indices) if index is not None), default=0)
    return int(size * max(1, math.prod(tensor.shape[dimension + 1 :])))


def flops_of(function: Any, arguments: Any, named: Any, out: Any) -> float:
    """Return the floating-point operations of a call; 0 for operators that move more than they
    compute.
    """
    name = function._schema.name
    if name in ("aten::mm", "aten::bmm"):
        a, b = arguments[0].shape, arguments[1].shape
        return 2.0 * math.prod(a) * b[-1]
    if name in ("aten::addmm", "aten::baddbmm"):
        a, b = arguments[1].shape, arguments[2].shape
        return 2.0 * math.prod(a) * b[-1]
    packet = function.overloadpacket
    if packet in flop_registry:
        return float(flop_registry[packet](*arguments, **named, out_val=out))
    if name == "aten::_scaled_dot_product_flash_attention_for_cpu":
        return float(sdpa_flop_count(*(a.shape for a in arguments[:3])))
    if name == "aten::_scaled_dot_product_flash_attention_for_cpu_backward":
        return float(sdpa_backward_flop_count(*(a.shape for a in arguments[:4])))
    return 0.0

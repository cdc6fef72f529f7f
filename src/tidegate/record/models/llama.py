"""Llama: RMS norms, rotary positions, grouped queries, gated layers (Touvron et al., 2023; Llama
Team, 2024). Keys and values are in a cache of fixed length, as serving systems have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tidegate.record.models.ready_model import Decoder


@dataclass(frozen=True)
class Shape:
    """The sizes that are published for a model."""

    width: int
    layers: int
    heads: int
    groups: int  # of keys and values
    inner: int  # width of the gated layer
    words: int = 32_000
    experts: int = 0  # 0: no mixture of experts
    chosen: int = 0  # experts for each token


SIZES = {
    "7b": Shape(4096, 32, 32, 32, 11_008),
    "13b": Shape(5120, 40, 40, 40, 13_824),
    "70b": Shape(8192, 80, 64, 8, 28_672),
    "405b": Shape(16_384, 126, 128, 8, 53_248, 128_256),
}


class Attention(nn.Module):
    """Attention of grouped queries over cached keys and values."""

    def __init__(self, shape: Shape, batch: int, length: int):
        super().__init__()
        self.heads, self.groups = shape.heads, shape.groups
        self.head = shape.width // shape.heads
        self.query = nn.Linear(shape.width, shape.heads * self.head, bias=False)
        self.key = nn.Linear(shape.width, shape.groups * self.head, bias=False)
        self.value = nn.Linear(shape.width, shape.groups * self.head, bias=False)
        self.out = nn.Linear(shape.heads * self.head, shape.width, bias=False)
        for name in ("key_cache", "value_cache"):
            empty = torch.zeros(batch, shape.groups, length, self.head)
            self.register_buffer(name, empty, persistent=False)

    def forward(self, x: Any, where: Any, cos: Any, sin: Any) -> Any:
        batch, tokens, _ = x.shape
        q = self.query(x).view(batch, tokens, self.heads, self.head).transpose(1, 2)
        k = self.key(x).view(batch, tokens, self.groups, self.head).transpose(1, 2)
        v = self.value(x).view(batch, tokens, self.groups, self.head).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        self.key_cache.index_copy_(2, where, k)
        self.value_cache.index_copy_(2, where, v)
        if tokens == 1:  # a token attends to the cache, a prompt to itself
            k, v = self.key_cache, self.value_cache
        # the queries of a group as one long query: no copy of its keys and values is made
        q = q.reshape(batch, self.groups, -1, self.head)
        causal = tokens > 1 and self.heads == self.groups
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        mixed = mixed.reshape(batch, self.heads, tokens, self.head).transpose(1, 2)
        return self.out(mixed.reshape(batch, tokens, -1))


def rotate(x: Any, cos: Any, sin: Any) -> Any:
    """Return x with its positions rotated in."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Gated(nn.Module):
    """The gated layer."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Any) -> Any:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape, batch: int, length: int, inner: nn.Module):
        super().__init__()
        self.attention_norm, self.norm = nn.RMSNorm(shape.width), nn.RMSNorm(shape.width)
        self.attention, self.inner = Attention(shape, batch, length), inner

    def forward(self, x: Any, where: Any, cos: Any, sin: Any) -> Any:
        x = x + self.attention(self.attention_norm(x), where, cos, sin)
        return x + self.inner(self.norm(x))


class Transformer(nn.Module):
    """Embedding, layers, and the words' scores for the last token."""

    def __init__(self, shape: Shape, batch: int, length: int, layers: int, make_inner: Any):
        super().__init__()
        self.embedding = nn.Embedding(shape.words, shape.width)
        self.layers = nn.ModuleList(
            Layer(shape, batch, length, make_inner(shape, n)) for n in range(layers)
        )
        self.norm = nn.RMSNorm(shape.width)
        self.words = nn.Linear(shape.width, shape.words, bias=False)
        angles = torch.zeros(length, shape.width // shape.heads)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens: Any, where: Any) -> Any:
        x = self.embedding(tokens)
        cos, sin = self.cos[where], self.sin[where]
        for layer in self.layers:
            x = layer(x, where, cos, sin)
        return self.words(self.norm(x[:, -1:]))


class Llama(Decoder):
    """Llama in bf16: the prompt, then tokens one at a time."""

    sizes = SIZES

    def build(self) -> nn.Module:
        shape: Shape = self.configuration
        length = self.context + self.decode
        return Transformer(
            shape, self.batch, length, self.layers or shape.layers, lambda s, n: Gated(s)
        )

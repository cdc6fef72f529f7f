"""Transformers: Llama, Mixtral and GPT.

Llama (Touvron et al., 2023; Llama Team, 2024): RMS norms, rotary positions, grouped queries, gated
layers. Keys and values are in a cache of fixed length, as serving systems have it.

Mixtral (Jiang et al., arXiv 2401.04088): Llama's layers with a mixture of experts. A recording has
no values, so the experts of each token are drawn, with a fixed seed; every expert is as likely as
any other. Tokens of an expert are gathered, computed and added back, as the usual eager
implementation does.

GPT (Radford et al., 2019; Brown et al., 2020): a decoder trained with AdamW under autocast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tidegate.options import Option
from tidegate.record.models.ready_model import Decoder, Trained


@dataclass(frozen=True)
class LlamaShape:
    """The sizes that are published for a model."""

    width: int
    layers: int
    heads: int
    groups: int  # of keys and values
    inner: int  # width of the gated layer
    words: int = 32_000
    experts: int = 0  # 0: no mixture of experts
    chosen: int = 0  # experts for each token


LLAMA_SIZES = {
    "7b": LlamaShape(4096, 32, 32, 32, 11_008),
    "13b": LlamaShape(5120, 40, 40, 40, 13_824),
    "70b": LlamaShape(8192, 80, 64, 8, 28_672),
    "405b": LlamaShape(16_384, 126, 128, 8, 53_248, 128_256),
}


class GroupedAttention(nn.Module):
    """Attention of grouped queries over cached keys and values."""

    def __init__(self, shape: LlamaShape, batch: int, length: int):
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

    def __init__(self, shape: LlamaShape):
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Any) -> Any:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class LlamaLayer(nn.Module):
    def __init__(self, shape: LlamaShape, batch: int, length: int, inner: nn.Module):
        super().__init__()
        self.attention_norm, self.norm = nn.RMSNorm(shape.width), nn.RMSNorm(shape.width)
        self.attention, self.inner = GroupedAttention(shape, batch, length), inner

    def forward(self, x: Any, where: Any, cos: Any, sin: Any) -> Any:
        x = x + self.attention(self.attention_norm(x), where, cos, sin)
        return x + self.inner(self.norm(x))


class Transformer(nn.Module):
    """Embedding, layers, and the words' scores for the last token."""

    def __init__(self, shape: LlamaShape, batch: int, length: int, layers: int, make_inner: Any):
        super().__init__()
        self.embedding = nn.Embedding(shape.words, shape.width)
        self.layers = nn.ModuleList(
            LlamaLayer(shape, batch, length, make_inner(shape, n)) for n in range(layers)
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

    sizes = LLAMA_SIZES

    def build(self) -> nn.Module:
        shape: LlamaShape = self.configuration
        length = self.context + self.decode
        return Transformer(
            shape, self.batch, length, self.layers or shape.layers, lambda s, n: Gated(s)
        )


MIXTRAL_SIZES = {
    "8x7b": LlamaShape(4096, 32, 32, 8, 14_336, experts=8, chosen=2),
    "8x22b": LlamaShape(6144, 56, 48, 8, 16_384, 32_768, experts=8, chosen=2),
}


class Experts(nn.Module):
    """A router and experts, of which each token uses a few."""

    def __init__(self, shape: LlamaShape, seed: int):
        super().__init__()
        self.shape, self.draws = shape, np.random.default_rng(seed)
        self.router = nn.Linear(shape.width, shape.experts, bias=False)
        self.experts = nn.ModuleList(Gated(shape) for _ in range(shape.experts))

    def forward(self, x: Any) -> Any:
        shape, flat = self.shape, x.reshape(-1, x.shape[-1])
        weight, _ = torch.topk(torch.softmax(self.router(flat), dim=-1), shape.chosen)
        draws = self.draws.random((len(flat), shape.experts))
        chosen = np.argsort(draws, axis=1)[:, : shape.chosen]
        counts = np.bincount(chosen.ravel(), minlength=shape.experts)
        out = torch.zeros_like(flat)
        for expert, count in enumerate(counts.tolist()):
            if count:
                own = torch.empty(count, dtype=torch.long, device=x.device)
                made = self.experts[expert](flat[own]) * weight.reshape(-1)[:count, None]
                out.index_add_(0, own, made)
        return out.view_as(x)


class Mixtral(Decoder):
    """Mixtral in bf16: the prompt, then tokens one at a time, each with experts of its own."""

    sizes = MIXTRAL_SIZES
    seed = Option(0, "of the experts that tokens use")

    @property
    def steps_asked(self) -> int:
        return 0  # tokens use different experts: nothing is repeated

    def build(self) -> nn.Module:
        shape: LlamaShape = self.configuration
        length = self.context + self.decode

        def make_inner(shape: LlamaShape, layer: int) -> nn.Module:
            return Experts(shape, self.seed << 16 | layer)

        return Transformer(shape, self.batch, length, self.layers or shape.layers, make_inner)

    @property
    def tokens_recorded(self) -> int:
        return self.decode


class GPTShape(NamedTuple):
    width: int
    layers: int
    heads: int
    words: int = 50_257


GPT_SIZES = {
    "124m": GPTShape(768, 12, 12),
    "350m": GPTShape(1024, 24, 16),
    "774m": GPTShape(1280, 36, 20),
    "1.3b": GPTShape(2048, 24, 16),
    "2.7b": GPTShape(2560, 32, 32),
    "6.7b": GPTShape(4096, 32, 32),
    "13b": GPTShape(5120, 40, 40),
}


class GPTBlock(nn.Module):
    def __init__(self, shape: GPTShape):
        super().__init__()
        self.heads = shape.heads
        self.attention_norm, self.norm = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attention = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.up, self.down = (
            nn.Linear(shape.width, 4 * shape.width),
            nn.Linear(4 * shape.width, shape.width),
        )

    def forward(self, x: Any) -> Any:
        batch, tokens, width = x.shape
        parts = self.attention(self.attention_norm(x)).split(width, dim=2)
        q, k, v = (p.view(batch, tokens, self.heads, -1).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm(x)), approximate="tanh"))


class GPTModel(nn.Module):
    def __init__(self, shape: GPTShape, context: int, layers: int, checkpoint: bool):
        super().__init__()
        self.checkpoint = checkpoint
        self.embedding = nn.Embedding(shape.words, shape.width)
        self.positions = nn.Embedding(context, shape.width)
        self.blocks = nn.ModuleList(GPTBlock(shape) for _ in range(layers))
        self.norm = nn.LayerNorm(shape.width)
        self.words = nn.Linear(shape.width, shape.words, bias=False)
        self.words.weight = self.embedding.weight

    def forward(self, tokens: Any) -> Any:
        where = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embedding(tokens) + self.positions(where)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoint else block(x)
        return self.words(self.norm(x))


class GPT(Trained):
    """GPT trained with AdamW, under autocast in bf16."""

    sizes = GPT_SIZES
    batch = Option(8, "sequences at a time", least=1)
    context = Option(1024, "tokens of a sequence", least=1)
    layers = Option(0, "layers; 0: as many as the model has", least=0)
    checkpoint = Option(False, "keep no activations of a block, but compute them again")

    def build(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        shape: GPTShape = self.configuration
        model = GPTModel(shape, self.context, self.layers or shape.layers, self.checkpoint).cuda()
        return model, torch.optim.AdamW(model.parameters(), lr=1e-4)

    def loss(self, model: nn.Module) -> torch.Tensor:
        tokens = torch.zeros(self.batch, self.context, dtype=torch.long).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = model(tokens)
            return F.cross_entropy(scores.flatten(0, 1), tokens.flatten())

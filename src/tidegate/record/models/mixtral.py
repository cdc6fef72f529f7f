"""Mixtral: Llama's layers with a mixture of experts (Jiang et al., arXiv 2401.04088).

A recording has no values, so the experts of each token are drawn, with a fixed seed; every expert
is as likely as any other. Tokens of an expert are gathered, computed and added back, as the usual
eager implementation does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from tidegate.options import Option
from tidegate.record.models.llama import Gated, Shape, Transformer
from tidegate.record.models.ready_model import Decoder

SIZES = {
    "8x7b": Shape(4096, 32, 32, 8, 14_336, experts=8, chosen=2),
    "8x22b": Shape(6144, 56, 48, 8, 16_384, 32_768, experts=8, chosen=2),
}


class Experts(nn.Module):
    """A router and experts, of which each token uses a few."""

    def __init__(self, shape: Shape, seed: int):
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

    sizes = SIZES
    seed = Option(0, "of the experts that tokens use")

    @property
    def steps_asked(self) -> int:
        return 0  # tokens use different experts: nothing is repeated

    def build(self) -> nn.Module:
        shape: Shape = self.configuration
        length = self.context + self.decode

        def make_inner(shape: Shape, layer: int) -> nn.Module:
            return Experts(shape, self.seed << 16 | layer)

        return Transformer(shape, self.batch, length, self.layers or shape.layers, make_inner)

    @property
    def tokens_recorded(self) -> int:
        return self.decode

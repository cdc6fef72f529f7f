"""GPT: a decoder trained with AdamW under autocast (Radford et al., 2019; Brown et al., 2020)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tidegate.options import Option
from tidegate.record.models.ready_model import Trained


class Shape(NamedTuple):
    width: int
    layers: int
    heads: int
    words: int = 50_257


SIZES = {
    "124m": Shape(768, 12, 12),
    "350m": Shape(1024, 24, 16),
    "774m": Shape(1280, 36, 20),
    "1.3b": Shape(2048, 24, 16),
    "2.7b": Shape(2560, 32, 32),
    "6.7b": Shape(4096, 32, 32),
    "13b": Shape(5120, 40, 40),
}


class Block(nn.Module):
    def __init__(self, shape: Shape):
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


class Model(nn.Module):
    def __init__(self, shape: Shape, context: int, layers: int, checkpoint: bool):
        super().__init__()
        self.checkpoint = checkpoint
        self.embedding = nn.Embedding(shape.words, shape.width)
        self.positions = nn.Embedding(context, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(layers))
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

    sizes = SIZES
    batch = Option(8, "sequences at a time", least=1)
    context = Option(1024, "tokens of a sequence", least=1)
    layers = Option(0, "layers; 0: as many as the model has", least=0)
    checkpoint = Option(False, "keep no activations of a block, but compute them again")

    def build(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        shape: Shape = self.configuration
        model = Model(shape, self.context, self.layers or shape.layers, self.checkpoint).cuda()
        return model, torch.optim.AdamW(model.parameters(), lr=1e-4)

    def loss(self, model: nn.Module) -> torch.Tensor:
        tokens = torch.zeros(self.batch, self.context, dtype=torch.long).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            scores = model(tokens)
            return F.cross_entropy(scores.flatten(0, 1), tokens.flatten())

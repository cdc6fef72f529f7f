"""Networks of convolutions: ResNet and Stable Diffusion's U-Net.

ResNet-50 (He et al., 2016; the stride is in the 3 x 3 convolution) is trained with SGD in fp32.

The U-Net of Stable Diffusion 1 (Rombach et al., 2022) has convolutions, and attention to a text. A
step removes some noise from a batch of latent images.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tidegate.options import Option
from tidegate.record.models.ready_model import RECORDED, ReadyModel, Trained
from tidegate.record.pytorch.recording import Recording

RESNET_SIZES = {"50": (3, 4, 6, 3), "101": (3, 4, 23, 3), "152": (3, 8, 36, 3)}


class Bottleneck(nn.Module):
    def __init__(self, inward: int, width: int, stride: int):
        super().__init__()
        outward = 4 * width
        self.conv1, self.norm1 = nn.Conv2d(inward, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, outward, 1, bias=False), nn.BatchNorm2d(outward)
        self.shortcut = None
        if stride > 1 or inward != outward:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inward, outward, 1, stride, bias=False), nn.BatchNorm2d(outward)
            )

    def forward(self, x: Any) -> Any:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = F.relu(self.norm2(self.conv2(y)), inplace=True)
        y = self.norm3(self.conv3(y))
        y += x if self.shortcut is None else self.shortcut(x)
        return F.relu(y, inplace=True)


class ResNetModel(nn.Module):
    def __init__(self, depths: tuple[int, ...]):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        layers, inward = [], 64
        for stage, depth in enumerate(depths):
            for n in range(depth):
                layers.append(Bottleneck(inward, 64 << stage, 2 if stage and not n else 1))
                inward = 256 << stage
        self.layers = nn.Sequential(*layers)
        self.classes = nn.Linear(inward, 1000)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x)), inplace=True), 3, 2, 1)
        return self.classes(self.layers(x).mean((2, 3)))


class ResNet(Trained):
    """ResNet trained with SGD and momentum, in fp32."""

    sizes = RESNET_SIZES
    batch = Option(256, "images at a time", least=1)
    image = Option(224, "pixels of a side", least=32)

    def build(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        model = ResNetModel(self.configuration).cuda()
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def loss(self, model: nn.Module) -> torch.Tensor:
        images = torch.empty(self.batch, 3, self.image, self.image).cuda()
        classes = torch.zeros(self.batch, dtype=torch.long).cuda()
        return F.cross_entropy(model(images), classes)


UNET_SIZES = {"sd1": (320, (1, 2, 4, 4)), "small": (64, (1, 2))}
_TEXT, _TIME, _HEADS = 768, 1280, 8


class Residual(nn.Module):
    def __init__(self, inward: int, outward: int, time: int):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, inward), nn.Conv2d(inward, outward, 3, padding=1)
        self.norm2 = nn.GroupNorm(32, outward)
        self.conv2 = nn.Conv2d(outward, outward, 3, padding=1)
        self.time = nn.Linear(time, outward)
        self.shortcut = nn.Conv2d(inward, outward, 1) if inward != outward else nn.Identity()

    def forward(self, x: Any, time: Any) -> Any:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class SpatialAttention(nn.Module):
    def __init__(self, width: int, source: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.keys = nn.Linear(source, 2 * width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any, source: Any) -> Any:
        y = self.norm(x)
        k, v = self.keys(y if source is None else source).chunk(2, dim=-1)
        q, k, v = (
            t.view(t.shape[0], t.shape[1], _HEADS, -1).transpose(1, 2)
            for t in (self.query(y), k, v)
        )
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + self.out(mixed)


class Spatial(nn.Module):
    """Attention of all places of an image to each other and to the text, and a gated layer."""

    def __init__(self, width: int):
        super().__init__()
        self.norm, self.inward = nn.GroupNorm(32, width), nn.Conv2d(width, width, 1)
        self.self_attention, self.text_attention = (
            SpatialAttention(width, width),
            SpatialAttention(width, _TEXT),
        )
        self.inner_norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)
        self.outward = nn.Conv2d(width, width, 1)

    def forward(self, x: Any, text: Any) -> Any:
        batch, width, height, breadth = x.shape
        y = self.inward(self.norm(x)).flatten(2).transpose(1, 2)
        y = self.text_attention(self.self_attention(y, None), text)
        a, gate = self.up(self.inner_norm(y)).chunk(2, dim=-1)
        y = y + self.down(a * F.gelu(gate))
        return x + self.outward(y.transpose(1, 2).reshape(batch, width, height, breadth))


class UNetModel(nn.Module):
    def __init__(self, base: int, factors: tuple[int, ...]):
        super().__init__()
        widths = [base * f for f in factors]
        self.time1, self.time2 = nn.Linear(base, _TIME), nn.Linear(_TIME, _TIME)
        self.first = nn.Conv2d(4, base, 3, padding=1)
        self.down, kept, inward = nn.ModuleList(), [base], base
        for level, width in enumerate(widths):
            for _ in range(2):
                attend = level < len(widths) - 1
                self.down.append(_stage(inward, width, attend))
                kept.append(width)
                inward = width
            if level < len(widths) - 1:
                self.down.append(nn.Conv2d(width, width, 3, 2, 1))
                kept.append(width)
        self.middle = nn.ModuleList(
            [Residual(inward, inward, _TIME), Spatial(inward), Residual(inward, inward, _TIME)]
        )
        self.up = nn.ModuleList()
        for level, width in reversed(list(enumerate(widths))):
            for _ in range(3):
                self.up.append(_stage(inward + kept.pop(), width, level < len(widths) - 1))
                inward = width
            if level:
                self.up.append(nn.Conv2d(width, width, 3, padding=1))
        self.norm, self.last = nn.GroupNorm(32, base), nn.Conv2d(base, 4, 3, padding=1)
        self.base = base

    def forward(self, x: Any, text: Any) -> Any:
        time = torch.zeros(x.shape[0], self.base, dtype=x.dtype, device=x.device)
        time = self.time2(F.silu(self.time1(time)))
        x = self.first(x)
        kept = [x]
        for part in self.down:
            x = part(x) if isinstance(part, nn.Conv2d) else _run(part, x, time, text)
            kept.append(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, time), text), time)
        for part in self.up:
            if isinstance(part, nn.Conv2d):
                x = part(F.interpolate(x, scale_factor=2.0))
            else:
                x = _run(part, torch.cat([x, kept.pop()], dim=1), time, text)
        return self.last(F.silu(self.norm(x)))


def _stage(inward: int, outward: int, attend: bool) -> nn.ModuleList:
    parts: list[nn.Module] = [Residual(inward, outward, _TIME)]
    return nn.ModuleList([*parts, Spatial(outward)] if attend else parts)


def _run(stage: Any, x: Any, time: Any, text: Any) -> Any:
    x = stage[0](x, time)
    return stage[1](x, text) if len(stage) > 1 else x


class UNet(ReadyModel):
    """The U-Net of Stable Diffusion 1 in fp16: steps that remove noise."""

    sizes = UNET_SIZES
    batch = Option(2, "latent images at a time; guidance needs two for each image", least=1)
    image = Option(512, "pixels of a side", least=64)
    steps = Option(20, "steps that remove noise", least=1)

    @property
    def steps_asked(self) -> int:
        return self.steps

    def run(self, recording: Recording) -> None:
        with torch.no_grad():
            model = UNetModel(*self.configuration).half().cuda().eval()
            side = self.image // 8
            x = torch.zeros(self.batch, 4, side, side, dtype=torch.float16, device="cuda")
            text = torch.zeros(self.batch, 77, _TEXT, dtype=torch.float16, device="cuda")
            for _ in range(min(self.steps, RECORDED)):
                x = x - 0.1 * model(x, text)

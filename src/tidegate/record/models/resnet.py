"""ResNet-50, trained with SGD in fp32 (He et al., 2016; the stride is in the 3 x 3 convolution)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tidegate.options import Option
from tidegate.record.models.ready_model import Trained

SIZES = {"50": (3, 4, 6, 3), "101": (3, 4, 23, 3), "152": (3, 8, 36, 3)}


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


class Model(nn.Module):
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

    sizes = SIZES
    batch = Option(256, "images at a time", least=1)
    image = Option(224, "pixels of a side", least=32)

    def build(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        model = Model(self.configuration).cuda()
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def loss(self, model: nn.Module) -> torch.Tensor:
        images = torch.empty(self.batch, 3, self.image, self.image).cuda()
        classes = torch.zeros(self.batch, dtype=torch.long).cuda()
        return F.cross_entropy(model(images), classes)

"""Ready models: published architectures, made from their configurations, without weights.

>>> from tidegate.record.models import model_names
>>> model_names()[:2]
['gpt-1.3b', 'gpt-124m']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidegate.errors import UnknownName
from tidegate.record.models.convolutions import ResNet, UNet
from tidegate.record.models.ready_model import ReadyModel
from tidegate.record.models.transformers import GPT, Llama, Mixtral
from tidegate.trace.ops.ops import Ops

FAMILIES: dict[str, type[ReadyModel]] = {
    "llama-": Llama,
    "gpt-": GPT,
    "mixtral-": Mixtral,
    "resnet": ResNet,
    "unet-": UNet,
}


def model_names() -> list[str]:
    """Return the names of all models."""
    return sorted(family + size for family, cls in FAMILIES.items() for size in cls.sizes)


def find_model(name: str) -> tuple[type[ReadyModel], Any]:
    """Return a model's class and configuration by its name, such as llama-7b."""
    for family, cls in FAMILIES.items():
        size = name.lower().removeprefix(family)
        if name.lower().startswith(family) and size in cls.sizes:
            return cls, cls.sizes[size]
    raise UnknownName("model", name, model_names())


def record_model(
    name: str, progress: Callable[[int], None] = lambda launches: None, **options: Any
) -> Ops:
    """Return the ops of a run of a model; options are those of its class."""
    cls, configuration = find_model(name)
    return cls(name.lower(), configuration, **options).record(progress)

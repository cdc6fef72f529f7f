"""ReadyModel: what a family of models provides, and the two ways in which models run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch

from tidegate.options import Configurable, Option
from tidegate.record.pytorch.recording import Recording
from tidegate.trace.ops.ops import Ops
from tidegate.trace.ops.replicate import replicate

RECORDED = 3  # steps: the first often does more, and the next two show that they are steady


class ReadyModel(Configurable, ABC):
    """A model made from its configuration. Its options are a run's: batch, context, steps …"""

    sizes: ClassVar[dict[str, Any]]  # by the name behind the family's: configurations

    def __init__(self, name: str, configuration: Any, **options: Any):
        self.name = name
        super().__init__(**options)
        self.configuration = configuration

    @abstractmethod
    def run(self, recording: Recording) -> None:
        """Build the model and run it, while ``recording`` records."""

    @property
    @abstractmethod
    def steps_asked(self) -> int:
        """The steps that the ops shall have, with those that are repeated."""

    def record(self, progress: Callable[[int], None]) -> Ops:
        """Return the ops of a run: recorded steps, and repetitions of the last one."""
        recording = Recording(self.name, progress=progress)
        with recording:
            self.run(recording)
        ops = recording.ops()
        recorded = int(ops.launches["step"].max()) + 1  # type: ignore[arg-type]
        return replicate(ops, self.steps_asked) if self.steps_asked > recorded else ops


class Decoder(ReadyModel):
    """A language model that reads a prompt and then makes tokens, one at a time."""

    batch = Option(1, "sequences at a time", least=1)
    context = Option(2048, "tokens of the prompt", least=1)
    decode = Option(32, "tokens that are made after the prompt", least=0)
    layers = Option(0, "layers; 0: as many as the model has", least=0)

    @property
    def steps_asked(self) -> int:
        return 1 + self.decode

    @property
    def tokens_recorded(self) -> int:
        """The tokens that are recorded; the others repeat the last one."""
        return min(self.decode, RECORDED)

    @abstractmethod
    def build(self) -> torch.nn.Module:
        """Return the model, with caches for ``context + decode`` tokens."""

    def run(self, recording: Recording) -> None:
        with torch.no_grad():
            model = self.build().to(torch.bfloat16).cuda().eval()
            with recording.phase("prefill"):
                token = torch.zeros(self.batch, 1, dtype=torch.long, device="cuda")
                here = torch.zeros(1, dtype=torch.long, device="cuda")
                where = torch.arange(self.context, device="cuda")
                model(torch.zeros(self.batch, self.context, dtype=torch.long, device="cuda"), where)
            for _ in range(self.tokens_recorded):
                with recording.phase("decode"):
                    model(token, here)


class Trained(ReadyModel):
    """A model that is trained for some steps."""

    steps = Option(3, "training steps", least=1)

    @property
    def steps_asked(self) -> int:
        return self.steps

    @abstractmethod
    def build(self) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        """Return the model on the GPU, and its optimiser."""

    @abstractmethod
    def loss(self, model: torch.nn.Module) -> torch.Tensor:
        """Return the loss of one batch."""

    def run(self, recording: Recording) -> None:
        model, optimiser = self.build()
        for _ in range(min(self.steps, RECORDED)):
            self.loss(model).backward()
            optimiser.step()
            optimiser.zero_grad()

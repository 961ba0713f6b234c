"""From the parts to the bill: FLOPs of training and decoding, memory, and time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from regard.models.build import build
from regard.plan.models import model_parts
from regard.plan.part import Load, Part
from regard.train.optimise import AdamW, Muon, sorted_parameters

TOKENS_A_PARAMETER = 20  # of training, where nobody says how many (Hoffmann 2022)


@dataclass(frozen=True, eq=False)
class Plan:
    """What a model costs under a load, for a training of so many target tokens."""

    name: str
    parts: Part
    load: Load
    tokens: float
    tokens_from: str
    optimiser: Any = field(default_factory=AdamW)
    average: bool = False
    matrices: int = 0
    """Parameters that Muon moves; AdamW moves the rest."""

    @property
    def parameters(self) -> int:
        return self.parts.size

    @property
    def forward(self) -> float:
        """FLOPs of one forward pass for each target token."""
        return self.parts.forward / (self.load.batch * self.load.target)

    @property
    def training(self) -> float:
        """Three times the forward pass: the backward pass takes two gradients of every product."""
        return 3 * self.forward * self.tokens

    @property
    def training_maps(self) -> float:
        """6 N for each token, without what attention does between positions."""
        return 3 * self.parts.total("maps") / (self.load.batch * self.load.target) * self.tokens

    @property
    def step(self) -> float:
        """FLOPs of one more token, when `target` of them stand in the cache."""
        return self.parts.total("step")

    @property
    def once(self) -> float:
        """FLOPs for each source before the first token is written: the encoder, and the decoder's keys and values of it."""
        encoders = [part for part in self.parts.parts[2].parts if not part.total("step")]
        return sum(part.forward for part in encoders) / self.load.batch + self.parts.total("once")

    def memory(self) -> dict[str, float]:
        """Bytes, by what they are for. Parameters, gradients and moments are fp32 whatever the products are taken in."""
        size, logits = self.parameters, self.parts.parts[-1]
        moments = 8 * size
        if isinstance(self.optimiser, Muon):
            moments = 4 * self.matrices + 8 * (size - self.matrices)
        rows = self.load.batch * self.load.target
        found = {
            "weights": 4.0 * size,
            "gradients": 4.0 * size,
            "optimiser": moments + (4.0 * size if self.average else 0.0),
            "activations": self.parts.total("kept"),
            "logits": scored(logits) * rows * (4 + (2 if self.load.width == 2 else 0)),
        }
        return {
            **found,
            "training": sum(found.values()),
            "kv_cache": self.load.batch * self.parts.total("cache"),
            "inference": self.load.width * size + self.load.batch * self.parts.total("cache"),
        }


def scored(output: Part) -> int:
    """How many numbers leave the output for each token."""
    return int(output.shape.rstrip(")").rpartition(",")[2]) if output.shape else 0


def plan(
    config: Any,
    load: Load,
    *,
    name: str = "",
    tokens: float = 0.0,
    tokens_from: str = "",
    tokenisation: str = "",
    optimiser: AdamW | Muon | None = None,
    average: bool = False,
) -> Plan:
    """The plan of a model's configuration. The formulas are held against the model itself, built without memory."""
    parts = model_parts(config, load, tokenisation=tokenisation)
    built = on_meta(config)
    real = sum(parameter.numel() for parameter in built.parameters())
    assert real == parts.size, f"the formulas give {parts.size:,} parameters, the model has {real:,}"
    matrices = sum(parameter.numel() for parameter in sorted_parameters(built)["matrix"].values())
    if not tokens:
        tokens, tokens_from = TOKENS_A_PARAMETER * parts.size, f"{TOKENS_A_PARAMETER} a parameter, as nobody says how many"
    return Plan(
        name,
        parts,
        load,
        tokens=tokens,
        tokens_from=tokens_from,
        optimiser=optimiser or AdamW(),
        average=average,
        matrices=matrices,
    )


def on_meta(config: Any) -> torch.nn.Module:
    """The model with its shapes, but without its numbers."""
    with torch.device("meta"):
        return build(config)

"""The sizes of a Chessformer, as its file states them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """The field `architecture.model` of the metadata, with the same defaults as in the trainer's configuration."""

    layers: int
    width: int
    heads: int
    feed_forward: int
    position: dict[str, Any]
    norm: str = "rms"
    embedding: dict[str, Any] = field(default_factory=lambda: {"kind": "token"})
    attacks: bool = False
    attack_bias: bool = False
    elo: bool = False
    value_features: int = 32
    value_hidden: int = 128
    buckets: int = 32
    soft_policy: bool = True

    @staticmethod
    def of(model: dict[str, Any]) -> Sizes:
        """Returns the sizes that the metadata state."""
        known = {field.name for field in dataclasses.fields(Sizes)}
        # Earlier versions wrote the field of a head that was never trained.
        given = {name: value for name, value in model.items() if name != "optimistic_policy"}
        if unknown := given.keys() - known:
            raise ValueError(f"the architecture has an unknown field {min(unknown)!r}")
        return Sizes(**given)

    @property
    def head_width(self) -> int:
        """The width of one attention head."""
        return self.width // self.heads

    @property
    def residual_gain(self) -> float:
        """The factor of a block's output before the residual (DeepNorm: 1/α for N layers, α = (2N)^¼)."""
        return float((2 * self.layers) ** -0.25)

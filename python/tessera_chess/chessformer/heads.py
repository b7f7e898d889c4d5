"""The heads for the policy, values and moves left. All read tokens [B, 64, width]."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..moves import PROMOTIONS, entries
from .sizes import Sizes

# Features per square that the moves-left head reads, and plies per unit of its last layer.
_MOVES_LEFT_FEATURES = 8
_MOVES_LEFT_SCALE = 20


class PolicyHead(nn.Module):
    """Attention from a move's origin square to its target square."""

    gather: Tensor

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.query = nn.Linear(sizes.width, sizes.width)
        self.key = nn.Linear(sizes.width, sizes.width)
        self.promotion = nn.Linear(sizes.width, len(PROMOTIONS), bias=False)
        # The 64 · 64 pairs of squares come first, and then 8 · 8 · 3 promotions.
        places = [
            origin * 64 + target if kind is None
            else 64 * 64 + (origin % 8 * 8 + target % 8) * len(PROMOTIONS) + PROMOTIONS.index(kind)
            for origin, target, kind in entries()
        ]
        self.register_buffer("gather", torch.tensor(places), persistent=False)

    def forward(self, embedded: Tensor) -> Tensor:
        """Returns logits [B, 1858]."""
        query, key = self.query(embedded), self.key(embedded)
        pairs = query @ key.transpose(1, 2) * embedded.shape[2] ** -0.5
        offsets = self.promotion(key[:, 56:])
        promotions = pairs[:, 48:56, 56:, None] + offsets[:, None]
        return torch.cat([pairs.flatten(1), promotions.flatten(1)], 1)[:, self.gather]


class Policy(nn.Module):
    """The policy heads. The first one computes the output `policy`."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Linear(sizes.width, sizes.width)
        self.vanilla = PolicyHead(sizes)
        # Trained, but not part of the outputs.
        self.soft = PolicyHead(sizes) if sizes.soft_policy else None

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.vanilla(nn.functional.mish(self.embedding(tokens)))
        return logits


class Summary(nn.Module):
    """The layers with which a head summarises the board as one vector."""

    def __init__(self, sizes: Sizes, features: int) -> None:
        super().__init__()
        self.squares = nn.Linear(sizes.width, features)
        self.hidden = nn.Linear(64 * features, sizes.value_hidden)

    def summarise(self, tokens: Tensor) -> Tensor:
        """Returns the vectors [B, hidden]."""
        squares = nn.functional.mish(self.squares(tokens)).flatten(1)
        return nn.functional.mish(self.hidden(squares))


class ResultHead(Summary):
    """The head for win, draw and loss."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes, sizes.value_features)
        self.wdl = nn.Linear(sizes.value_hidden, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        """Returns logits [B, 3]."""
        logits: Tensor = self.wdl(self.summarise(tokens))
        return logits


class RewardHead(Summary):
    """A head for a value and for its expected squared error."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes, sizes.value_features)
        self.scalar = nn.Linear(sizes.value_hidden, 1)
        # Trained, but not part of the outputs.
        self.categorical = nn.Linear(sizes.value_hidden, sizes.buckets)
        self.error = nn.Linear(sizes.value_hidden, 1)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the value and the error, [B] each."""
        summary = self.summarise(tokens)
        return self.scalar(summary).squeeze(1).tanh(), self.error(summary).squeeze(1).sigmoid()


class Value(nn.Module):
    """The heads for the result, for `q` and for the short-term value `st`."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.result = ResultHead(sizes)
        self.q = RewardHead(sizes)
        self.short_term = RewardHead(sizes)

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        """Returns the outputs by name."""
        outputs = {"wdl": self.result(tokens)}
        for name, head in (("q", self.q), ("st", self.short_term)):
            outputs[name], outputs[f"{name}_error"] = head(tokens)
        return outputs


class MovesLeft(Summary):
    """The head for the plies to the end of the game."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes, _MOVES_LEFT_FEATURES)
        self.plies = nn.Linear(sizes.value_hidden, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Returns the plies, [B], at least 0."""
        plies = self.plies(self.summarise(tokens)).squeeze(1)
        return nn.functional.softplus(plies) * _MOVES_LEFT_SCALE

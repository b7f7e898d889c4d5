"""The embedding of planes as tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from . import attacks
from .blocks import FeedForward
from .sizes import Sizes

_PLANES = 112
# The rating that corresponds to the strong vector. Higher ones are clamped.
_STRONGEST = 5000


class Player(nn.Module):
    """The vectors of a weak player and of a strong one, between which a rating interpolates, and of an unknown one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weak, self.strong, self.unknown = (nn.Parameter(torch.zeros(width)) for _ in range(3))

    def forward(self, rating: Tensor) -> Tensor:
        """Returns the vectors [B, width] of ratings [B], 0 if unknown."""
        share = (rating.clamp(0, _STRONGEST).to(self.weak) / _STRONGEST)[:, None]
        return torch.where(rating[:, None] > 0, self.weak + share * (self.strong - self.weak), self.unknown)


class RatingEmbedding(nn.Module):
    """The vectors that both players' ratings add to every token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mover, self.opponent = Player(width), Player(width)

    def forward(self, ratings: Tensor) -> Tensor:
        vectors: Tensor = self.mover(ratings[:, 0]) + self.opponent(ratings[:, 1])
        return vectors[:, None]


class Embedding(nn.Module):
    """Embeds features [B, 64, 112], with what the rules add to them, as tokens [B, 64, width]."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.width
        is_global = sizes.embedding["kind"] == "global"
        extra = sizes.embedding["board"] if is_global else 0
        self.board = nn.Linear(64 * attacks.PIECES, 64 * extra) if is_global else None
        self.project = nn.Linear(_PLANES + extra, width)
        self.attacks = nn.Linear(attacks.FEATURES, width, bias=False) if sizes.attacks else None
        self.ratings = RatingEmbedding(width) if sizes.elo else None
        self.multiply = nn.Parameter(torch.ones(64, width))
        self.add = nn.Parameter(torch.zeros(64, width))
        self.feed_forward = FeedForward(sizes, sizes.embedding["feed_forward"]) if is_global else None

    def forward(self, features: Tensor, attackers: Tensor, ratings: Tensor) -> Tensor:
        """`attackers` are the attack features [B, 64, 22]; `ratings` [B, 2] are the mover's and the opponent's."""
        tokens = features
        if self.board is not None:
            board = self.board(features[:, :, : attacks.PIECES].flatten(1))
            tokens = torch.cat([features, board.view(len(board), 64, board.shape[1] // 64)], 2)
        tokens = self.project(tokens)
        if self.attacks is not None:
            tokens = tokens + self.attacks(attackers)
        if self.ratings is not None:
            tokens = tokens + self.ratings(ratings)
        placed: Tensor = tokens * self.multiply + self.add
        if self.feed_forward is None:
            return placed
        widened: Tensor = self.feed_forward(placed)
        return widened

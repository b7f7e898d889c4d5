"""The norm and the feed-forward block of the layers."""

from __future__ import annotations

from torch import Tensor, nn

from .sizes import Sizes


def norm(sizes: Sizes) -> nn.Module:
    """Returns the norm after a residual. Lc0 has the same epsilons."""
    epsilon = 1e-3 if sizes.embedding["kind"] == "global" else 1e-6
    if sizes.norm == "layer":
        return nn.LayerNorm(sizes.width, eps=epsilon)
    return nn.RMSNorm(sizes.width, eps=epsilon)


class FeedForward(nn.Module):
    """A block that adds a feed-forward network to tokens [B, 64, width] and normalises the sum."""

    def __init__(self, sizes: Sizes, hidden: int) -> None:
        super().__init__()
        self.widen = nn.Linear(sizes.width, hidden)
        self.hidden = nn.Mish()
        """For hooks: its output is the hidden units, [B, 64, hidden]."""
        self.narrow = nn.Linear(hidden, sizes.width)
        self.norm = norm(sizes)
        self.residual_gain = sizes.residual_gain

    def forward(self, tokens: Tensor) -> Tensor:
        output = self.narrow(self.hidden(self.widen(tokens)))
        normalised: Tensor = self.norm(tokens + output * self.residual_gain)
        return normalised

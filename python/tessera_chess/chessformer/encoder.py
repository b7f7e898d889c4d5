"""The encoder layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .blocks import FeedForward, norm
from .position import position_encoding
from .sizes import Sizes

# The scale of the attack weights.
_ATTACK_GAIN = 8


class Attention(nn.Module):
    """A block that adds multi-head attention to tokens [B, 64, width] and normalises the sum.

    Four of its modules exist for hooks. Their outputs are:

    - `products`: the scaled products of queries and keys, [B, heads, 64, 64];
    - `bias`: the sum of the position encoding's and the attacks' logits, [B or 1, heads, 64, 64];
    - `weights`: the attention, the softmax of `products` + `bias`; rows are attending squares, columns attended ones;
    - `mixed`: what each head reads, [B, heads, 64, head width].
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.width
        self.shape = (sizes.heads, sizes.head_width)
        self.residual_gain = sizes.residual_gain
        self.query_key = nn.Linear(width, 2 * width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width)
        self.norm = norm(sizes)
        self.position = position_encoding(sizes)
        self.products, self.bias, self.mixed = nn.Identity(), nn.Identity(), nn.Identity()
        self.weights = nn.Softmax(-1)

    def forward(self, tokens: Tensor, attacks: Tensor | None, generator: nn.Module | None) -> Tensor:
        """`attacks` are the logits of the attacks, [B, heads, 64, 64]."""
        placed = self.position.place(tokens)
        projected = *self.query_key(placed).chunk(2, 2), self.value(placed)
        query, key, value = (part.unflatten(2, self.shape).transpose(1, 2) for part in projected)
        products = self.products(query @ key.transpose(2, 3) * self.shape[1] ** -0.5)
        bias = self.position.logits(tokens, query, key, generator)
        bias = self.bias(bias if attacks is None else attacks + bias)
        weights = self.weights(products + bias)
        seen = self.position.seen(weights)
        mixed = self.mixed(weights @ value if seen is None else weights @ value + seen)
        output = self.output(mixed.transpose(1, 2).flatten(2))
        normalised: Tensor = self.norm(tokens + output * self.residual_gain)
        return normalised


class Layer(nn.Module):
    """An encoder layer. Its output is the tokens [B, 64, width] after the layer."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attention = Attention(sizes)
        self.feed_forward = FeedForward(sizes, sizes.feed_forward)

    def forward(self, tokens: Tensor, attacks: Tensor | None, generator: nn.Module | None) -> Tensor:
        after: Tensor = self.feed_forward(self.attention(tokens, attacks, generator))
        return after


class Encoder(nn.Module):
    """The layers. `encoder[n]` is layer n, counted from 0, and `len(encoder)` is their number."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attacks = nn.Parameter(torch.zeros(sizes.heads, 2)) if sizes.attack_bias else None
        self.gab_generator = None
        if sizes.position["kind"] == "gab":
            self.gab_generator = nn.Linear(sizes.position["generator"], 64 * 64, bias=False)
        self._layers = sizes.layers
        for number in range(sizes.layers):
            self.add_module(str(number), Layer(sizes))

    def __len__(self) -> int:
        return self._layers

    def __getitem__(self, number: int) -> Layer:
        layer = self.get_submodule(str(range(self._layers)[number]))
        assert isinstance(layer, Layer)
        return layer

    def forward(self, tokens: Tensor, attacked: Tensor) -> Tensor:
        """`attacked` are the attacks between squares, [B, 2, 64, 64]."""
        attacks = None
        if self.attacks is not None:
            attacks = torch.einsum("hw,bwst->bhst", self.attacks * _ATTACK_GAIN, attacked)
        for number in range(self._layers):
            tokens = self[number](tokens, attacks, self.gab_generator)
        return tokens

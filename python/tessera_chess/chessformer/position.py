"""The position encodings of attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .sizes import Sizes

_DISPLACEMENTS = 15 * 15
# Fixed in Lc0's smolgen.
_EPSILON = 1e-3


class PositionEncoding(nn.Module):
    """Adds the squares' positions to attention. Each kind overrides some of these methods."""

    def place(self, tokens: Tensor) -> Tensor:
        """Returns the tokens [B, 64, width] from which queries, keys and values are computed."""
        return tokens

    def logits(self, tokens: Tensor, query: Tensor, key: Tensor, generator: nn.Module | None) -> Tensor:
        """Returns the logits [B or 1, heads, 64, 64] to add to the scaled products of queries and keys.

        `query` and `key` are [B, heads, 64, head width]; `generator` is the layer that all layers with GAB share.
        """
        return tokens.new_zeros(1, 1, 64, 64)

    def seen(self, weights: Tensor) -> Tensor | None:
        """Returns what attention weights [B, heads, 64, 64] read in addition to values, [B, heads, 64, head width]."""
        return None


class Absolute(PositionEncoding):
    """A vector for each square, added to its token."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(64, sizes.width))

    def place(self, tokens: Tensor) -> Tensor:
        return tokens + self.offset


class _ByDisplacement(PositionEncoding):
    """Tables with an entry for each displacement between two squares."""

    displacements: Tensor

    def __init__(self) -> None:
        super().__init__()
        squares = torch.arange(64)
        ranks, files = (numbers[:, None] - numbers + 7 for numbers in (squares // 8, squares % 8))
        self.register_buffer("displacements", ranks * 15 + files, persistent=False)

    def of_pairs(self, table: Tensor, heads: int) -> Tensor:
        """Returns a table [225, heads · n] for all pairs of squares, [heads, 64, 64, n]."""
        return table[self.displacements].view(64, 64, heads, -1).permute(2, 0, 1, 3)


class Relative(_ByDisplacement):
    """A bias for each head and displacement."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(_DISPLACEMENTS, sizes.heads))

    def logits(self, tokens: Tensor, query: Tensor, key: Tensor, generator: nn.Module | None) -> Tensor:
        return self.of_pairs(self.bias, query.shape[1]).squeeze(3)[None]


class Shaw(_ByDisplacement):
    """Vectors for each displacement, added to queries, keys and values (Shaw et al. 2018)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        for name in ("query", "key", "value"):
            self.register_parameter(name, nn.Parameter(torch.zeros(_DISPLACEMENTS, sizes.width)))
        self.heads = sizes.heads

    def logits(self, tokens: Tensor, query: Tensor, key: Tensor, generator: nn.Module | None) -> Tensor:
        queries, keys = (self.of_pairs(self.get_parameter(name), self.heads) for name in ("query", "key"))
        of_query = torch.einsum("bhid,hijd->bhij", query, keys)
        of_key = torch.einsum("bhjd,hijd->bhij", key, queries)
        logits: Tensor = (of_query + of_key + (queries * keys).sum(3)) * query.shape[3] ** -0.5
        return logits

    def seen(self, weights: Tensor) -> Tensor:
        return torch.einsum("bhij,hijd->bhid", weights, self.of_pairs(self.get_parameter("value"), self.heads))


class Gab(PositionEncoding):
    """Geometric attention bias: the whole board generates biases, as in Lc0's smolgen."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        compress, hidden, generator = (sizes.position[name] for name in ("compress", "hidden", "generator"))
        self.heads_count = sizes.heads
        self.squares = nn.Linear(sizes.width, compress, bias=False)
        self.summary = nn.Linear(64 * compress, hidden)
        self.summary_norm = nn.LayerNorm(hidden, eps=_EPSILON)
        self.heads = nn.Linear(hidden, sizes.heads * generator)
        self.heads_norm = nn.LayerNorm(sizes.heads * generator, eps=_EPSILON)

    def logits(self, tokens: Tensor, query: Tensor, key: Tensor, generator: nn.Module | None) -> Tensor:
        assert generator is not None
        board = self.squares(tokens).flatten(1)
        summary = self.summary_norm(nn.functional.silu(self.summary(board)))
        heads = self.heads_norm(nn.functional.silu(self.heads(summary)))
        biases: Tensor = generator(heads.view(len(tokens), self.heads_count, heads.shape[1] // self.heads_count))
        return biases.view(*biases.shape[:2], 64, 64)


def position_encoding(sizes: Sizes) -> PositionEncoding:
    """Returns the position encoding of a layer."""
    kinds = {"absolute": Absolute, "relative": Relative, "shaw": Shaw, "gab": Gab}
    return kinds[sizes.position["kind"]](sizes)

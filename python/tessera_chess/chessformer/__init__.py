"""Chessformers as plain PyTorch modules.

The names of modules and parameters are those of the network file.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor, nn

from .. import files
from ..evaluation import Evaluation
from ..positions import Positions, Ratings
from ..rows import BOARDS, SCALARS, WIDTH, encode, planes
from .attacks import PIECES, Attacks
from .embedding import Embedding
from .encoder import Encoder
from .heads import MovesLeft, Policy, Value
from .sizes import Sizes

_FAMILY = "chessformer"
_RULE50 = BOARDS + 5
_RATINGS = BOARDS + SCALARS.index("self_elo")


class UnsupportedFamily(ValueError):
    """Networks of this family cannot be loaded as modules."""


class Chessformer(nn.Module):
    """A Chessformer: a transformer that reads the board as 64 tokens.

    Its parts are `embedding`, `encoder` (`encoder[n]` is layer n), `policy`, `value` and `moves_left`. The outputs of
    `embedding` and of each layer are the tokens, [B, 64, width]; `Attention` and `FeedForward` list further modules
    for hooks. Token 0 is a1 and token 63 is h8, from the perspective of the side to move: for Black, the board is
    flipped vertically.
    """

    scales: Tensor

    def __init__(self, metadata: dict[str, Any], file: bytes) -> None:
        """Builds a module with random weights. `of_file` builds it with those of its file."""
        super().__init__()
        architecture = metadata["architecture"]
        if architecture["family"] != _FAMILY:
            raise UnsupportedFamily(
                f"{metadata['name']} is of the family {architecture['family']}, and only networks of the family "
                f"{_FAMILY} can be loaded as modules: load it without trainable"
            )
        sizes = Sizes.of(architecture["model"])
        self.metadata = metadata
        """The file's metadata; the guide's page on file formats lists the fields."""
        self._file = file
        self.attacks = Attacks()
        self.embedding = Embedding(sizes)
        self.encoder = Encoder(sizes)
        self.policy = Policy(sizes)
        self.value = Value(sizes)
        self.moves_left = MovesLeft(sizes)
        scales = torch.ones(BOARDS + 8)
        scales[_RULE50] = 0.01
        self.register_buffer("scales", scales, persistent=False)

    @staticmethod
    def of_file(file: bytes, metadata: dict[str, Any]) -> Chessformer:
        """Builds the module of a network file."""
        module = Chessformer(metadata, file)
        weights = dict(files.script(file).named_parameters())
        try:
            module.load_state_dict(weights)
        except RuntimeError as error:
            raise ValueError(f"the tensors of {metadata['name']} do not fit its architecture: {error}") from None
        return module

    def forward(self, inputs: Tensor, ratings: Tensor | None = None) -> dict[str, Tensor]:
        """Returns the raw outputs by name, with gradients.

        They are the logits `policy` [B, 1858] and `wdl` [B, 3], and `moves_left`, `q`, `q_error`, `st` and `st_error`,
        [B] each.

        `inputs` are rows from `encode`, or planes [B, 112, 8, 8] from the function `planes`, which can have gradients.
        `ratings` [B, 2] are the mover's and the opponent's, 0 if unknown, for a network that reads them. Rows contain
        them, and with planes they are unknown if they are not given.
        """
        if not isinstance(inputs, Tensor):
            raise TypeError("a module reads rows or planes as a tensor: its method evaluate reads boards and FENs")
        if not inputs.is_floating_point():
            if ratings is None and inputs.ndim == 2:
                ratings = inputs[:, _RATINGS:]
            inputs = planes(inputs)
        if inputs.shape[1:] != (BOARDS + 8, 8, 8):
            raise ValueError(
                f"a module reads rows [B, {WIDTH}] or planes [B, {BOARDS + 8}, 8, 8], not {list(inputs.shape)}"
            )
        if ratings is None:
            ratings = torch.zeros(len(inputs), 2)
        features = (inputs.flatten(2).transpose(1, 2)).to(self.scales) * self.scales
        attackers, attacked = self.attacks(features[:, :, :PIECES])
        tokens = self.embedding(features, attackers, ratings.to(features.device))
        tokens = self.encoder(tokens, attacked)
        return {"policy": self.policy(tokens), **self.value(tokens), "moves_left": self.moves_left(tokens)}

    def evaluate(self, positions: Positions, self_elo: Ratings = 0, opponent_elo: Ratings = 0) -> Evaluation:
        """Evaluates positions as the engine does, without gradients. The arguments are those of `encode`."""
        rows = encode(positions, self_elo, opponent_elo)
        with torch.no_grad():
            outputs = self(rows.to(self.scales.device))
        return Evaluation.of(outputs, self.metadata.get("search_value") or "wdl")

    def save(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        """Saves the network as a file that the engine plays, in f32.

        `name` is the network's name, by default that of the file without its ending.
        """
        files.write(path, self._file, self.state_dict(), name)

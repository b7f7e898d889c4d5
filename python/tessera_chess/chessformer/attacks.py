"""Attacks between squares, computed by the rules from the piece planes."""

from __future__ import annotations

import chess
import torch
from torch import Tensor, nn

PIECES = 12
"""Planes of the pieces: our pawns, knights, bishops, rooks, queens and king, then the opponent's."""
FEATURES = 22
"""Features of a square: the attackers from each of the 12 planes; for our king and then theirs, whether a knight,
bishop or rook on the square would give check; and for both kings, whether exactly one piece blocks a diagonal and a
straight line to the square."""

# Ways to attack: like our pawns, their pawns, knights and kings, and along straight and diagonal lines.
_KNIGHT, _STRAIGHT = 2, 4
_KINGS = (5, 11)
_MOVERS = {0: (0,), 6: (1,), 1: (2,), 2: (5,), 3: (4,), 4: (4, 5), 5: (3,)}


def _squares(bitboards: list[int]) -> Tensor:
    """Returns bitboards as rows of zeros and ones, [n, 64]."""
    return torch.tensor([[board >> square & 1 for square in range(64)] for board in bitboards], dtype=torch.float32)


class Attacks(nn.Module):
    """Computes attacks from piece planes [B, 64, 12]."""

    ways: Tensor
    between: Tensor
    movers: Tensor

    def __init__(self) -> None:
        super().__init__()
        squares = range(64)
        # An empty line has the key 0.
        straight = [chess.BB_RANK_ATTACKS[square][0] | chess.BB_FILE_ATTACKS[square][0] for square in squares]
        diagonal = [chess.BB_DIAG_ATTACKS[square][0] for square in squares]
        ways = [
            chess.BB_PAWN_ATTACKS[chess.WHITE], chess.BB_PAWN_ATTACKS[chess.BLACK], chess.BB_KNIGHT_ATTACKS,
            chess.BB_KING_ATTACKS, straight, diagonal,
        ]
        self.register_buffer("ways", torch.stack([_squares(list(way)) for way in ways]), persistent=False)
        between = _squares([chess.between(origin, target) for origin in squares for target in squares])
        self.register_buffer("between", between.T.contiguous(), persistent=False)
        movers = torch.zeros(PIECES, len(ways))
        for plane in range(PIECES):
            movers[plane, _MOVERS[plane] if plane in _MOVERS else _MOVERS[plane - 6]] = 1
        self.register_buffer("movers", movers, persistent=False)

    def forward(self, pieces: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the features of the squares, [B, 64, `FEATURES`], and the attacks between squares, [B, 2, 64, 64].

        The attacks are 1 if the piece on the first square attacks the second square, and, in the second half, if the
        piece on the second square attacks the first.
        """
        blockers = (pieces.sum(2) @ self.between).view(-1, 1, 64, 64)
        # 1 on open lines, 0 if one piece blocks them or the squares are on no line, −1 and less if several do.
        clear = (1 - blockers) * self.ways[_STRAIGHT:]
        reach = torch.cat([self.ways[:_STRAIGHT].expand(len(pieces), -1, -1, -1), clear.relu()], 1)

        attackers = torch.einsum("bsp,bwst->bpwt", pieces, reach)
        of_planes = (attackers * self.movers[:, :, None]).sum(2)
        lines = (_STRAIGHT + 1, _STRAIGHT)  # diagonal, straight
        checks = [attackers[:, king, way] for king in _KINGS for way in (_KNIGHT, *lines)]
        kings = pieces[:, :, _KINGS]
        between = (1 - torch.einsum("bsk,bwst->bwkt", kings, clear).abs()).relu()
        blocked = between * torch.einsum("bsk,wst->bwkt", kings, self.ways[_STRAIGHT:])
        beyond = [blocked[:, line - _STRAIGHT, king] for king in range(len(_KINGS)) for line in lines]
        features = torch.cat([of_planes, torch.stack([*checks, *beyond], 1)], 1).transpose(1, 2)

        attacked = torch.einsum("bsw,bwst->bst", pieces @ self.movers, reach)
        return features, torch.stack([attacked, attacked.transpose(1, 2)], 1)

"""The entries of the output `policy`, and the moves that they stand for."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, overload

from .positions import Position, board_of, boards_of, shown
from .quiet import import_torch
from .rows import castling_rook

if TYPE_CHECKING:
    import chess
    import torch

PROMOTIONS = (5, 4, 3)
"""The promotions that have separate entries. A knight promotion uses the entry for its pair of squares."""


@functools.cache
def entries() -> dict[tuple[int, int, int | None], int]:
    """Returns the policy's entries by origin, target and promotion, from the perspective of the side to move."""
    pairs = [(origin, target) for origin in range(64) for target in range(64) if _is_travelled(origin, target)]
    entries: dict[tuple[int, int, int | None], int] = {(*pair, None): index for index, pair in enumerate(pairs)}
    for file in range(8):
        for target in range(max(file - 1, 0), min(file + 2, 8)):
            for kind in PROMOTIONS:
                entries[48 + file, 56 + target, kind] = len(entries)
    return entries


def _is_travelled(origin: int, target: int) -> bool:
    """Returns whether a queen or a knight could move between these squares on an empty board."""
    files, ranks = abs(origin % 8 - target % 8), abs(origin // 8 - target // 8)
    return origin != target and (0 in (files, ranks) or files == ranks or files * ranks == 2)


def policy_index(position: Position, move: chess.Move) -> int:
    """Returns the index of a legal move in `Evaluation.policy`.

    The 1858 entries are in Lc0's order, from the perspective of the side to move. Castling is encoded as the king
    taking its own rook.

    Raises `ValueError` if the move is not legal.
    """
    import chess

    board = board_of(position)
    if not isinstance(move, chess.Move):
        raise TypeError(
            f"a move must be a chess.Move, not {shown(move)}: chess.Move.from_uci and chess.Board.parse_san read text"
        )
    if not board.is_legal(move):
        raise ValueError(f"{move} is not legal in {board.fen()}")
    return _index(board, move)


def _index(board: chess.Board, move: chess.Move) -> int:
    origin, target = move.from_square, move.to_square
    if board.is_castling(move):
        target = castling_rook(board, board.turn, target % 8 > origin % 8).bit_length() - 1
    if not board.turn:
        origin, target = origin ^ 56, target ^ 56
    kind = move.promotion if move.promotion in PROMOTIONS else None
    return entries()[origin, target, kind]


def policy_move(position: Position, index: int) -> chess.Move | None:
    """Returns the legal move at `index` of `Evaluation.policy`, or `None`."""
    board = board_of(position)
    return next((move for move in board.legal_moves if _index(board, move) == index), None)


@overload
def policy(  # type: ignore[overload-overlap]  # a FEN is also an iterable of text
    positions: Position, logits: torch.Tensor
) -> dict[chess.Move, float]: ...
@overload
def policy(positions: Iterable[Position], logits: torch.Tensor) -> list[dict[chess.Move, float]]: ...
def policy(
    positions: Position | Iterable[Position], logits: torch.Tensor
) -> dict[chess.Move, float] | list[dict[chess.Move, float]]:
    """Returns the probability of each legal move, likeliest first, from `Evaluation.policy`.

    For one position and one row of logits, it returns a dict; for several positions and as many rows, a list of them.

    Raises `TypeError` if the logits are not a tensor, and `ValueError` if its shape is wrong.
    """
    import_torch()
    import chess
    import torch

    if not isinstance(logits, torch.Tensor):
        raise TypeError(f"logits must be a tensor, not {shown(logits)}: torch.as_tensor converts lists and arrays")
    if logits.ndim not in (1, 2) or logits.shape[-1] != len(entries()):
        wanted = f"[{len(entries())}] or [B, {len(entries())}]"
        raise ValueError(f"logits must be {wanted}, as in Evaluation.policy, not {list(logits.shape)}")
    boards = boards_of(positions)
    is_single = isinstance(positions, (str, chess.Board))
    rows = logits.unsqueeze(0) if logits.ndim == 1 else logits
    if len(boards) != len(rows):
        raise ValueError(f"{len(rows)} rows of logits were given for {len(boards)} positions")
    chances = [_chances(board, row) for board, row in zip(boards, rows, strict=True)]
    return chances[0] if is_single else chances


def _chances(board: chess.Board, logits: torch.Tensor) -> dict[chess.Move, float]:
    moves = list(board.legal_moves)
    chances = logits[[_index(board, move) for move in moves]].float().softmax(-1).tolist()
    return dict(sorted(zip(moves, chances, strict=True), key=lambda entry: -entry[1]))

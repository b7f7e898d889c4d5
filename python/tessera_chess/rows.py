"""The rows that networks read, and Lc0's planes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .positions import Positions, Ratings, boards_of, ratings_of
from .quiet import import_torch

if TYPE_CHECKING:
    import chess
    import torch

_HISTORY = 8
_PLANES = 13
BOARDS = _HISTORY * _PLANES
"""The number of bitboards in a row."""

SCALARS = (
    "castling_us_queenside", "castling_us_kingside", "castling_them_queenside", "castling_them_kingside",
    "black_to_move", "rule50", "en_passant", "self_elo", "opponent_elo",
)
"""The words that follow the bitboards in a row."""

WIDTH = BOARDS + len(SCALARS)
"""The number of words in a row."""


def encode(positions: Positions, self_elo: Ratings = 0, opponent_elo: Ratings = 0) -> torch.Tensor:
    """Returns the rows that networks read, one for each position: int64 [B, `WIDTH`], on the CPU.

    A row is Lc0's input format 1 followed by `SCALARS` (the guide's page on file formats describes both). A position
    is a board, whose move stack is its history, or a FEN. `self_elo` and `opponent_elo` are the ratings of the side
    to move and of the opponent, for all positions or for each, or 0 if unknown.

    Raises `ValueError` if a position cannot be played, or a rating is not a whole number from 0 to 65535.
    """
    import_torch()
    import torch

    boards = boards_of(positions)
    ratings = zip(ratings_of(self_elo, len(boards)), ratings_of(opponent_elo, len(boards)), strict=True)
    rows = [[*words(board), *elos] for board, elos in zip(boards, ratings, strict=True)]
    # A row's words are unsigned, but PyTorch's integers are signed.
    signed = [[word - (1 << 64) if word >> 63 else word for word in row] for row in rows]
    return torch.tensor(signed, dtype=torch.int64).reshape(-1, WIDTH)


def planes(positions: Positions | torch.Tensor) -> torch.Tensor:
    """Returns the 112 planes of Lc0's input format 1, float32 [B, 112, 8, 8], of positions or of rows from `encode`.

    Networks that `tessera export-onnx` or `export-lc0` wrote read them, and so do the modules of
    `load(…, trainable=True)`. Dimensions 2 and 3 are ranks and files, both from the perspective of the side to move.
    """
    import_torch()
    import torch

    rows = positions if isinstance(positions, torch.Tensor) else encode(positions)
    if rows.ndim != 2 or rows.shape[1] != WIDTH or rows.dtype != torch.int64:
        raise ValueError(f"rows must be int64 [B, {WIDTH}], as encode returns them, not {rows.dtype} {list(rows.shape)}")
    squares = torch.arange(64, device=rows.device)
    boards = (rows[:, :BOARDS, None] >> squares & 1).float()
    castling = (rows[:, BOARDS : BOARDS + 4] != 0).float()
    # The side to move and the 50-move rule, then zeros and ones.
    rest = [rows[:, BOARDS + 4 : BOARDS + 6].float(), torch.zeros_like(castling[:, :1]), torch.ones_like(castling[:, :1])]
    scalars = torch.cat([castling, *rest], 1)[:, :, None].expand(-1, -1, 64)
    return torch.cat([boards, scalars], 1).view(-1, BOARDS + 8, 8, 8)


def words(board: chess.Board) -> list[int]:
    """Returns a row without its ratings."""
    us = board.turn
    words: list[int] = []
    past = board.copy()
    for _ in range(_HISTORY):
        words += [_orient(squares, us) for squares in _pieces(past, us)]
        words.append((1 << 64) - 1 if past.is_repetition(2) else 0)
        if not past.move_stack:
            break
        past.pop()
    # The history before a custom start position is unknown, so the position itself fills it.
    if len(words) < BOARDS and not _is_initial(past):
        oldest = [_orient(squares, us) for squares in _pieces(_before_double_push(past), us)]
        while len(words) < BOARDS:
            words += [*oldest, 0]
    words += [0] * (BOARDS - len(words))
    passed = _en_passant(board)
    reachable = passed is not None and board.has_pseudo_legal_en_passant()
    return [
        *words,
        *(_orient(castling_rook(board, colour, wing), us) for colour in (us, not us) for wing in (False, True)),
        int(not us),
        board.halfmove_clock,
        _orient(1 << passed, us) if passed is not None and reachable else 0,
    ]


def _orient(squares: int, us: bool) -> int:
    """Returns a bitboard from the perspective of the side to move. For Black, it is flipped vertically."""
    return squares if us else int.from_bytes(squares.to_bytes(8, "little"), "big")


def _pieces(board: chess.Board, us: bool) -> list[int]:
    """Returns the bitboards of our pawns, knights, bishops, rooks, queens and king, and then the opponent's."""
    return [board.pieces_mask(kind, colour) for colour in (us, not us) for kind in range(1, 7)]


def _is_initial(board: chess.Board) -> bool:
    import chess

    initial = board.board_fen() == chess.STARTING_BOARD_FEN and board.turn
    return initial and board.castling_rights == chess.BB_CORNERS


def castling_rook(board: chess.Board, colour: bool, kingside: bool) -> int:
    """Returns the bitboard of the rook with which a side may still castle, or 0."""
    king = board.king(colour)
    rank = 0xFF if colour else 0xFF << 56
    rooks = board.clean_castling_rights() & rank
    if king is None:
        return 0
    beyond = ~((2 << king) - 1) if kingside else (1 << king) - 1
    return rooks & beyond


def _en_passant(board: chess.Board) -> int | None:
    """Returns the en-passant square, or None without one or if the FEN names an impossible one."""
    import chess

    return None if board.status() & chess.STATUS_INVALID_EP_SQUARE else board.ep_square


def _before_double_push(board: chess.Board) -> chess.Board:
    """Returns the board before the double push that an en-passant square implies."""
    square = _en_passant(board)
    if square is not None:
        back = -8 if board.turn else 8
        board = board.copy()
        pawn = board.remove_piece_at(square + back)
        board.set_piece_at(square - back, pawn)
    return board

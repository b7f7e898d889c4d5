"""Positions and ratings as callers give them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

if TYPE_CHECKING:
    import chess

Position: TypeAlias = "chess.Board | str"
"""A board, whose move stack is its history, or a FEN."""
Positions: TypeAlias = "chess.Board | str | Iterable[chess.Board | str]"
"""One position or several."""
Ratings: TypeAlias = "SupportsIndex | Iterable[SupportsIndex]"
"""One rating for all positions, or one for each; 0 if unknown. NumPy's integers and arrays are accepted."""

_HIGHEST_RATING = 65535
# The longest value, in characters, that a message shows.
_LONGEST_SHOWN = 60


def board_of(position: Position) -> chess.Board:
    """Returns a position as a board.

    Raises `ValueError` if the text is not a FEN or the position cannot be played, and `TypeError` for anything else.
    """
    import chess

    if isinstance(position, chess.Board):
        board = position
    elif isinstance(position, str):
        try:
            board = chess.Board(position)
        except ValueError as error:
            raise ValueError(f"{position!r} is not a FEN: {error}") from None
        board.chess960 = board.has_chess960_castling_rights()
    else:
        raise TypeError(f"a position is a chess.Board or a FEN, not {shown(position)}")
    faults = {
        chess.STATUS_EMPTY: "the board is empty",
        chess.STATUS_NO_WHITE_KING | chess.STATUS_NO_BLACK_KING: "a king is missing",
        chess.STATUS_TOO_MANY_KINGS: "a side has more than one king",
        chess.STATUS_PAWNS_ON_BACKRANK: "a pawn is on the first or last rank",
        chess.STATUS_OPPOSITE_CHECK: "the side to move could capture the king",
    }
    status = board.status()
    for fault, reason in faults.items():
        if status & fault:
            raise ValueError(f"{board.fen()} cannot be played: {reason}")
    return board


def boards_of(positions: Positions) -> list[chess.Board]:
    """Returns positions as boards; raises the same errors as `board_of`."""
    import chess

    # Arrays of text are accepted, and have one dimension.
    if getattr(positions, "ndim", 1) != 1:
        raise TypeError(
            f"positions must be boards or FENs, not {shown(positions)}: for rows, call the network itself with a tensor"
        )
    if isinstance(positions, (str, chess.Board)) or not isinstance(positions, Iterable):
        return [board_of(positions)]
    return [board_of(position) for position in positions]


def ratings_of(ratings: Ratings, count: int) -> list[int]:
    """Returns the ratings of this many positions; raises `ValueError` if they are not ratings, or not that many."""
    try:
        # An array of one rating is also an index.
        found = [operator.index(ratings)] * count  # type: ignore[arg-type]
    except TypeError:
        try:
            found = [operator.index(rating) for rating in ratings]  # type: ignore[union-attr]
        except TypeError:
            raise ValueError(f"a rating must be a whole number, not {shown(ratings)}") from None
    if len(found) != count:
        raise ValueError(f"{len(found)} ratings were given for {count} positions")
    for rating in found:
        if not 0 <= rating <= _HIGHEST_RATING:
            raise ValueError(f"a rating must be from 0 (unknown) to {_HIGHEST_RATING}, not {rating}")
    return found


def shown(value: object) -> str:
    """Returns how a message shows a wrong argument: the value itself, or only its type if the value is long."""
    text = repr(value)
    is_short = len(text) <= _LONGEST_SHOWN and "\n" not in text
    return text if is_short else f"an object of type {type(value).__qualname__}"

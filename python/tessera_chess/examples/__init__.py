"""Short programs that look into networks: `python -m tessera_chess.examples.probe`, and so on.

- `probe`: which layers know a concept
- `patch`: which squares carry the difference between two positions
- `attribute`: which squares a move depends on
- `steer`: what a move's probability becomes if a head is switched off or doubled
- `fine_tune`: how 100 steps of training change a network, which is saved for the engine

Each takes a network, by name or file; the default is tessera-xs.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import chess

from ..quiet import import_torch

# Before any other module imports PyTorch, which otherwise warns if NumPy is missing.
import_torch()

from .. import Chessformer, load, policy  # noqa: E402


def command_line(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the argument that all examples have: the network."""
    parser = argparse.ArgumentParser(
        f"python -m {__name__}.{Path(sys.argv[0]).stem}", description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("network", nargs="?", default="tessera-xs", help="a network, by name or file (default tessera-xs)")
    return parser


def given_network(parser: argparse.ArgumentParser) -> Chessformer:
    """Returns the network that the command line names; without it, ends the program."""
    try:
        return load(parser.parse_args().network, trainable=True)
    except (OSError, ValueError) as error:
        parser.error(str(error))


def played_games(model: Chessformer, games: int, plies: int, opening: int = 8) -> list[list[chess.Board]]:
    """Returns the positions of games in which the network draws its moves from its policy, after the opening's plies."""
    draw = random.Random(1)
    boards = [chess.Board() for _ in range(games)]
    positions: list[list[chess.Board]] = [[] for _ in boards]
    for ply in range(plies):
        running = [number for number, board in enumerate(boards) if not board.is_game_over()]
        now = [boards[number] for number in running]
        if ply >= opening:
            for number in running:
                positions[number].append(boards[number].copy())
        for board, chances in zip(now, policy(now, model.evaluate(now).policy), strict=True):
            board.push(draw.choices(list(chances), list(chances.values()))[0])
    return positions

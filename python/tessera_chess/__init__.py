"""Tessera in Python: the engine, and its networks for notebooks.

    import chess, tessera_chess

    board = chess.Board()
    network = tessera_chess.load("tessera-xs")
    evaluation = network(board)
    print(tessera_chess.policy(board, evaluation.policy[0]), evaluation.wdl[0])

`load(…, trainable=True)` returns a plain PyTorch module to hook, train and save. `engine` starts the engine for
python-chess. `program` returns the paths of the binaries, which the console scripts `tessera` and `tessera-train` run.
"""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any

from .evaluation import Evaluation
from .moves import policy, policy_index, policy_move
from .network import Network, load
from .positions import Position, Positions, Ratings
from .programs import NETS, program
from .rows import SCALARS, WIDTH, encode, planes

if TYPE_CHECKING:
    # Imported on first use, because the engine starts without them.
    import chess.engine

    from .chessformer import Chessformer, UnsupportedFamily

__all__ = [
    "NETS", "SCALARS", "WIDTH", "Chessformer", "Evaluation", "Network", "Position", "Positions", "Ratings",
    "UnsupportedFamily", "__version__", "encode", "engine", "load", "planes", "policy", "policy_index", "policy_move",
    "program",
]


def __getattr__(name: str) -> Any:
    """Returns the version, and the classes that need PyTorch, which are looked up only when they are asked for."""
    if name == "__version__":
        return importlib.metadata.version("tessera-chess")
    if name in ("Chessformer", "UnsupportedFamily"):
        from . import chessformer

        return getattr(chessformer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def engine(**options: str | int | bool | None) -> chess.engine.SimpleEngine:
    """Starts the engine for python-chess, with UCI options such as `UCI_Elo=1500`, and loads its network.

    Use it in a `with` statement, or call its `quit`. An interrupt (Ctrl+C, or *Stop* in a notebook) ends a search, and
    the engine can then continue with another one.

    Raises `chess.engine.EngineError` if the engine does not play as told, for example because a network cannot be read
    or an option's value is invalid. Errors that it reports later are logged by the logger `tessera_chess`.
    """
    from .play import start

    return start(options)

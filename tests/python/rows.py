"""Reads games, one JSON object a line, and prints their last positions as tessera_chess encodes them."""

import json
import sys
from pathlib import Path

import chess

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import tessera_chess
from tessera_chess.rows import words

for line in sys.stdin:
    game = json.loads(line)
    board = chess.Board(game["fen"], chess960=game["chess960"])
    for move in game["moves"]:
        board.push_uci(move)
    indices = {board.uci(move): tessera_chess.policy_index(board, move) for move in board.legal_moves}
    for move in board.legal_moves:
        assert tessera_chess.policy_move(board, indices[board.uci(move)]) == move, (board.fen(), move)
    assert tessera_chess.policy_move(board, 0) is None or 0 in indices.values()
    print(json.dumps({"words": words(board), "policy": indices}))

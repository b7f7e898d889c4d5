"""Reads games in PGN as python-chess does, and prints what it found as a JSON object a game."""

import json
import sys

import chess.pgn

while game := chess.pgn.read_game(sys.stdin):
    nodes = list(game.mainline())
    print(json.dumps({
        "tags": dict(game.headers),
        "moves": [node.move.uci() for node in nodes],
        "scores": sum(node.eval() is not None for node in nodes),
        "errors": [str(error) for error in game.errors],
    }))

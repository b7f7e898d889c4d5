"""Reads games in PGN with python-chess, and prints a JSON object for each."""

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

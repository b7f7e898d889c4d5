"""Probes tables with python-chess, and compares them with the expected values.

syzygy.py FOLDER    reads lines "FEN;PLIES" from standard input: plies to the mate, the
                    capture or the pawn move that the winner forces, negative if the
                    side to move loses, 0 in a draw
"""

import sys

import chess
import chess.syzygy

checked = 0
with chess.syzygy.open_tablebase(sys.argv[1]) as tables:
    for line in sys.stdin:
        fen, plies = line.rstrip().split(";")
        board, plies = chess.Board(fen), int(plies)
        found = tables.probe_wdl(board), tables.probe_dtz(board)
        expected = 2 * ((plies > 0) - (plies < 0)), plies
        if found != expected:
            sys.exit(f"{fen}: WDL and DTZ {found}, not {expected}")
        checked += 1
print(checked)

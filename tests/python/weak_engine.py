"""A quick engine that gives up some positions at once: the weaker it is, the more.

The choice depends only on the position, so every game repeats exactly. It gives up
by a score of −9.00, so it plays under `--resign 1,900`. `Weakness` is the share of the
positions given up; `Alpha` is best at 70 and `Beta` at 0.6, where they add nothing.
Like Tessera, it refuses a `Beta` that is out of range, and says so.
"""

import sys
import zlib

import chess

OPTIONS = {"weakness": 0.0, "alpha": 70.0, "beta": 0.6}


def gives_up(board):
    share = OPTIONS["weakness"] + abs(OPTIONS["alpha"] - 70) / 100 + abs(OPTIONS["beta"] - 0.6)
    return zlib.crc32(board.epd().encode()) % 1000 < 1000 * share


def main():
    board = chess.Board()
    for line in sys.stdin:
        words = line.split()
        if words[0] == "uci":
            print("id name weak")
            print("option name Weakness type string default 0")
            print("option name Alpha type spin default 70 min 0 max 100")
            print("option name Beta type string default 0.6")
            print("option name Noisy type check default false")
            print("uciok", flush=True)
        elif words[0] == "isready":
            print("readyok", flush=True)
        elif words[0] == "setoption":
            name, _, value = line.partition(" name ")[2].partition(" value ")
            if name.lower() == "beta" and not 0 <= float(value) <= 1:
                print(f"info string ERROR: Beta must be 0 to 1, not {value.strip()}", flush=True)
            else:
                OPTIONS[name.lower()] = float(value)
        elif words[0] == "position":
            fen, _, played = line.partition(" moves ")
            board = chess.Board() if "startpos" in fen else chess.Board(fen.split("fen ")[1])
            for move in played.split():
                board.push_uci(move)
        elif words[0] == "go":
            score = -900 if gives_up(board) else 0
            print(f"info depth 1 score cp {score}\nbestmove {next(iter(board.legal_moves))}", flush=True)
        elif words[0] == "quit":
            break


main()

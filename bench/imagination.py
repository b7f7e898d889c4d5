#!/usr/bin/env python3
"""Measures how often the best imagined move of the agent `world` is illegal, by ply of its own games.

  bench/imagination.py --net nets/tessera-world.pt --nodes 200 --games 20

Each game starts with --random random moves, and ends under the rules of chess or after --plies
plies. The engine reports illegal choices in an `info string`.
"""

import argparse
import collections
import random
import subprocess

import chess


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--engine", default="target/release/tessera", metavar="FILE")
    add("--net", required=True, metavar="FILE")
    add("--nodes", type=int, default=200)
    add("--games", type=int, default=20)
    add("--plies", type=int, default=120, help="maximum plies of a game")
    add("--random", type=int, default=8, help="random moves at the start of each game")
    add("--seed", type=int, default=1)
    return parser.parse_args()


def choose(engine, moves, nodes):
    """Returns the engine's move, and whether the best imagined move was legal."""
    print("position startpos moves", *moves, file=engine.stdin)
    print("go nodes", nodes, file=engine.stdin, flush=True)
    is_legal = True
    for line in engine.stdout:
        is_legal &= "is not legal" not in line
        if line.startswith("bestmove"):
            return line.split()[1], is_legal
    raise SystemExit("the engine has exited")


def main():
    given = arguments()
    draw = random.Random(given.seed)
    engine = subprocess.Popen([given.engine], text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    for name, value in [("Net", given.net), ("Agent", "world"), ("Threads", 1)]:
        print(f"setoption name {name} value {value}", file=engine.stdin)
    searches, illegal = collections.Counter(), collections.Counter()
    for _ in range(given.games):
        board = chess.Board()
        for _ in range(given.random):
            moves = list(board.legal_moves)
            if moves:
                board.push(draw.choice(moves))
        while not board.is_game_over(claim_draw=True) and board.ply() < given.plies:
            move, is_legal = choose(engine, [move.uci() for move in board.move_stack],
                                    given.nodes)
            band = board.ply() // 20 * 20
            searches[band] += 1
            illegal[band] += not is_legal
            board.push_uci(move)
        print(f"{sum(illegal.values())} of {sum(searches.values())} not legal", flush=True)
    print("quit", file=engine.stdin, flush=True)
    for band in sorted(searches):
        print(f"plies {band}-{band + 19}: {illegal[band]} of {searches[band]} not legal")


main()

#!/usr/bin/env python3
"""Measures how a network evaluates openings and quiet positions, with one evaluation each.

    bench/openings.py reference -o bench/openings.csv --eco DIR --games master-games.pgn.zst
    bench/openings.py measure bench/openings.csv --net FILE… [--engine FILE]

The reference contains evaluations by Stockfish, with 20,000 nodes and its WDL model, of 200 of the 400
positions after two plies, of every 12th line in the ECO tables, and of 800 quiet positions from master games, one per
game. A position is quiet if the side to move is not in check, Stockfish's move is neither a capture nor
a check, and its expected score is within ±0.9. Expected scores are in -1..1, from the perspective of the side
to move. The network reads the moves that led to a position or, for quiet positions, the last seven of them.
The positions are used only for measuring; they are excluded from training, also with colours reversed. The
other 200 positions after two plies may be used in training: a network that never sees such positions
overrates the side to move in them.

Needs chess: tools/venv.
"""

import argparse
import csv
import io
import json
import math
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path

import chess
import chess.pgn

NODES = 20_000
TWO_PLIES = 200
ECO_STEP = 12  # every 12th line is measured
QUIET = 800
PLIES = 16, 100  # range of plies of master games for quiet positions
HISTORY = 7  # moves before a quiet position
DECIDED = 0.9
MAIN_MOVES = {"": "e2e4 d2d4 g1f3 c2c4", "e2e4": "e7e5 c7c5 e7e6 c7c6"}
STATS = re.compile(r"info string ([a-h]\S+) .*\(P: +([0-9.]+)%\).*\(Q: +(-?[0-9.]+)\)")


class Engine:
    """A UCI engine in its own process."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.say("uci")
        self.until("uciok")
        for name, value in options.items():
            self.say(f"setoption name {name} value {value}")
        self.ready()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def until(self, word):
        lines = []
        while not (line := self.process.stdout.readline()).startswith(word):
            if not line:
                sys.exit("the engine has exited")
            lines.append(line)
        return lines

    def ready(self):
        self.say("isready")
        self.until("readyok")

    def search(self, fen, moves, nodes):
        """Returns all output lines of a search that starts with an empty hash table."""
        self.say("ucinewgame")
        self.ready()
        place = f"fen {fen}" if fen else "startpos"
        self.say(f"position {place}" + (f" moves {moves}" if moves else ""))
        self.say(f"go nodes {nodes}")
        return self.until("bestmove")

    def quit(self):
        self.say("quit")
        self.process.wait()


def judged(stockfish, fen, moves, nodes=NODES):
    """Returns Stockfish's expected score and Stockfish's move."""
    best = None
    for line in stockfish.search(fen, moves, nodes):
        if found := re.search(r" score .* wdl (\d+) \d+ (\d+) .* pv (\S+)", line):
            best = (int(found[1]) - int(found[2])) / 1000, found[3]
    return best


def board_of(fen, moves):
    board = chess.Board(fen or chess.STARTING_FEN)
    for move in moves.split():
        board.push_uci(move)
    return board


def two_plies():
    board = chess.Board()
    for first in list(board.legal_moves):
        board.push(first)
        for second in board.legal_moves:
            yield f"{first.uci()} {second.uci()}"
        board.pop()


def held_out():
    """Yields the positions after two plies that are not used in training."""
    lines = sorted(two_plies())
    random.Random(2026).shuffle(lines)
    main = "e2e4 e7e5"
    trained = [line for line in lines if line != main][:TWO_PLIES]
    yield from (line for line in two_plies() if line not in trained)


def eco_lines(folder):
    for name in "abcde":
        with (Path(folder) / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                game = chess.pgn.read_game(io.StringIO(row["pgn"]))
                yield " ".join(move.uci() for move in game.mainline_moves())


def texts(path):
    """Yields the games in a file as text."""
    unpacked = subprocess.Popen(["zstd", "-dcq", str(path)], stdout=subprocess.PIPE, text=True)
    lines, moves = [], False
    for line in unpacked.stdout:
        if line.startswith("[") and moves:
            yield "".join(lines)
            lines, moves = [], False
        lines.append(line)
        moves = moves or not (line.startswith("[") or line.isspace())
    if moves:
        yield "".join(lines)


def quiet_candidates(path, seed=1):
    """Yields random positions from games, one per game."""
    rng = random.Random(seed)
    drawn = [text for text in texts(path) if rng.random() < 0.02]
    rng.shuffle(drawn)
    for text in drawn:
        moves = list(chess.pgn.read_game(io.StringIO(text)).mainline_moves())
        if len(moves) <= PLIES[0]:
            continue
        ply = rng.randint(PLIES[0], min(PLIES[1], len(moves)) - 1)
        board = chess.Board()
        for move in moves[: ply - HISTORY]:
            board.push(move)
        yield board.fen(), " ".join(move.uci() for move in moves[ply - HISTORY : ply])


def reference(arguments):
    stockfish = Engine(arguments.stockfish, UCI_ShowWDL="true", Hash=16, Threads=1)
    with open(arguments.output, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["set", "fen", "moves", "expected", "best"])
        for moves in held_out():
            out.writerow(["two-ply", "", moves, *judged(stockfish, "", moves)])
        for moves in list(eco_lines(arguments.eco))[::ECO_STEP]:
            if not board_of("", moves).is_game_over():
                out.writerow(["eco", "", moves, *judged(stockfish, "", moves)])
        count = 0
        for fen, moves in quiet_candidates(arguments.games):
            board = board_of(fen, moves)
            if count == QUIET or board.is_check() or board.is_game_over():
                continue
            value, best = judged(stockfish, fen, moves)
            move = chess.Move.from_uci(best)
            if abs(value) < DECIDED and not board.is_capture(move) and not board.gives_check(move) and not move.promotion:
                out.writerow(["quiet", fen, moves, value, best])
                count += 1
    stockfish.quit()


def asked(engine, fen, moves):
    """Returns the network's value and policy."""
    policy, value = {}, None
    for line in engine.search(fen, moves, 1):
        if found := STATS.match(line):
            policy[found[1]] = float(found[2]) / 100
            value = float(found[3])
    return value, policy


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for place in order[at : end + 1]:
            result[place] = (at + end) / 2
        at = end + 1
    return result


def spearman(first, second):
    return statistics.correlation(ranks(first), ranks(second))


def figures(engine_path, net, rows):
    engine = Engine(engine_path, Net=net, Threads=1, VerboseMoveStats="true", PolicyTemperature=1, MateSearch="false")
    result = {"net": str(net)}
    for kind in ("two-ply", "eco", "quiet"):
        told, values, worst, right = [], [], [], 0
        for row in (row for row in rows if row["set"] == kind):
            value, policy = asked(engine, row["fen"], row["moves"])
            told.append(float(row["expected"]))
            values.append(value)
            right += max(policy, key=policy.get) == row["best"]
            worst.append((abs(value - told[-1]), row["moves"], told[-1], value))
        errors = [abs(a - b) for a, b in zip(told, values)]
        slope = statistics.linear_regression(values, told).slope
        result[kind] = {
            "positions": len(errors),
            "mean error": statistics.fmean(errors),
            "above 0.3": sum(error > 0.3 for error in errors),
            "largest": max(errors),
            "bias": statistics.fmean(values) - statistics.fmean(told),
            "slope": slope,
            "spearman": spearman(told, values),
            "best move": right / len(errors),
            "worst": sorted(worst, reverse=True)[:6],
        }
    for start, main in MAIN_MOVES.items():
        value, policy = asked(engine, "", start)
        result[f"policy after {start or 'nothing'}"] = {move: policy.get(move, 0) for move in main.split()}
    result["value of e4 e5"] = asked(engine, "", "e2e4 e7e5")[0]
    engine.quit()
    return result


def measure(arguments):
    with open(arguments.reference, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    print("| network | two-ply: error, >0.3, largest | ECO: error, >0.3 | quiet: Spearman, error, slope | best move 2-ply/ECO/quiet | start e4 d4 Nf3 c4 | 1. e4: e5 c5 e6 c6 | e4 e5 |")
    print("|---|---|---|---|---|---|---|---|")
    for net in arguments.net:
        f = figures(arguments.engine, Path(net).resolve(), rows)
        two, eco, quiet = f["two-ply"], f["eco"], f["quiet"]
        percents = [" ".join(f"{100 * p:.1f}" for p in f[f"policy after {start or 'nothing'}"].values()) for start in MAIN_MOVES]
        print(
            f"| {net} | {two['mean error']:.3f}, {two['above 0.3']}, {two['largest']:.2f} "
            f"| {eco['mean error']:.3f}, {eco['above 0.3']} of {eco['positions']} ({eco['above 0.3'] / eco['positions']:.1%}) "
            f"| {quiet['spearman']:.3f}, {quiet['mean error']:.3f}, {quiet['slope']:.2f} "
            f"| {two['best move']:.1%} {eco['best move']:.1%} {quiet['best move']:.1%} "
            f"| {percents[0]} | {percents[1]} | {f['value of e4 e5']:+.3f} |",
            flush=True,
        )
        if arguments.json:
            with open(arguments.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(f) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    make = commands.add_parser("reference")
    make.add_argument("-o", "--output", required=True)
    make.add_argument("--eco", required=True)
    make.add_argument("--games", required=True)
    make.add_argument("--stockfish", default="stockfish")
    make.set_defaults(run=reference)
    ask = commands.add_parser("measure")
    ask.add_argument("reference")
    ask.add_argument("--net", nargs="+", required=True)
    ask.add_argument("--engine", default="./tessera")
    ask.add_argument("--json")
    ask.set_defaults(run=measure)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()

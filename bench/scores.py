#!/usr/bin/env python3
"""Compares the scale of the engine's scores with Stockfish's, and fits it.

    tessera match-moves human-games.pgn.zst --held-out 0.1 --min-elo 600 --list > list.jsonl
    bench/scores.py measure list.jsonl -o scores.jsonl --count 3500 [--minutes N]      (resumes)
    bench/scores.py fit scores.jsonl
    bench/scores.py table scores.jsonl

`measure` takes at most two random positions from each game, in an order that depends only on the seed. The
engine searches each with a fixed number of nodes and reports its expected result (ScoreType Q), and Stockfish
searches it with 100,000 nodes and reports its own (UCI_ShowWDL). `fit` prints the scale that the first half of
the games gives; `table` compares the engine's scores with Stockfish's on both halves.

Needs chess: tools/venv.
"""

import argparse
import hashlib
import json
import math
import random
import statistics
import time
from pathlib import Path

import chess
import chess.engine

ROOT = Path(__file__).resolve().parent.parent
PER_GAME = 2
BINS = ((100, 200), (200, 400), (400, 800))
SLOPE = 100  # as in src/play/score.rs
LEAST_DOUBT = 1e-6


def key(position):
    """Identifies a game: its first moves and the ratings of its players."""
    ratings = sorted([position["rating"], position["opponent"] or 0])
    return f"{' '.join(position['moves'][:10])} {ratings}"


def chosen(path, count, seed):
    """Returns random positions with an advantage of either side or none, at most two from a game."""
    games = {}
    for line in path.open(encoding="utf-8"):
        position = json.loads(line)
        if not position["fen"] and len(position["moves"]) >= 10:
            games.setdefault(key(position), []).append(position)
    generator = random.Random(seed)
    positions = [(name, it) for name, of in sorted(games.items()) for it in generator.sample(of, min(PER_GAME, len(of)))]
    generator.shuffle(positions)
    return positions[:count]


def half(name):
    """Returns the half of the games to which a game belongs: 0 to fit, 1 to test."""
    return hashlib.sha256(name.encode()).digest()[0] % 2


def score(engine, board, limit):
    """Returns the score in centipawns or the moves to mate, and the expected result (0…1), if the engine tells it."""
    found = engine.analyse(board, limit, game=object())
    expected = found["wdl"].relative.expectation() if "wdl" in found else None
    return found["score"].relative.score(), found["score"].relative.mate(), expected


def measure(arguments):
    positions = chosen(arguments.list, arguments.count, arguments.seed)
    known = set()
    if arguments.output.exists():
        known = {(it["game"], it["moves"]) for it in map(json.loads, arguments.output.open(encoding="utf-8"))}
    end = time.monotonic() + 60 * arguments.minutes
    with (
        chess.engine.SimpleEngine.popen_uci(str(arguments.engine), timeout=None) as engine,
        chess.engine.SimpleEngine.popen_uci(arguments.stockfish, timeout=None) as stockfish,
        arguments.output.open("a", encoding="utf-8") as output,
    ):
        engine.configure({"Threads": 1, "ScoreType": "Q"})
        stockfish.configure({"Threads": 1, "Hash": 16, "UCI_ShowWDL": True})
        for name, position in positions:
            moves = " ".join(position["moves"])
            if (name, moves) in known:
                continue
            if time.monotonic() > end:
                break
            board = chess.Board()
            for mv in position["moves"]:
                board.push_uci(mv)
            ours, mate, _ = score(engine, board, chess.engine.Limit(nodes=arguments.nodes))
            theirs, their_mate, their_result = score(stockfish, board, chess.engine.Limit(nodes=100_000))
            line = {"game": name, "moves": moves, "q": None if ours is None else ours / 10_000, "mate": mate,
                    "stockfish": theirs, "stockfish_mate": their_mate, "stockfish_result": their_result}
            output.write(json.dumps(line) + "\n")
            output.flush()


def known_scores(path, which):
    lines = map(json.loads, path.open(encoding="utf-8"))
    return [(it["q"], it["stockfish"]) for it in lines
            if half(it["game"]) in which and it["q"] is not None and it["stockfish"] is not None]


def results(path, low, high):
    """Returns the median expected results (0…1) of the side that is ahead, by the engine and by Stockfish."""
    both = []
    for it in map(json.loads, path.open(encoding="utf-8")):
        if it["q"] is None or it["stockfish"] is None or not low <= abs(it["stockfish"]) < high:
            continue
        ours, theirs = (it["q"] + 1) / 2, it["stockfish_result"]
        both.append((ours, theirs) if it["stockfish"] > 0 else (1 - ours, 1 - theirs))
    return [statistics.median(side) for side in zip(*both, strict=True)] or [math.nan, math.nan]


def logit(q):
    size = min(abs(q), 1 - LEAST_DOUBT)
    return math.copysign(math.log((1 + size) / (1 - size)), q)


def lc0(q):
    return 90 * math.tan(1.5637541897 * q)


def ratios(pairs, scale):
    """Returns the number of positions and the median ratio of the scores in each bin."""
    bins = [[scale(q) / theirs for q, theirs in pairs if low <= abs(theirs) < high] for low, high in BINS]
    return [(len(found), statistics.median(found) if found else math.nan) for found in bins]


def fit(arguments):
    pairs = known_scores(arguments.scores, (0,))
    def error(slope):
        return sum(abs(math.log(max(ratio, 0.01))) for _, ratio in ratios(pairs, lambda q: slope * logit(q)))
    print(f"slope {min(range(50, 200), key=error)}")


def table(arguments):
    halves = [known_scores(arguments.scores, which) for which in ((0,), (1,), (0, 1))]
    columns = [ratios(pairs, lambda q: SLOPE * logit(q)) for pairs in halves]
    print("| Stockfish's score | positions | first half | other half | Lc0's curve, all | expected result, the engine's and Stockfish's |")
    print("|---|---|---|---|---|---|")
    for place, (low, high) in enumerate(BINS):
        count = columns[2][place][0]
        values = [columns[0][place][1], columns[1][place][1], ratios(halves[2], lc0)[place][1]]
        values = " | ".join(f"{value:.2f}" for value in values)
        ours, theirs = results(arguments.scores, low, high)
        print(f"| {low}–{high - 1} | {count} | {values} | {ours:.2f}, {theirs:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure", help="search positions with both engines")
    one.add_argument("list", type=Path)
    one.add_argument("-o", "--output", type=Path, required=True)
    one.add_argument("--count", type=int, default=3500)
    one.add_argument("--nodes", type=int, default=400)
    one.add_argument("--minutes", type=float, default=1e6)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--engine", type=Path, default=ROOT / "target/release/tessera")
    one.add_argument("--stockfish", default="stockfish")
    for name, what in (("fit", "print the slope of the scale"), ("table", "compare the scales")):
        one = commands.add_parser(name, help=what)
        one.add_argument("scores", type=Path)
    arguments = parser.parse_args()
    {"measure": measure, "fit": fit, "table": table}[arguments.command](arguments)

#!/usr/bin/env python3
"""Compares the marks of `tessera review` with Stockfish's, and its rating estimates with players' ratings.

    bench/review.py games human-games.pgn.zst -o games.pgn --skip 400 --count 60
    bench/review.py label games.pgn -o labels.jsonl [--minutes N]      (resumes)
    tessera review games.pgn --json > review.json
    bench/review.py marks labels.jsonl review.json
    tessera review games.pgn --judge none --json > own.json
    bench/review.py thresholds labels.jsonl own.json
    bench/review.py ratings review.json

`games` selects games that are held out from training, in an order that depends only on the seed. `label`
searches each position with Stockfish and a million nodes. `marks` compares the review's marks with marks that
are computed from Stockfish's scores in the same way as in the review: by a move's loss in winning chances.
`thresholds` chooses the rules of marks without a judge on one half of the games and reports them on the other.
Instead of labels, both commands also read a review with a judge. Recall is the share of Stockfish's mistakes and blunders that the review also marks as a mistake or a blunder.
Precision is the share of the review's mistakes and blunders that Stockfish also marks as a mistake or a blunder.

Needs chess: tools/venv.
"""

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import chess
import chess.engine
import chess.pgn

ROOT = Path(__file__).resolve().parent.parent
NODES = 1_000_000
SHORTEST = 40  # plies of a game
FEWEST = 20  # number of moves that a side needs for its rating to count
GROUP = 10  # games whose ratings are estimated together
CEILING = 1_000
STEEPNESS = 0.003_682_08
BAD = {"mistake", "blunder"}


def held_out(arguments):
    """Returns the longest prefix of each held-out game whose players both have ratings."""
    command = [arguments.engine, "match-moves", arguments.games, "--held-out", "0.1", "--min-elo", "600", "--list"]
    listed = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True)
    games = {}
    for line in listed.stdout.splitlines():
        position = json.loads(line)
        if not position["fen"] and position["opponent"]:
            ratings = sorted([position["rating"], position["opponent"]])
            games[f"{position['moves'][:40]} {ratings}"] = position
    return list(games.values())


def written(number, position):
    game = chess.pgn.Game()
    ratings = [position["rating"], position["opponent"]]
    white, black = ratings if len(position["moves"]) % 2 == 0 else reversed(ratings)
    game.headers.update(Event=f"Held out {number}", White=f"White {number}", Black=f"Black {number}")
    game.headers.update(WhiteElo=str(white), BlackElo=str(black))
    node = game
    for move in [*position["moves"], position["played"]]:
        node = node.add_variation(chess.Move.from_uci(move))
    return f"{game}\n\n"


def pick(arguments):
    games = held_out(arguments)
    random.Random(arguments.seed).shuffle(games)
    kept = [
        game
        for game in games[arguments.skip :]
        if len(game["moves"]) >= SHORTEST and max(game["rating"], game["opponent"]) < arguments.below
    ]
    texts = [written(number, game) for number, game in enumerate(kept[: arguments.count])]
    arguments.output.write_text("".join(texts), encoding="utf-8")


def read(path):
    with path.open(encoding="utf-8") as file:
        while game := chess.pgn.read_game(file):
            yield game


def label(arguments):
    until = time.monotonic() + 60 * arguments.minutes
    lines = arguments.output.read_text().splitlines() if arguments.output.exists() else []
    done = {json.loads(line)["moves"] for line in lines}
    with chess.engine.SimpleEngine.popen_uci(arguments.stockfish) as engine, arguments.output.open("a") as output:
        engine.configure({"Threads": 1, "Hash": 64})
        for game in read(arguments.games):
            moves = " ".join(move.uci() for move in game.mainline_moves())
            if moves in done:
                continue
            board, scores = game.board(), []
            for move in [*game.mainline_moves(), None]:
                if time.monotonic() > until:
                    return
                scores.append(judged(engine, board, arguments.nodes))
                if move:
                    board.push(move)
            output.write(json.dumps({"moves": moves, "scores": scores}) + "\n")
            output.flush()


def judged(engine, board, nodes):
    """Returns the score for the side to move, in centipawns or as a mate, and the best move."""
    if board.is_game_over():
        return {"mate": 0} if board.is_checkmate() else {"centipawns": 0}
    info = engine.analyse(board, chess.engine.Limit(nodes=nodes), game=object())
    score = info["score"].relative
    found = {"mate": score.mate()} if score.is_mate() else {"centipawns": score.score()}
    return found | {"best": info["pv"][0].uci()}


def chances(score):
    if "mate" in score:
        centipawns = CEILING if score["mate"] > 0 else -CEILING
    else:
        centipawns = max(-CEILING, min(CEILING, score["centipawns"]))
    return 2 / (1 + math.exp(-STEEPNESS * centipawns)) - 1


def mark(before, after, is_best):
    """Returns the mark that the review would give to a move, given the player's scores before and after the move."""
    if is_best:
        return None
    won, lost = before.get("mate", 0) > 0, after.get("mate", 1) <= 0
    if "centipawns" in before and "centipawns" in after:
        loss = chances(before) - chances(after)
        return "blunder" if loss >= 0.3 else "mistake" if loss >= 0.2 else None
    if won and lost:
        return "blunder"
    if won and "centipawns" in after:
        rest = after["centipawns"]
    elif lost and "centipawns" in before:
        rest = -before["centipawns"]
    else:
        return None
    return None if rest >= 1000 else "mistake" if rest > 700 else "blunder"


def reversed_score(score):
    """Returns the score for the side that has just moved."""
    if score.get("mate") == 0:
        return {"mate": 1}
    return {name: -value for name, value in score.items() if name != "best"}


def marks_of(moves, scores):
    pairs = zip(moves, scores, scores[1:], strict=False)
    return [mark(before, reversed_score(after), before.get("best") == move) for move, before, after in pairs]


def expected(path):
    """Returns the expected marks of each game, by its moves: those of labels, or those of a review with a judge."""
    if path.suffix == ".json":
        games = json.loads(path.read_text())["games"]
        return {moves_of(game): [bad(ply["mark"]) for ply in game["plies"]] for game in games}
    labels = [json.loads(line) for line in path.read_text().splitlines()]
    return {label["moves"]: marks_of(label["moves"].split(), label["scores"]) for label in labels}


def moves_of(game):
    return " ".join(ply["uci"] for ply in game["plies"])


def bad(mark):
    return mark if mark in BAD else None


def counted(pairs):
    """Counts agreements in pairs of an expected and a found mark."""
    counts = defaultdict(int)
    for expected_mark, found in pairs:
        counts["true"] += expected_mark is not None
        counts["found"] += found is not None
        counts["both"] += expected_mark is not None and found is not None
        counts["true blunders"] += expected_mark == "blunder"
        counts["blunders marked"] += expected_mark == "blunder" and found is not None
    return counts


def tell(counts):
    for name, part, whole in (
        ("recall", "both", "true"),
        ("precision", "both", "found"),
        ("recall of blunders", "blunders marked", "true blunders"),
    ):
        print(f"{name} {100 * counts[part] / max(1, counts[whole]):.1f} % ({counts[part]} of {counts[whole]})")


def marks(arguments):
    labels = expected(arguments.labels)
    games = [game for game in json.loads(arguments.review.read_text())["games"] if moves_of(game) in labels]
    pairs = [
        (mark, bad(ply["mark"]))
        for game in games
        for mark, ply in zip(labels[moves_of(game)], game["plies"], strict=True)
    ]
    print(f"{len(games)} games, {len(pairs)} moves")
    tell(counted(pairs))


def scores_of(game):
    """Returns the winning chances of the mover before and after each move, and whether it is the best one."""
    wins = [game["start"]["win"], *(ply["win"] for ply in game["plies"])]
    for ply, *pair in zip(game["plies"], wins, wins[1:], strict=False):
        if None not in pair:
            sign = 1 if ply["side"] == "white" else -1
            before, after = (sign * (win / 50 - 1) for win in pair)
            yield before, after, ply["best"] is None


def found_by(rules, scores):
    """Returns the marks of a game by rules: the least loss of a mistake and of a blunder, and the winning chances from
    which a side is clearly winning."""
    mistake, blunder, decided = rules
    for before, after, is_best in scores:
        is_decided = min(before, after) >= decided or max(before, after) <= -decided
        loss = 0 if is_best or is_decided else before - after
        yield "blunder" if loss >= blunder else "mistake" if loss >= mistake else None


def thresholds(arguments):
    labels = expected(arguments.labels)
    games = [game for game in json.loads(arguments.review.read_text())["games"] if moves_of(game) in labels]
    rules = [
        (mistake / 100, (mistake + 10) / 100, decided / 100)
        for mistake in range(20, 61, 2)
        for decided in (30, 40, 50, 60, 70, 101)
    ]

    def counts(half, rule):
        found = [found_by(rule, scores_of(game)) for game in half]
        return counted(
            pair
            for game, marks in zip(half, found, strict=True)
            for pair in zip(labels[moves_of(game)], marks, strict=True)
        )

    chosen_on, reported_on = games[::2], games[1::2]
    found = [(counts(chosen_on, rule), rule) for rule in rules]
    precise = [it for it in found if it[0]["found"] and it[0]["both"] / it[0]["found"] >= arguments.precision]
    if not precise:
        sys.exit("no rule reaches this precision")
    own, rule = max(precise, key=lambda it: it[0]["both"])
    print(f"mistake from {rule[0]}, clearly winning from {rule[2]}; chosen on {len(chosen_on)} games:")
    tell(own)
    print(f"on the other {len(reported_on)} games:")
    tell(counts(reported_on, rule))


class Estimate:
    """Estimates a rating like the review, optionally with other constants."""

    def __init__(self, power, mean, spread, shared):
        self.power, self.ratings = power, range(600, 2601, 10)
        normal = [math.exp(-0.5 * (10 * step / shared) ** 2) if shared else float(step == 0) for step in range(201)]
        self.blur = [[normal[abs(a - b)] for b in range(201)] for a in range(201)]
        self.prior = [math.exp(-0.5 * ((rating - mean) / spread) ** 2) for rating in self.ratings]

    def of(self, likelihood):
        """Returns the estimate and both ends of its interval."""
        logarithms = [self.power * self.between(likelihood, rating) for rating in self.ratings]
        likely = [math.exp(it - max(logarithms)) for it in logarithms]
        weights = [
            prior * sum(map(float.__mul__, row, likely)) for prior, row in zip(self.prior, self.blur, strict=True)
        ]
        total, below, ends = sum(weights), 0.0, []
        for rating, weight in zip(self.ratings, weights, strict=True):
            below += weight / total
            if below >= (0.1, 0.9, 2.0)[len(ends)]:
                ends.append(rating)
        mean = sum(map(float.__mul__, map(float, self.ratings), weights)) / total
        return mean, *ends

    @staticmethod
    def between(likelihood, rating):
        low = min((rating - 600) // 200, len(likelihood) - 2)
        part = (rating - 600) / 200 - low
        return likelihood[low] * (1 - part) + likelihood[low + 1] * part


def told(estimate, sides):
    """Returns the mean error of the estimates, the share of ratings within their intervals, and the mean deviation."""
    found = [(*estimate.of(likelihood), rating) for rating, likelihood in sides]
    error = statistics.fmean(abs(mean - rating) for mean, _, _, rating in found)
    covered = statistics.fmean(low <= rating <= high for _, low, high, rating in found)
    return f"{len(sides)}: off by {error:.0f}, in the interval {100 * covered:.1f} %"


def ratings(arguments):
    sides = []
    for game in json.loads(arguments.review.read_text())["games"]:
        for side in (game["white"], game["black"]):
            if side["estimate"] and side["rating"] and side["moves"] >= FEWEST:
                sides.append((side["rating"], side["log_likelihood"]))
    sides.sort(key=lambda side: side[0])
    groups = [sides[place : place + GROUP] for place in range(0, len(sides) - GROUP + 1, GROUP)]
    together = [
        (statistics.fmean(rating for rating, _ in group), [sum(of) for of in zip(*(of for _, of in group), strict=True)])
        for group in groups
    ]
    middle = statistics.fmean(rating for rating, _ in sides)
    print(f"the mean, {middle:.0f}, is off by {statistics.fmean(abs(rating - middle) for rating, _ in sides):.0f}")
    estimate = Estimate(arguments.power, arguments.mean, arguments.spread, arguments.shared)
    print("one game,", told(estimate, sides))
    print("ten games,", told(estimate, together))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("games", help="pick games held out from training")
    command.set_defaults(run=pick)
    command.add_argument("games", type=Path)
    command.add_argument("-o", "--output", type=Path, required=True)
    command.add_argument("--skip", type=int, default=0, help="number of games to skip at the start of the order")
    command.add_argument("--count", type=int, default=60)
    command.add_argument("--below", type=float, default=math.inf, help="both players have a lower rating")
    command.add_argument("--seed", type=int, default=5)
    command.add_argument("--engine", type=Path, default=ROOT / "target/release/tessera")
    command = commands.add_parser("label", help="search each position with Stockfish")
    command.set_defaults(run=label)
    command.add_argument("games", type=Path)
    command.add_argument("-o", "--output", type=Path, required=True)
    command.add_argument("--stockfish", default="stockfish")
    command.add_argument("--nodes", type=int, default=NODES)
    command.add_argument("--minutes", type=float, default=math.inf)
    command = commands.add_parser("marks", help="compare a review's marks with Stockfish's")
    command.set_defaults(run=marks)
    command.add_argument("labels", type=Path)
    command.add_argument("review", type=Path)
    command = commands.add_parser("thresholds", help="choose the rules of marks without a judge")
    command.set_defaults(run=thresholds)
    command.add_argument("labels", type=Path)
    command.add_argument("review", type=Path)
    command.add_argument("--precision", type=float, default=0.7, help="precision to reach on the first half")
    command = commands.add_parser("ratings", help="compare a review's rating estimates with the players' ratings")
    command.set_defaults(run=ratings)
    command.add_argument("review", type=Path)
    for name, default in (("power", 0.6), ("mean", 1550), ("spread", 350), ("shared", 100)):
        command.add_argument(f"--{name}", type=float, default=default)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()

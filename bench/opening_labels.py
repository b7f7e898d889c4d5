#!/usr/bin/env python3
"""Labels unique opening positions for training, each with the moves that lead to it.

    bench/opening_labels.py collect -o diet.jsonl --without bench/openings.csv --eco DIR --master FILE --human FILE
    bench/opening_labels.py label diet.jsonl -o labels.jsonl [--minutes N]     (resumes)
    bench/opening_labels.py write diet.jsonl labels.jsonl -o nets/openings.pgn.zst

A position's key consists of the board with the side to move as White, the castling rights and the en-passant
square, but not the clocks. Transpositions and positions with reversed colours therefore have the same key.
Positions whose key is in `openings.csv` are left out, because that file is used for measuring. The start
position and the position after 1. e4 are left out because their policies are measured.

Needs chess: tools/venv.
"""

import argparse
import csv
import io
import json
import math
import random
import re
import subprocess
import sys
import time

import chess
import chess.pgn

from openings import Engine, board_of, eco_lines, texts

PLIES = 20
NODES = 20_000, 100_000  # for most positions, and for frequent ones and those after two plies
OFTEN = 200
LINES = 5
EARLY = 20  # copies of each of the few positions after two plies
SYSTEMATIC = "1-ply", "2-ply", "3-ply", "eco", "4-ply"  # sources whose positions are all labelled
MOVES = re.compile(r"\{[^}]*\}|\([^)]*\)|\d+\.+|[^\s]*\$\d+")


def key(board):
    return (board if board.turn else board.mirror()).epd()


def paths(plies):
    board = chess.Board()

    def walk(left):
        if left == 0:
            yield board.copy()
            return
        for move in list(board.legal_moves):
            board.push(move)
            yield from walk(left - 1)
            board.pop()

    yield from walk(plies)


def game_positions(path, share, rng):
    """Yields boards from the first plies of games."""
    for text in texts(path):
        if rng.random() >= share or "[FEN" in text:
            continue
        body = text[text.rfind("]\n") + 2 :] if "[" in text else text
        board = chess.Board()
        try:
            for token in MOVES.sub(" ", body).split()[:PLIES]:
                if token[0] in "01*":
                    if token[:3] not in ("0-0", "O-O"):
                        break
                board.push_san(token)
                yield board
        except ValueError:
            continue


def collect(arguments):
    rng = random.Random(5)
    measured = {key(chess.Board()), key(board_of("", "e2e4"))}
    with open(arguments.without, encoding="utf-8", newline="") as file:
        measured |= {key(board_of(row["fen"], row["moves"])) for row in csv.DictReader(file)}
    found = {}

    def add(board, source):
        place = key(board)
        if place in measured or not any(board.generate_legal_moves()):
            return
        if place not in found:
            found[place] = {"count": 0, "source": source, "paths": []}
        entry = found[place]
        entry["count"] += 1
        # Keep up to four move sequences that lead to each position, sampled evenly.
        if len(entry["paths"]) < 4 or rng.random() < 4 / entry["count"]:
            path = " ".join(move.uci() for move in board.move_stack)
            if path not in entry["paths"]:
                if len(entry["paths"]) == 4:
                    entry["paths"][rng.randrange(4)] = path
                else:
                    entry["paths"].append(path)

    for plies in (1, 2, 3):
        for board in paths(plies):
            add(board, f"{plies}-ply")
    for line in eco_lines(arguments.eco):
        board = chess.Board()
        for move in line.split():
            board.push_uci(move)
            add(board, "eco")
    four = random.Random(6)
    taken = [path.move_stack for path in paths(2)]
    for _ in range(arguments.four):
        board = chess.Board()
        for move in four.choice(taken):
            board.push(move)
        for _ in range(2):
            if not any(board.generate_legal_moves()):
                break
            board.push(four.choice(list(board.legal_moves)))
        add(board, "4-ply")
    for board in game_positions(arguments.master, arguments.master_share, rng):
        add(board, "master")
    for board in game_positions(arguments.human, 1, rng):
        add(board, "human")
    order = sorted(found.items(), key=lambda item: (-item[1]["count"], item[0]))
    often = [item for item in order if item[1]["count"] >= arguments.often or item[1]["source"] in SYSTEMATIC]
    rare = [item for item in order if not (item[1]["count"] >= arguments.often or item[1]["source"] in SYSTEMATIC)]
    rare = rng.sample(rare, min(arguments.rare, len(rare)))
    print(len(found), "positions,", len(often), "kept, and of the rare", len(rare))
    # Label frequent positions first, in case time runs out.
    kept = often + rare
    random.Random(7).shuffle(kept)
    kept.sort(key=lambda item: -(item[1]["count"] >= OFTEN))
    with open(arguments.output, "w", encoding="utf-8") as file:
        for place, entry in kept:
            file.write(json.dumps({"key": place, **entry}) + "\n")


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def label(arguments):
    done = set()
    try:
        done = {entry["key"] for entry in read(arguments.output)}
    except FileNotFoundError:
        pass
    stockfish = Engine(arguments.stockfish, UCI_ShowWDL="true", Hash=16, Threads=1, MultiPV=LINES)
    end = time.monotonic() + 60 * arguments.minutes
    with open(arguments.output, "a", encoding="utf-8") as file:
        for entry in read(arguments.diet):
            if entry["key"] in done:
                continue
            if time.monotonic() > end:
                break
            nodes = NODES[entry["count"] >= OFTEN or entry["source"] == "2-ply"]
            lines = {}
            for line in stockfish.search("", entry["paths"][0], nodes):
                if found := re.search(r" depth (\d+) .* multipv (\d+) score (cp|mate) (-?\d+) wdl (\d+) \d+ (\d+) .* pv (\S+)", line):
                    lines[int(found[2])] = [found[7], found[3], int(found[4]), (int(found[5]) - int(found[6])) / 1000, int(found[1])]
            file.write(json.dumps({"key": entry["key"], "nodes": nodes, "lines": [lines[n] for n in sorted(lines)]}) + "\n")
    stockfish.quit()


def score(kind, value, white):
    value = value if white else -value
    return f"#{value}" if kind == "mate" else f"{value / 100:.2f}"


def write(arguments):
    labels = {entry["key"]: entry for entry in read(arguments.labels)}
    out = subprocess.Popen(["zstd", "-qf", "-10", "-o", arguments.output], stdin=subprocess.PIPE, text=True)
    count = samples = 0
    for entry in read(arguments.diet):
        if entry["key"] not in labels:
            continue
        count += 1
        # The number of copies grows with the logarithm of the position's count, up to one per move sequence.
        copies = min(4, len(entry["paths"]), 1 + int(math.log10(max(1, entry["count"]))))
        early = EARLY if entry["source"] == "2-ply" else 1
        for path in entry["paths"][:copies] * early:
            lines = labels[entry["key"]]["lines"]
            board = chess.Board()
            words = []
            for move in map(chess.Move.from_uci, path.split()):
                words.append((f"{board.fullmove_number}. " if board.turn else "") + board.san(move))
                board.push(move)
            known = []
            number = f"{board.fullmove_number}{'.' if board.turn else '...'} "
            flip = board.turn
            source = chess.Board()
            for move in entry["paths"][0].split():
                source.push_uci(move)
            for move, kind, value, _, depth in lines:
                move = chess.Move.from_uci(move)
                if source.turn != board.turn:  # the same position with colours reversed
                    move = chess.Move(chess.square_mirror(move.from_square), chess.square_mirror(move.to_square), move.promotion)
                known.append(f"{number}{board.san(move)} {{[%eval {score(kind, value, flip)},{depth}]}}")
            text = " ".join(words) + " " + known[0] + "".join(f" ({line})" for line in known[1:])
            samples += 1
            out.stdin.write(f'[Event "openings"]\n[Round "{samples}"]\n[Result "*"]\n\n{text.strip()} *\n\n')
    out.stdin.close()
    out.wait()
    print(count, "positions,", samples, "samples")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    part = commands.add_parser("collect")
    part.add_argument("-o", "--output", required=True)
    part.add_argument("--without", required=True)
    part.add_argument("--eco", required=True)
    part.add_argument("--master", required=True)
    part.add_argument("--master-share", type=float, default=0.2)
    part.add_argument("--human", required=True)
    part.add_argument("--four", type=int, default=4000)
    part.add_argument("--often", type=int, default=12)
    part.add_argument("--rare", type=int, default=5000)
    part.set_defaults(run=collect)
    part = commands.add_parser("label")
    part.add_argument("diet")
    part.add_argument("-o", "--output", required=True)
    part.add_argument("--minutes", type=float, default=1e9)
    part.add_argument("--stockfish", default="stockfish")
    part.set_defaults(run=label)
    part = commands.add_parser("write")
    part.add_argument("diet")
    part.add_argument("labels")
    part.add_argument("-o", "--output", required=True)
    part.set_defaults(run=write)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()

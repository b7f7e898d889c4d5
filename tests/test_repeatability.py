"""The engine's answers do not depend on earlier requests: 100 positions at fixed nodes."""

import random
import subprocess
import unittest

from patience import PATIENCE
from tool_test import ROOT, ToolTest

import chess
from test_release import binaries

POSITIONS = 100
NODES = 32


class Engine:
    """A running engine, controlled in plain UCI."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.tell("uci", "setoption name Threads value 1")
        self.wait("uciok")

    def tell(self, *commands):
        for command in commands:
            self.process.stdin.write(f"{command}\n")

    def wait(self, word):
        """Returns the lines up to the one that begins with the word."""
        lines = []
        while not lines or not lines[-1].startswith(word):
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the engine ended before {word}: {lines[-3:]}")
            lines.append(line.strip())
        return lines

    def answer(self, fen):
        """Returns the best move, nodes, score and line in a new game from this position."""
        self.tell("ucinewgame", f"position fen {fen}", f"go nodes {NODES}")
        *_, last, best = self.wait("bestmove")
        words = last.split()
        nodes, score = words.index("nodes"), words.index("score")
        return best, words[nodes : nodes + 2], words[score : score + 3], words[words.index("pv") :]

    def close(self):
        self.tell("quit")
        self.process.communicate(timeout=PATIENCE)


def positions(draw, count):
    """Returns different positions, four to forty random plies from the start."""
    found = {}
    while len(found) < count:
        board = chess.Board()
        for _ in range(draw.randint(4, 40)):
            if board.is_game_over():
                break
            board.push(draw.choice(list(board.legal_moves)))
        if not board.is_game_over():
            found[board.fen()] = None
    return list(found)


# Requests that a GUI may send in a position; each is answered with a move.
SEARCHES = (
    ["go nodes 40"], ["go movetime 20"], ["go infinite", "stop"],
    ["go ponder wtime 300 btime 300", "ponderhit"], ["go ponder wtime 300 btime 300", "stop"],
)
# Options with a non-default value, followed by their default.
OPTIONS = ("MultiPV", "3", "1"), ("UCI_ShowWDL", "true", "false"), ("Agent", "policy", "mcts"), ("Hash", "32", "256")


def disturb(engine, draw, fens):
    """Sends a few commands that leave all options unchanged."""
    for _ in range(draw.randint(1, 4)):
        place = f"position fen {draw.choice(fens)}"
        kind = draw.choice(["search", "search", "option", "perft", "new game"])
        if kind == "search":
            engine.tell(place, *draw.choice(SEARCHES))
            engine.wait("bestmove")
        elif kind == "option":
            name, value, default = draw.choice(OPTIONS)
            engine.tell(f"setoption name {name} value {value}", place, "go nodes 5")
            engine.wait("bestmove")
            engine.tell(f"setoption name {name} value {default}")
        elif kind == "perft":
            engine.tell(place, "go perft 2")
            engine.wait("Nodes searched")
        else:
            engine.tell("ucinewgame", "isready")
            engine.wait("readyok")


class RepeatabilityTest(ToolTest):
    def test_a_history_of_commands_changes_no_answer(self):
        program = binaries() / "tessera"
        draw = random.Random(18)
        fens = positions(draw, POSITIONS)
        fresh, used = Engine(program), Engine(program)
        self.addCleanup(used.close)
        self.addCleanup(fresh.close)
        for fen in fens:
            disturb(used, draw, fens)
            self.assertEqual(used.answer(fen), fresh.answer(fen), fen)


if __name__ == "__main__":
    unittest.main()

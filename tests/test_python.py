"""The Python package without PyTorch: positions, moves, ratings, and the engine for python-chess."""

import os
import subprocess
import sys
import unittest

from patience import PATIENCE
from tool_test import ROOT, binaries

sys.path.insert(0, str(ROOT / "python"))

import chess

import tessera_chess
from tessera_chess.positions import board_of, boards_of, ratings_of

# Starts the binary of the build as `tessera_chess.engine` starts that of the wheel.
STARTED = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(ROOT / "python")!r})
import chess, chess.engine, tessera_chess, tessera_chess.play as play
play.program = lambda: sys.argv[1]
play.environment = lambda: dict(os.environ)
engine = tessera_chess.engine(Backend="uniform")
"""

# A terminal and a notebook send the interrupt to the whole process group.
INTERRUPTED = STARTED + """
# A shell's background jobs ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt():
    while engine.protocol.command is None:
        time.sleep(0.01)
    os.killpg(os.getpgrp(), signal.SIGINT)

for search in (engine.play, engine.analyse):
    try:
        threading.Thread(target=interrupt).start()
        search(chess.Board(), chess.engine.Limit(time=3600))
    except KeyboardInterrupt:
        print("interrupted")
    print(engine.play(chess.Board(), chess.engine.Limit(nodes=1)).move is not None)
engine.quit()
"""

FORGOTTEN = STARTED + """
print(engine.play(chess.Board(), chess.engine.Limit(nodes=1)).move is not None)
"""


def run(program):
    """Runs a program in a process group of its own; returns what it did."""
    return subprocess.run(
        [sys.executable, "-c", program, binaries() / "tessera"],
        capture_output=True, text=True, timeout=PATIENCE, start_new_session=True, check=False,
    )


class PositionTest(unittest.TestCase):
    def test_a_position_is_a_board_or_a_fen(self):
        board = chess.Board()
        self.assertIs(board_of(board), board)
        self.assertEqual(board_of(board.fen()), board)
        boards = boards_of([board, board.fen()])
        self.assertEqual(boards, [board, board])
        self.assertEqual(boards_of(board.fen()), [board])
        shuffled = "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9"
        self.assertTrue(board_of(shuffled).chess960)
        self.assertFalse(board_of(board.fen()).chess960)

    def test_faulty_positions_are_named(self):
        for fen, reason in (
            ("8/8/8/8/8/8/8/8 w - - 0 1", "the board is empty"),
            ("8/8/8/8/8/8/8/K7 w - - 0 1", "a king is missing"),
            ("kk6/8/8/8/8/8/8/K7 w - - 0 1", "a side has more than one king"),
            ("k7/8/8/8/8/8/8/K6P w - - 0 1", "a pawn is on the first or last rank"),
            ("k7/8/8/8/8/8/8/K6r b - - 0 1", "the side to move could capture the king"),
        ):
            for position in (fen, chess.Board(fen)):
                with self.assertRaisesRegex(ValueError, f"cannot be played: {reason}"):
                    board_of(position)
        with self.assertRaisesRegex(ValueError, "'e2e4' is not a FEN: "):
            board_of("e2e4")
        for wrong in (5, None, [chess.Board()]):
            with self.assertRaisesRegex(TypeError, "a position is a chess.Board or a FEN, not "):
                board_of(wrong)
        with self.assertRaisesRegex(TypeError, "a position is a chess.Board or a FEN, not 5"):
            boards_of(5)
        for rows in (range(1000), [list(range(1000))]):
            with self.assertRaisesRegex(TypeError, "not (0|an object of type list)$"):
                boards_of(rows)

    def test_positions_that_no_game_reaches_are_accepted_as_in_the_engine(self):
        """They have too many pieces, or an impossible check."""
        for fen in ("QQQQQQQQ/QQ6/8/8/8/5k2/8/K7 b - - 0 1", "4k3/8/8/8/8/3n1n2/8/4K3 w - - 0 1"):
            self.assertEqual(board_of(fen).fen(), fen)

    def test_ratings_are_one_or_one_each(self):
        class Integer:  # as NumPy's integers
            def __index__(self):
                return 1500

        self.assertEqual(ratings_of(1500, 2), [1500, 1500])
        self.assertEqual(ratings_of(Integer(), 1), [1500])
        self.assertEqual(ratings_of([0, Integer()], 2), [0, 1500])
        for ratings, error in (
            (-1, "must be from 0"), (70000, "must be from 0"), (1500.5, "must be a whole number"),
            ("1500", "must be a whole number"), ([1500, None], "must be a whole number"),
            ([1500], "1 ratings were given for 2 positions"),
        ):
            with self.assertRaisesRegex(ValueError, error):
                ratings_of(ratings, 2)

    def test_moves_must_be_legal(self):
        board = chess.Board()
        move = chess.Move.from_uci("e2e4")
        index = tessera_chess.policy_index(board, move)
        self.assertEqual(tessera_chess.policy_index(board.fen(), move), index)
        self.assertEqual(tessera_chess.policy_move(board.fen(), index), move)
        for wrong in ("e2e5", "e7e5", "e2e4q"):
            with self.assertRaisesRegex(ValueError, f"{wrong} is not legal in "):
                tessera_chess.policy_index(board, chess.Move.from_uci(wrong))
        with self.assertRaisesRegex(TypeError, "a move must be a chess.Move, not 'e2e4': chess.Move.from_uci and "):
            tessera_chess.policy_index(board, "e2e4")


@unittest.skipUnless(hasattr(os, "killpg"), "process groups are Unix's")
class EngineTest(unittest.TestCase):
    def test_an_interrupt_ends_the_search_and_not_the_engine(self):
        done = run(INTERRUPTED)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.split(), ["interrupted", "True"] * 2)

    def test_a_program_ends_that_forgets_to_quit(self):
        done = run(FORGOTTEN)
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"))


if __name__ == "__main__":
    unittest.main()

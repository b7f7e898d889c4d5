"""Generated endgame positions are legal, have the requested material, and depend only on the seed."""

import subprocess
import sys
import unittest
from collections import Counter

from patience import PATIENCE
from tool_test import ROOT

import chess


def endings(*arguments, status=0):
    done = subprocess.run(
        [sys.executable, ROOT / "tools/endings", *arguments], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines() if status == 0 else done.stderr


def material(board, colour):
    pieces = board.piece_map().values()
    letters = (piece.symbol().upper() for piece in pieces if piece.color == colour)
    return "".join(sorted(letters, key="KQRBNP".index))


class EndingsTest(unittest.TestCase):
    def test_positions_are_quiet_and_of_both_colours(self):
        kinds = ("KRvK", "KQPvKR", "KPvKP")
        found = [chess.Board(f"{epd} 0 1") for epd in endings(*kinds, "--limit", "300")]
        self.assertEqual(len({board.epd() for board in found}), 300)
        seen = Counter()
        for number, board in enumerate(found):
            self.assertTrue(board.is_valid(), board.fen())
            self.assertFalse(board.is_check(), board.fen())
            first, second = kinds[number % 3].split("v")
            sides = {colour: material(board, colour) for colour in chess.COLORS}
            self.assertIn(tuple(sides.values()), ((first, second), (second, first)))
            seen[sides[chess.WHITE] == first, board.turn] += number % 3 != 2
            for move in board.legal_moves:
                self.assertFalse(board.is_capture(move), board.fen())
                board.push(move)
                self.assertFalse(board.is_checkmate() or board.is_stalemate(), board.fen())
                board.pop()
        # 200 positions with unequal sides: each combination of colour and side to move occurs in
        # about a quarter.
        self.assertEqual(len(seen), 4)
        self.assertTrue(all(30 < count < 70 for count in seen.values()), seen)

    def test_the_seed_decides(self):
        self.assertEqual(endings("KRvK", "--limit", "9"), endings("KRvK", "--limit", "9"))
        self.assertNotEqual(endings("KRvK", "--limit", "9"), endings("KRvK", "--limit", "9", "--seed", "2"))

    def test_mistakes_get_one_line(self):
        for wrong in ("KR", "KRvX", "RvK", "KRvKvK"):
            self.assertIn("is not an ending", endings(wrong, status=2))
        self.assertIn("no legal position", endings("KvK", "--limit", "1", status=1))


if __name__ == "__main__":
    unittest.main()

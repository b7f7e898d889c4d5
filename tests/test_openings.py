"""The openings of tools/match: every game is either read correctly or rejected with a precise error."""

import gzip
import os
import subprocess
import sys
import unittest

from patience import PATIENCE
from tool_test import ROOT, ToolTest

import chess
from arbiter import MatchError
from arbiter.openings import Openings

PAWNS = "4k2r/P7/8/3pP3/8/8/4P3/R3K2R w KQk d6 0 1"


class TestOpenings(ToolTest):
    def book(self, text, name="book.pgn", **options):
        data = text if isinstance(text, bytes) else text.encode()
        (self.folder / name).write_bytes(data)
        return Openings(self.folder / name, **options)

    def lines(self, text):
        """Returns the moves of each game, in UCI notation."""
        book = self.book(text)
        return [" ".join(move.uci() for move in book.board(number).move_stack) for number in range(len(book))]

    def refused(self, text, **options):
        with self.assertRaises(MatchError) as caught:
            self.book(text, **options).board(0)
        return str(caught.exception)

    def test_unreadable_games_are_named(self):
        for moves, reason in (
            ("1. e4 e5 2. Sf3 Sc6 3. d4 exd4 1-0", "number 1, line 1: `Sf3` at ply 3 is not a move"),
            ("1. e4 e5 2. Ke3 *", "`Ke3` at ply 3 is not a legal move"),
            ("1. Nf3 d5 2. d3 d4 3. Nd2 *", "`Nd2` at ply 5 is ambiguous"),
            ("1. a8Q Kg7", "`a8Q` at ply 1 is not a legal move"),
            ("1. e4 {never closed", "`{` at ply 2 is not a move"),
            ("1. e4 (1. d4 e5", "a variation has no end"),
            ("1. e4) e5", "`)` closes no variation"),
            ("1. e4 1-0 e5", "`e5` at ply 2 follows the result"),
            ("1. e4 e5 2. 0000 Nc6", "`0000` at ply 3 is a null move, with which the game ends"),
            ("1. e4 @@@@ 1-0", "`@@@@` at ply 2 is a null move"),
            ("[Variant \"Atomic\"]\n\n1. e4", "variant `Atomic` is not chess"),
        ):
            self.assertIn(reason, self.refused(moves))

    def test_dialects(self):
        moves = "e5d6 e8g8 a7a8q f8a8 a1a8 g8f7 e1g1 f7g6 e2e4"
        for text in (
            "1. exd6 O-O 2. a8=Q Rxa8 3. Rxa8+ Kf7 4. O-O Kg6 5. e4 *",
            "1. exd6e.p. 0-0 2. a8Q Rxa8 3. Rxa8 Kf7 4. 0-0 Kg6 5. e41-0",
            "1. exd6 e.p. o-o 2. a8(Q) Ra8 3. Ra8 Kf7 4. O–O Kg6 5. e2-e4 *",
            "1. e5xd6 ep O-O 2. a7-a8Q Rf8xa8 3. Ra1xa8+ Kg8-f7 4. 0–0 Kf7-g6 5. e2-e4 *",
            "1 e5d6 e8g8 2 a7a8q f8a8 3 a1a8 g8f7 4 e1g1 f7g6 5 e2e4",
            "1.exd6!(1.e4 Sf6)0-0{a}2.a8(Q)$1Rxa8!?3.Rxa8 +- Kf7 4.0-0 = Kg6\n%5. d4\n5.e4 N ± □",
        ):
            self.assertEqual(self.lines(f'[A "b "c" d"]\n[FEN "{PAWNS}"]\n\n{text}'), [moves], text)
        for null in ("--", "Z0", "null", "@@@@", "0000"):
            self.assertEqual(self.lines(f"1. e4 (1. {null} e5) e5 (1... {null} 2. d4) *"), ["e2e4 e7e5"])
        for unknown in ("?", "-", ""):
            tags = f'[Variant "{unknown}"]\n[FEN "{unknown}"]'
            self.assertEqual(self.lines(f"{tags}\n\n1. e4 e5"), ["e2e4 e7e5"])
        castling = "1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5"
        self.assertEqual(self.lines(f"{castling} 0-0")[0].count(" "), 6)
        self.assertEqual(self.lines(f'[Result "0-0"]\n\n{castling} 0-0 {{a}}')[0].count(" "), 5)

    def test_every_game_of_a_book(self):
        for text, lines in (
            ("1. e4 e5 1-0\n\n1. d4 d5 0-1\n", ["e2e4 e7e5", "d2d4 d7d5"]),
            ("1. e4 1-0\n1. d4\n1/2-1/2\n1.c4 *\n\n1. f4", ["e2e4", "d2d4", "c2c4", "f2f4"]),
            ("1. e4\r\n\r\n1... e5\r\n\r\n1. d4\r\n", ["e2e4 e7e5", "d2d4"]),
            ("{1. a4 *\n\n}1. e4 *\n\n{1. b4}\n% 1. c4\n\ne2e3", ["e2e4", "e2e3"]),
            ('[White "a"]\n\n1. e4\n [White "b"]\n[Event "?"]\n\n1. d4 *', ["e2e4", "d2d4"]),
            ("1. e4 e5 1-0 1. d4 d5 0-1 1. c4 *", ["e2e4 e7e5", "d2d4 d7d5", "c2c4"]),
            ("1.e4 e51-0 1.d4 d5*1 c4 c5 1/2-1/2 1.f4", ["e2e4 e7e5", "d2d4 d7d5", "c2c4 c7c5", "f2f4"]),
            ("1. e4 e5 1. d4 1. d5 1. c4 c5 (1... e5 2. g3)", ["e2e4 e7e5", "d2d4 d7d5", "c2c4 c7c5"]),
            ('[White "a"] 1. e4 e5 1-0 [White "b"] 1. d4', ["e2e4 e7e5", "d2d4"]),
            ("1. e4 {a 1-0 1. d4} (1. d4 d5 1-0) (1. c4) e5 1-0 1. d4", ["e2e4 e7e5", "d2d4"]),
            ("{a} e2e4 e7e5 1-0 d2d4 0-1 c2c4 *", ["e2e4 e7e5", "d2d4", "c2c4"]),
            ('[Event "?"]\n1. e4 {a\n[b]\n} *\n\n[Event "?"]\n\n1. d4', ["e2e4", "d2d4"]),
        ):
            self.assertEqual(self.lines(text), lines, text)

    def test_games_are_named_with_their_line(self):
        for text in ("1. e4 e5 1-0 1. d4 Sf6 *", "1. e4 e5 1-0\n\n\n% a\n1. d4 Sf6 *"):
            with self.assertRaises(MatchError) as caught:
                self.book(text).board(1)
            line = 1 + text[: text.index("d4")].count("\n")
            self.assertIn(f"number 2, line {line}: `Sf6` at ply 2", str(caught.exception))

    def test_books_are_recognised_by_content(self):
        fen = chess.Board().fen()
        for text in (fen, f"\ufeff{fen}\n", f"# a comment\n{fen}", '[White "a"]\n\n*', "\ufeff1. e4 *"):
            for data in (text.encode(), gzip.compress(text.encode())):
                book = self.book(data, "book", plies=0)
                self.assertEqual([len(book), book.board(0).fen()], [1, fen])
        self.assertIn("UTF-16", self.refused(fen.encode("utf-16")))
        self.assertIn("zstd", self.refused(b"\x28\xb5\x2f\xfd"))
        self.assertIn("book.pgn", self.refused(gzip.compress(b"1. e4")[:-9]))
        with self.assertRaises(MatchError):
            Openings(self.folder)

    def test_openings_are_not_overwritten(self):
        self.book("1. e4 *\n")
        (self.folder / "soft.pgn").symlink_to("book.pgn")
        os.link(self.folder / "book.pgn", self.folder / "hard.pgn")
        engines = ["--engine", "name=a,cmd=none", "--engine", "name=b,cmd=none", "--nodes", "1"]
        tuned = ["--engine", "cmd=none", "--option", "A=1,0,2,1,0.1", "--limit", "2", "--nodes", "1"]
        for output in ("book.pgn", "soft.pgn", "hard.pgn", "./book.pgn"):
            for tool, arguments in (
                ("match", [*engines, "--pgn", output, "--resume"]),
                ("match", [*engines, "--log", output]),
                ("tune", [*tuned, "--state", output, "--resume"]),
            ):
                done = subprocess.run(
                    [sys.executable, ROOT / "tools" / tool, *arguments, "--openings", "book.pgn"],
                    cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE,
                )
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{output} holds the openings", done.stderr)
        self.assertEqual((self.folder / "book.pgn").read_text(), "1. e4 *\n")


if __name__ == "__main__":
    unittest.main()

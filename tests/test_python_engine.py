"""`tessera_chess.engine` starts the real engine, or says why it would not play as told."""

import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tool_test import ROOT, binaries

import chess
import chess.engine

sys.path.insert(0, str(ROOT / "python"))

import tessera_chess
import tessera_chess.play


class EngineTest(unittest.TestCase):
    def setUp(self):
        program = str(binaries() / "tessera")
        patches = {"program": lambda: program, "environment": lambda: dict(os.environ)}
        for name, replacement in patches.items():
            patch = mock.patch.object(tessera_chess.play, name, replacement)
            patch.start()
            self.addCleanup(patch.stop)

    def test_it_plays(self):
        with tessera_chess.engine(Backend="uniform", Threads=1) as engine:
            played = engine.play(chess.Board(), chess.engine.Limit(nodes=2))
            self.assertIn(played.move, chess.Board().legal_moves)
            self.assertEqual(engine.timeout, 10)

    def test_what_it_cannot_do_is_an_exception(self):
        with tempfile.TemporaryDirectory() as folder:
            damaged = Path(folder) / "damaged.pt"
            damaged.write_text("no network")
            for options, named in [
                ({"Net": "/no/such/net.pt"}, "/no/such/net.pt"),
                ({"Net": str(damaged)}, "damaged.pt"),
                ({"HumanNet": "/no/such/people.pt", "UCI_LimitStrength": True}, "/no/such/people.pt"),
                # No machine has as many.
                ({"Device": "cuda:97"}, "CUDA"),
                ({"Backend": "uniform", "CPuct": "abc"}, "CPuct must be 0 to 100, not `abc`"),
                ({"Backend": "uniform", "Threads": None}, "Threads needs a value: omit the option for its default"),
                ({"Backend": "uniform", "LogFile": None}, "LogFile needs a value"),
                ({"Backend": "uniform", "SyzygyPath": "/no/such folder"}, "/no/such folder"),
            ]:
                with self.subTest(options), self.assertRaises(chess.engine.EngineError) as raised:
                    tessera_chess.engine(**options).quit()
                self.assertIn(named, str(raised.exception))

    def test_a_button_needs_no_value(self):
        with tessera_chess.engine(Backend="uniform", **{"Clear Hash": None}) as engine:
            self.assertEqual(engine.options["Clear Hash"].type, "button")

    def test_later_errors_are_logged(self):
        with tessera_chess.engine(Backend="uniform") as engine, self.assertLogs("tessera_chess") as logs:
            engine.configure({"CPuct": "abc"})
            engine.play(chess.Board(), chess.engine.Limit(nodes=1))
        self.assertIn("CPuct must be 0 to 100", logs.output[0])


if __name__ == "__main__":
    unittest.main()

"""tools/soak with an engine that crashes in every game."""

import shlex
import sys
import textwrap
import unittest

from tool_test import ToolTest

# When it should move, prints to standard error and exits.
ENGINE = textwrap.dedent(
    """
    import sys
    for line in sys.stdin:
        word = line.split()[0]
        if word == "uci":
            print("option name UCI_Chess960 type check default false\\nuciok", flush=True)
        elif word == "isready":
            print("readyok", flush=True)
        elif word == "go":
            sys.exit("out of order")
    """
)


class SoakTest(ToolTest):
    def test_faults_are_counted_by_kind_and_nothing_is_played_twice(self):
        (self.folder / "crashes.py").write_text(ENGINE)
        (self.folder / "book.pgn").write_text('[Event "?"]\n\n1. e4 c5 *\n\n')
        (self.folder / "960.epd").write_text("bqnbrkrn/pppppppp/8/8/8/8/PPPPPPPP/BQNBRKRN w GEge - hmvc 0;\n")
        command = ["-o", "soak", "--limit", "8", "--standard", "book.pgn", "--chess960", "960.epd"]
        command += ["--engine", f"cmd={shlex.join([sys.executable, 'crashes.py'])}"]
        said = self.run_tool("soak", *command, status=1)
        columns = "games | illegal move | no move | time loss | crash | hang | lines on standard error |"
        self.assertIn(f"| clock | chess | ponder | {columns}\n", said)
        self.assertIn("| 4+0.04 | Chess960 | yes | 2 | 0 | 0 | 0 | 2 | 0 | 2 |\n", said)
        self.assertIn("| all | | | **16** | **0** | **0** | **0** | **16** | **0** | **16** |\n", said)
        games = (self.folder / "soak/4+0.04-Chess960-ponder.pgn").read_text()
        self.assertIn('[Variant "Chess960"]', games)
        said = self.run_tool("soak", *command, status=1)
        self.assertIn("| all | | | **16** |", said)
        self.assertEqual((self.folder / "soak/4+0.04-Chess960-ponder.pgn").read_text(), games)


if __name__ == "__main__":
    unittest.main()

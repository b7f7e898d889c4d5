"""bench/labels with an engine that finds a mate only with enough nodes."""

import subprocess
import sys
import textwrap
import unittest

from patience import PATIENCE
from tool_test import ROOT, ToolTest

# Plays 1. Ra7, or with 1,000 nodes or more the mate in one.
ENGINE = textwrap.dedent(
    """\
    #!{python}
    import sys
    for line in sys.stdin:
        words = line.split()
        if words[0] == "uci":
            print("uciok", flush=True)
        elif words[0] == "isready":
            print("readyok", flush=True)
        elif words[0] == "go":
            found = int(words[words.index("nodes") + 1]) >= 1000
            print("bestmove", "b1b8" if found else "a1a7", flush=True)
        elif words[0] == "quit":
            break
    """
)
# Positions before the opponent's move h7g8, after which Rb8 mates; the second puzzle expects Ra7.
PUZZLES = """\
PuzzleId,FEN,Moves,Rating
1,8/5ppk/8/8/8/8/8/RR5K b - - 0 1,h7g8 b1b8,600
2,8/5ppk/8/8/8/8/8/RR5K b - - 0 1,h7g8 a1a7,600
"""


class LabelsTest(ToolTest):
    def test_right_moves_are_counted_by_nodes(self):
        engine = self.folder / "engine"
        engine.write_text(ENGINE.format(python=sys.executable))
        engine.chmod(0o755)
        puzzles = self.folder / "puzzles.csv"
        for text, shares in ((PUZZLES, ["50.0 %", "50.0 %"]), (PUZZLES[: PUZZLES.index("2,8")], ["0.0 %", "100.0 %"])):
            puzzles.write_text(text)
            command = [sys.executable, ROOT / "bench/labels", puzzles, "--engine", engine, "--nodes", "500", "1000"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = [row.strip("| ").split(" | ") for row in done.stdout.splitlines()[2:]]
            self.assertEqual(rows, [["500", shares[0]], ["1,000", shares[1]]])


if __name__ == "__main__":
    unittest.main()

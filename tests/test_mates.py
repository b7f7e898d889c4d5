"""bench/mates with an engine that announces a given mate."""

import subprocess
import sys
import textwrap
import unittest

from patience import PATIENCE
from tool_test import ROOT, ToolTest

# In every position, announces the mate in its first argument and the line in its second.
ENGINE = textwrap.dedent(
    """\
    #!{python}
    import sys
    for line in sys.stdin:
        word = line.split()[0]
        if word == "uci":
            print("option name Threads type spin default 1 min 1 max 8\\nuciok", flush=True)
        elif word == "isready":
            print("readyok", flush=True)
        elif word == "go":
            print("info depth 1 score {score} pv {line}\\nbestmove {move}", flush=True)
        elif word == "quit":
            break
    """
)
# Mate in two: 1. Ra7 Kg8 2. Rb8.
POSITION = "7k/8/8/8/8/8/R7/1R5K w - - bm #2;\n"


class MatesTest(ToolTest):
    def announced(self, score, line, status, position=POSITION, more=()):
        """Returns the counts in the table's row."""
        engine = self.folder / "engine"
        engine.write_text(ENGINE.format(python=sys.executable, score=score, line=line, move=line.split()[0]))
        engine.chmod(0o755)
        (self.folder / "suite.epd").write_text(position)
        command = [sys.executable, ROOT / "bench/mates", self.folder / "suite.epd", "--engine", engine, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return [int(cell) for cell in done.stdout.splitlines()[-1].strip("| ").split(" | ")]

    def test_only_lines_that_end_in_mate_are_believed(self):
        self.assertEqual(self.announced("mate 2", "a2a7 h8g8 b1b8", status=0), [1, 1, 1, 0, 0])
        self.assertEqual(self.announced("cp 900", "a2a7", status=0), [1, 0, 0, 0, 0])
        for score, line in (
            ("mate -2", "a2a7 h8g8 b1b8 g8h8"),
            ("mate 2", "a2a7 h8g8 b1a1"),
            ("mate 2", "a2a7 h8g8"),
            ("mate 1", "b1b8"),
            ("mate 3", "a2a7 h8g8 b1b8"),
        ):
            with self.subTest(f"{score} {line}"):
                self.assertEqual(self.announced(score, line, status=1)[4], 1)

    def test_a_judge_supplies_unknown_mates(self):
        bare = POSITION.replace(" bm #2;", "")
        (self.folder / "judge").write_text(
            ENGINE.format(python=sys.executable, score="mate 2", line="a2a7 h8g8 b1b8", move="a2a7")
        )
        (self.folder / "judge").chmod(0o755)
        judged = ["--judge", str(self.folder / "judge")]
        self.assertEqual(self.announced("mate 2", "a2a7 h8g8 b1b8", 0, bare, judged), [1, 1, 1, 0, 0])
        self.assertEqual(self.announced("mate -2", "a2a7 h8g8 b1b8 g8h8", 1, bare, judged)[4], 1)
        self.assertEqual(self.announced("cp 10", "a2a7", 0, bare, judged), [1, 0, 0, 0, 0])
        self.assertEqual(self.announced("cp 10", "a2a7", 0, bare), [0, 0, 0, 0, 0])


if __name__ == "__main__":
    unittest.main()

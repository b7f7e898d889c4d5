"""Common parts of the tests of tools."""

import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))


def lack(missing):
    """Skips the calling test, or fails it if everything is required."""
    if "TESSERA_REQUIRE_ALL" in os.environ:
        raise AssertionError(f"this test cannot run without {missing}")
    raise unittest.SkipTest(f"there is no {missing}")


try:
    import chess
except ImportError:
    lack("python-chess (tools/venv installs it)")

def binaries():
    """The folder of the newest build, or the one in TESSERA_BINARIES."""
    named = os.environ.get("TESSERA_BINARIES")
    folders = [Path(named)] if named else [ROOT / "target/release", ROOT / "target/debug"]
    built = [folder for folder in folders if all((folder / name).exists() for name in ("tessera", "tessera-train"))]
    if not built:
        lack("tessera and train in target/release or target/debug")
    return max(built, key=lambda folder: (folder / "tessera").stat().st_mtime)


def stated_sizes():
    """The sizes in MB that the guide states, by name."""
    _, _, table = (ROOT / "src/guide/install.md").read_text().partition("<!-- sizes -->\n")
    rows = [row.strip("| ").split(" | ") for row in table.partition("<!-- /sizes -->")[0].splitlines()[2:]]
    return {name: int(size) for name, size in rows}


WEAK_ENGINE = shlex.join([sys.executable, str(ROOT / "tests/python/weak_engine.py")])


class ToolTest(unittest.TestCase):
    """Runs tools in a temporary folder."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def enterContext(self, context):  # unittest provides it from Python 3.11 on
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def run_tool(self, name, *arguments, status=0):
        """The object that --json prints, or the error output of a failure."""
        done = subprocess.run(
            [sys.executable, ROOT / "tools" / name, *arguments, "--json"],
            cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout.splitlines()[-1]) if status == 0 else done.stderr

    def write_openings(self, name, count):
        """Writes this many different positions after four random plies."""
        draw, positions = random.Random(1), {}
        while len(positions) < count:
            board = chess.Board()
            for _ in range(4):
                board.push(draw.choice(list(board.legal_moves)))
            positions[board.epd()] = None
        (self.folder / name).write_text("".join(f"{epd}\n" for epd in positions))

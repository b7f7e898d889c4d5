"""tools/long-run with programs that only imitate the output of the real ones."""

import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent

# Trains: writes a checkpoint and a line, then waits for a signal. A branch ends on its own.
TRAIN = """#!/usr/bin/env python3
import json, signal, sys, time
from pathlib import Path
words = sys.argv[1:]
if words[0] == "export":
    Path(words[words.index("-o") + 1]).write_text("a network")
    sys.exit()
folder = Path(words[words.index("-o") + 1])
(folder / "checkpoints").mkdir(parents=True, exist_ok=True)
(folder / "words").write_text(" ".join(words))
(folder / "checkpoints/step-000000250.safetensors").write_text("a checkpoint")
line = dict(split="train", step=250, samples=32000, seconds=9, samples_per_second=1, policy=2.0)
(folder / "metrics.jsonl").write_text(json.dumps(line) + "\\n")
if folder.name.endswith("-branch"):
    sys.exit()
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
time.sleep(3600)
"""


@unittest.skipUnless(sys.platform == "linux", "processes are found by /proc")
class LongRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in ("tessera-train", "tessera"):
            program = self.folder / name
            program.write_text(TRAIN)
            program.chmod(0o755)
        self.config = self.folder / "tiny.toml"
        self.config.write_text('name = "tiny"\nbatch = 128\n', encoding="utf-8-sig")
        self.addCleanup(self.run_tool, "stop")

    def run_tool(self, *words):
        command = [ROOT / "tools/long-run", words[0], self.config, *words[1:], "--runs", self.folder / "runs"]
        command += ["--shards", self.folder, "--binaries", self.folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        return done.stdout + done.stderr

    def start(self):
        """Starts the run and waits for its first line; returns what the tool said."""
        said = self.run_tool("start")
        self.assertIn("is training", said)
        end = time.monotonic() + PATIENCE
        while "32,000 samples" not in said:
            self.assertLess(time.monotonic(), end, said)
            said = self.run_tool("status")
        return said

    def test_it_starts_once_reports_and_stops(self):
        self.assertIn("not training", self.run_tool("status"))
        first = self.start()
        again = self.run_tool("start")
        self.assertEqual(first.split(" process ")[1].split()[0], again.split(" process ")[1].split()[0])
        self.assertIn("not training", self.run_tool("stop"))

    def test_a_branch_decays_a_copy_and_leaves_the_run_alone(self):
        self.start()
        network = self.folder / "branch.pt"
        self.run_tool("branch", "-o", str(network), "--limit", "12800")
        self.assertEqual(network.read_text(), "a network")
        words = (self.folder / "runs/tiny-branch/words").read_text()
        self.assertIn("steps=350", words)
        self.assertIn(f"schedule.shape.decay={100 / 350}", words)
        self.assertIn("process", self.run_tool("status"))

    def test_a_branch_without_a_checkpoint_is_refused(self):
        said = self.run_tool("branch", "-o", "x.pt")
        self.assertIn("has no checkpoint yet", said)
        self.assertNotIn("Traceback", said)


if __name__ == "__main__":
    unittest.main()

"""Every tool documents its usage."""

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from patience import PATIENCE

TOOLS = Path(__file__).resolve().parent.parent / "tools"
sys.path.insert(0, str(TOOLS))

from arbiter.parser import Parser, count, seconds  # noqa: E402

# Builds the engine and then shows its help.
ENGINE = TOOLS / "tessera"


def tools():
    """Returns the programs in tools."""
    files = (path for path in sorted(TOOLS.rglob("*")) if path.is_file() and path != ENGINE)
    return [path for path in files if os.access(path, os.X_OK)]


class HelpTest(unittest.TestCase):
    def test_each_tool_prints_its_usage(self):
        self.assertGreater(len(tools()), 15)
        for tool in tools():
            for option in ("--help", "-h"):
                with self.subTest(tool=tool.name, option=option):
                    done = subprocess.run([tool, option], capture_output=True, text=True, timeout=PATIENCE)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(tool.name, done.stdout)
                    self.assertNotIn("#", done.stdout.splitlines()[0])

    def test_the_usage_needs_no_package(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = Path(folder) / "tools"
            shutil.copytree(TOOLS, alone, ignore=shutil.ignore_patterns("__pycache__"))
            for name in ("data", "endings", "match", "rank", "soak", "tune"):
                with self.subTest(tool=name):
                    # -S hides installed packages.
                    command = [sys.executable, "-S", alone / name, "--help"]
                    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"tools/{name}", done.stdout)
                    self.assertIn("tools/venv", done.stdout)


class NamesTest(unittest.TestCase):
    def parse(self, *words):
        """Returns the parsed arguments and the messages on standard error."""
        parser = Parser("", {"--games": "--limit", "--time": ("--time", "s"), "--config": ""})
        parser.prog = "tool"
        parser.add_argument("config", nargs="?")
        parser.add_argument("--limit", type=count)
        parser.add_argument("--time", type=seconds)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            return vars(parser.parse_args(words)), told.getvalue()

    def test_old_names_work_with_a_note(self):
        expected = {"config": "a.toml", "limit": 3, "time": 0.5}
        read, told = self.parse("a.toml", "--limit", "3", "--time", "500ms")
        self.assertEqual((read, told), (expected, ""))
        read, told = self.parse("--config", "a.toml", "--games=3", "--time", ".5")
        self.assertEqual(read, expected)
        self.assertEqual(len(told.splitlines()), 3)
        self.assertIn("tool: write --limit 3 in place of --games 3, which the next", told)
        self.assertIn("write --time .5s in place of --time .5,", told)

    def test_times_have_units(self):
        for text, value in (("500ms", 0.5), ("90s", 90), ("5m", 300), ("1.5h", 5400)):
            self.assertEqual(seconds(text), value)
        for text in ("90", "", "s", "-1s", "5 m", "1e3s"):
            with self.assertRaises(argparse.ArgumentTypeError):
                seconds(text)


if __name__ == "__main__":
    unittest.main()

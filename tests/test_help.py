"""Every tool documents its usage."""

import argparse
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

from arbiter.parser import seconds  # noqa: E402

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

    def test_only_the_usage_of_ray_loop_needs_no_ray(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = Path(folder) / "tools"
            shutil.copytree(TOOLS, alone, ignore=shutil.ignore_patterns("__pycache__"))

            def run(*arguments):
                command = [sys.executable, "-S", alone / "cluster/ray-loop", *arguments]
                return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

            self.assertIn("--reanalysers", run("--help").stdout)
            done = run("loop.toml", "--store", "store")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, "ray-loop: error: Python's ray is missing: pip install ray==2.60.0\n")


class TimesTest(unittest.TestCase):
    def test_times_have_units(self):
        for text, value in (("500ms", 0.5), ("90s", 90), ("5m", 300), ("1.5h", 5400)):
            self.assertEqual(seconds(text), value)
        for text in ("90", "", "s", "-1s", "5 m", "1e3s"):
            with self.assertRaises(argparse.ArgumentTypeError):
                seconds(text)


if __name__ == "__main__":
    unittest.main()

"""Every tool says how it is used."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent / "tools"
# Builds the engine, whose help it shows then.
ENGINE = TOOLS / "tessera"


def tools():
    """The programs among the tools."""
    files = (path for path in sorted(TOOLS.rglob("*")) if path.is_file() and path != ENGINE)
    return [path for path in files if os.access(path, os.X_OK)]


class HelpTest(unittest.TestCase):
    def test_each_tool_prints_its_usage(self):
        self.assertGreater(len(tools()), 15)
        for tool in tools():
            for option in ("--help", "-h"):
                with self.subTest(tool=tool.name, option=option):
                    done = subprocess.run([tool, option], capture_output=True, text=True, timeout=60)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(tool.name, done.stdout)
                    self.assertNotIn("#", done.stdout.splitlines()[0])

    def test_the_usage_needs_no_package(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = Path(folder) / "tools"
            shutil.copytree(TOOLS, alone, ignore=shutil.ignore_patterns("__pycache__"))
            for name in ("data", "endings", "match", "rank", "soak", "tune"):
                with self.subTest(tool=name):
                    # -S leaves packages out.
                    command = [sys.executable, "-S", alone / name, "--help"]
                    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"tools/{name}", done.stdout)
                    self.assertIn("tools/venv", done.stdout)


if __name__ == "__main__":
    unittest.main()

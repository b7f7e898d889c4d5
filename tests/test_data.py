"""tools/data with its own server and repository, without a network."""

import functools
import hashlib
import http.server
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
CONTENT = b"1. e4 e5 *\n"

try:
    import pooch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("pooch is missing: run tools/venv") from None


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class DataTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        served = self.folder / "served"
        served.mkdir()
        (served / "games.pgn").write_bytes(CONTENT)
        (served / "cut.pgn").write_bytes(CONTENT[:5])
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Quiet, directory=str(served))
        )
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.address = f"http://127.0.0.1:{server.server_port}"
        self.sources = self.folder / "sources.toml"
        self.sources.write_text(
            "".join(
                f'[[source]]\nname = "{name}"\nwhat = "{name}"\nterms = "CC0"\n{rest}\n'
                for name, rest in {
                    "games": self.url("games.pgn"),
                    "cut": self.url("cut.pgn"),
                    "gone": self.url("gone.pgn"),
                    "archive": self.archive(),
                    "own": 'made = "train label --play --limit 1"',
                    "puzzles": 'without = "they change"',
                }.items()
            )
        )

    def url(self, name):
        return f'url = "{self.address}/{name}"\nsha256 = "{hashlib.sha256(CONTENT).hexdigest()}"'

    def archive(self):
        """Creates a repository whose newest commit is not the requested one."""
        archive = self.folder / "archive"

        def git(*words):
            names = ["-c", "user.name=a", "-c", "user.email=a@b"]
            return subprocess.run(
                ["git", "-C", archive, *names, *words], check=True, capture_output=True, text=True
            ).stdout.strip()

        (archive / "wanted").mkdir(parents=True)
        git("init", "--quiet")
        git("config", "uploadpack.allowAnySHA1InWant", "true")
        (archive / "wanted/games.pgn").write_bytes(CONTENT)
        (archive / "unwanted.txt").write_text("large")
        git("add", ".")
        git("commit", "--quiet", "-m", "games")
        commit = git("rev-parse", "HEAD")
        (archive / "wanted/games.pgn").write_bytes(b"newer")
        git("commit", "--quiet", "-a", "-m", "newer")
        return f'git = "{archive.as_uri()}"\ncommit = "{commit}"\npaths = ["wanted"]'

    def data(self, *words, status=0):
        done = subprocess.run(
            [sys.executable, ROOT / "tools/data", "--sources", self.sources, *words],
            cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_files_are_fetched_and_checked(self):
        self.assertEqual(self.data("games").strip(), "data/games.pgn")
        path = self.folder / "data/games.pgn"
        self.assertEqual(path.read_bytes(), CONTENT)
        before = path.stat().st_mtime_ns
        self.data("games")
        self.assertEqual(path.stat().st_mtime_ns, before)
        path.write_bytes(b"mine")
        self.assertIn("move it away", self.data("games", status=2))
        self.assertEqual(path.read_bytes(), b"mine")

    def test_damaged_files_do_not_appear(self):
        self.assertIn("hash", self.data("cut", status=2))
        self.assertIn("404", self.data("gone", status=2))
        self.assertEqual(list((self.folder / "data").iterdir()), [])

    def test_a_commit_of_a_repository(self):
        for _ in range(2):
            self.assertEqual(self.data("archive", "-o", "there").strip(), "there/archive")
            archive = self.folder / "there/archive"
            self.assertEqual((archive / "wanted/games.pgn").read_bytes(), CONTENT)
            self.assertFalse((archive / "unwanted.txt").exists())
            (archive / "wanted/games.pgn").unlink()

    def test_unfetchable_sources_give_a_reason(self):
        listed = self.data()
        self.assertIn("not fetched: they change", listed)
        self.assertIn("made: train label --play --limit 1", listed)
        self.assertIn("they change", self.data("puzzles", status=2))
        self.assertIn("train label", self.data("own", status=2))
        self.assertIn("no source is named none", self.data("none", status=2))

    def test_the_list_that_ships_is_whole(self):
        self.sources = ROOT / "tools/sources.toml"
        self.assertIn("tcec", self.data())


if __name__ == "__main__":
    unittest.main()

"""tools/release --wheel: the installed wheel plays, serves, trains, and works in Python."""

import base64
import csv
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
import zipfile
import zlib
from email.parser import Parser
from pathlib import Path

from patience import PATIENCE
from tool_test import ROOT, binaries, lack, stated_sizes

TORCH = ROOT / ".libtorch"
NAME = re.compile(r"tessera_chess-\d+\.\d+\.\d+-py3-none-manylinux_2_(\d+)_(x86_64|aarch64)\.whl")
SIGNATURE = re.search(r"SIGNATURE: u64 = ([\d_]+);", (ROOT / "src/eval/bench.rs").read_text())[1].replace("_", "")

# The example from the package's documentation.
NOTEBOOK = """
import chess, tessera_chess

board = chess.Board()
network = tessera_chess.load("tessera-xs")
evaluation = network(board)
policy = tessera_chess.policy(board, evaluation.policy[0])
win, draw, loss = evaluation.wdl[0].tolist()
print(f"win {win:.1%}, draw {draw:.1%}, loss {loss:.1%}")
"""

# Prints the evaluations of 50 positions after random moves, one JSON object a line.
EVALUATE = """
import json, random, sys
import chess, tessera_chess

draw = random.Random(1)
boards = []
while len(boards) < 50:
    board = chess.Board()
    for _ in range(draw.randrange(80)):
        board.push(draw.choice(list(board.legal_moves)))
        if board.is_game_over():
            break
    else:
        boards.append(board)
elo = 1500 * ("self_elo" in (network := tessera_chess.load(sys.argv[1])).metadata["encoder"].get("scalars", ()))
evaluation = network(tessera_chess.encode(boards, elo, elo))
lists = [getattr(evaluation, name).tolist() for name in ("wdl", "q", "moves_left", "error")]
for board, wdl, q, moves_left, error in zip(boards, *lists):
    moves = [move.uci() for move in board.move_stack]
    print(json.dumps({"moves": moves, "wdl": wdl, "value": q, "moves_left": moves_left, "error": error}))
"""

TINY = """
name = "tiny"
preset = "cf-1m-gab"
steps = 2
batch = 8
[data]
shards = [{ path = "games.shard" }]
"""


def make(binaries, folder):
    """Builds a wheel in `folder`."""
    command = [sys.executable, ROOT / "tools/release", "--wheel", "--binaries", binaries, "-o", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return Path(done.stdout.strip())


@unittest.skipUnless(sys.platform == "linux", "wheels can only be made on Linux")
class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("patchelf", "strip", "objdump"):
            if shutil.which(program) is None:
                lack(program)
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.binaries = binaries()
        cls.wheel = make(cls.binaries, cls.folder)
        cls.venv = cls.folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", cls.venv], check=True)
        install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", cls.wheel]
        subprocess.run([sys.executable, "-m", "pip", "--python", cls.venv / "bin/python", *install], check=True)
        [cls.packages] = cls.venv.glob("lib/python*/site-packages")
        cls.has_torch = importlib.util.find_spec("torch") is not None
        # Uses python-chess, and PyTorch if present, from the tests' environment.
        chess = Path(importlib.util.find_spec("chess").origin).parents[1]
        (cls.packages / "tests.pth").write_text(f"{chess}\n")
        if not cls.has_torch:
            cls.add_libtorch()

    @classmethod
    def add_libtorch(cls):
        """Installs libtorch in place of PyTorch, whose Python package takes gigabytes."""
        (cls.packages / "torch").mkdir()
        (cls.packages / "torch/__init__.py").touch()
        (cls.packages / "torch/lib").symlink_to(TORCH / "torch/lib")
        information = cls.packages / "torch-2.11.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n")

    def run_program(self, name, *arguments, **options):
        options = {"cwd": self.folder, "env": {"PATH": "/usr/bin:/bin"}, "timeout": PATIENCE, **options}
        return subprocess.run([self.venv / "bin" / name, *arguments], capture_output=True, text=True, **options)

    def read(self, name):
        with zipfile.ZipFile(self.wheel) as archive:
            [found] = [inside for inside in archive.namelist() if inside.endswith(name)]
            return archive.read(found).decode()

    def test_the_name_states_the_oldest_system(self):
        glibc = int(NAME.fullmatch(self.wheel.name)[1])
        newest = 0
        for name in ("tessera", "tessera-train"):
            symbols = subprocess.run(
                ["objdump", "-T", self.packages / "tessera_chess" / name], capture_output=True, text=True, check=True
            ).stdout
            newest = max([newest, *(int(minor) for minor in re.findall(r"\(GLIBC_2\.(\d+)", symbols))])
        # PyTorch itself requires glibc 2.28.
        self.assertGreaterEqual(glibc, max(newest, 28))
        self.assertIn(f"\nTag: py3-none-manylinux_2_{glibc}_", self.read("dist-info/WHEEL"))

    def test_the_guide_states_the_size_and_the_name(self):
        is_release = self.binaries.name == "release"
        size = self.wheel.stat().st_size / 1e6
        if not is_release:  # unlike a wheel's own engine, this one contains two of the networks
            nets = [ROOT / "nets" / f"{name}.pt" for name in ("tessera-xs", "tessera-human")]
            nets = sum(len(zlib.compress(net.read_bytes())) for net in nets) / 1e6
            with zipfile.ZipFile(self.wheel) as archive:
                programs = [it for it in archive.infolist() if Path(it.filename).name in ("tessera", "tessera-train")]
            whole, packed = (sum(getattr(it, name) for it in programs) / 1e6 for name in ("file_size", "compress_size"))
            # As if the programs had the documented size.
            size += (packed - nets) * stated_sizes()["`tessera` and `tessera-train`"] / (whole - nets) - packed
        self.assertAlmostEqual(size, stated_sizes()["the wheel"], delta=(0.05 if is_release else 0.1) * size)
        if is_release:
            for page in ("install.md", "python.md"):
                self.assertIn(self.wheel.name, (ROOT / "src/guide" / page).read_text())

    def test_the_record_is_whole(self):
        with zipfile.ZipFile(self.wheel) as archive:
            rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(self.read("dist-info/RECORD")))}
            self.assertEqual(set(rows), set(archive.namelist()))
            for name, (digest, size) in rows.items():
                content = archive.read(name)
                if name.endswith("RECORD"):
                    continue
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), (f"sha256={expected}", len(content)), name)
            names = archive.namelist()
        for name in ("nets/tessera-s.pt", "nets/configs/loop-zero.toml", "examples/probe.py", "py.typed", "licenses/LICENSE",
                     "licenses/crates.txt", "licenses/rust.html", "man/man1/tessera-train.1",
                     "bash-completion/completions/tessera", "bash-completion/completions/tessera-train"):
            self.assertEqual(sum(inside.endswith(f"/{name}") for inside in names), 1, name)
        bill = json.loads(self.read("sboms/sbom.cdx.json"))
        self.assertIn("tessera", {entry["name"] for entry in bill["components"]})

    def test_the_metadata_fits_the_build(self):
        metadata = Parser().parsestr(self.read("dist-info/METADATA"))
        libtorch = re.search(r'^VERSION = "(\d+\.\d+)\.', (ROOT / "tools/setup").read_text(), re.MULTILINE)[1]
        self.assertIn(f"torch=={libtorch}.*", metadata.get_all("Requires-Dist"))
        self.assertEqual(metadata["License-Expression"], "GPL-3.0-or-later")
        with zipfile.ZipFile(self.wheel) as archive:
            for file in metadata.get_all("License-File"):
                self.assertTrue(any(name.endswith(f"licenses/{file}") for name in archive.namelist()), file)
        self.assertIn("tessera_chess.load", metadata.get_payload())
        module = (ROOT / "python/tessera_chess/programs.py").read_text()
        self.assertIn(f'_TORCH = "{libtorch}"', module)

    def test_the_same_programs_make_the_same_wheel(self):
        again = self.folder / "again"
        again.mkdir()
        other = make(self.binaries, again)
        self.assertEqual(self.wheel.read_bytes(), other.read_bytes())
        digest = hashlib.sha256(other.read_bytes()).hexdigest()
        self.assertEqual(Path(f"{other}.sha256").read_text(), f"{digest}  {other.name}\n")

    def test_the_engine_plays_and_measures(self):
        done = self.run_program("tessera", "bench", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(str(json.loads(done.stdout)["nodes"]), SIGNATURE)
        done = self.run_program("python", "-m", "tessera_chess", input="go nodes 10\nquit\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("\nbestmove ", done.stdout)

    def test_it_serves(self):
        command = [self.venv / "bin/tessera", "serve", "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        lines = iter(server.stdout.readline, "")
        address = next(found[0] for found in map(re.compile(r"http://\S+:\d+").search, lines) if found)
        end = time.monotonic() + 60
        while self.run_program("tessera", "serve", "--check", address.partition("//")[2]).returncode != 0:
            self.assertLess(time.monotonic(), end, "it is not ready")
        request = urllib.request.Request(
            f"{address}/v1/move", b'{"moves": ["e4"], "agent": "policy"}', {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            self.assertIn("uci", answer.read().decode())

    def test_it_trains(self):
        done = self.run_program("tessera-train", "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Usage: tessera-train", done.stdout)
        games = ROOT / "tests/games/master-games.pgn"
        done = self.run_program("tessera-train", "pack", games, "--played", "-o", "games.shard")
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "tiny.toml").write_text(TINY)
        done = self.run_program("tessera-train", "run", "tiny.toml")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_program("tessera-train", "export", "runs/tiny", "-o", "tiny.pt")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "tiny.pt").is_file())

    def test_the_tools_are_commands(self):
        for name in ("match", "rank", "tune", "league", "ray-loop", "slurm-worker"):
            done = self.run_program(f"tessera-{name}", "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertRegex(done.stdout, rf"\btessera-{name} ")
            self.assertNotIn("tools/", done.stdout)
            self.assertNotIn("target/", done.stdout)
        engines = ["--each", f"cmd={self.venv / 'bin/tessera'},nodes=1", "--engine", "name=one", "--engine", "name=two"]
        done = self.run_program("tessera-match", *engines, "--limit", "2", "--pgn", "games.pgn")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_program("tessera-rank", "games.pgn", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("one", done.stdout)
        self.assertIn("kind: Job", self.read("share/tessera/kubernetes.yaml"))

    def test_python_chess_plays(self):
        program = "import tessera_chess, chess\nfrom chess.engine import Limit\n" \
            "with tessera_chess.engine(UCI_LimitStrength=True, UCI_Elo=1500) as engine:\n" \
            "    print(engine.play(chess.Board(), Limit(nodes=1)).move)\n"
        done = self.run_program("python", "-c", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^[a-h][1-8][a-h][1-8]\n$")

    def test_the_package_has_a_version_and_two_programs(self):
        program = "import tessera_chess\nprint(tessera_chess.__version__)\ntessera_chess.program('bogus')\n"
        done = self.run_program("python", "-c", program)
        self.assertIn(f"-{done.stdout.strip()}-", self.wheel.name)
        self.assertEqual(done.stderr.splitlines()[-1], "ValueError: there is no program 'bogus': name one of tessera, tessera-train")

    def test_networks_that_read_other_rows_are_refused(self):
        program = "import tessera_chess\n" \
            "encoder = {'kind': 'planes', 'format': 3}\n" \
            "tessera_chess.Network(None, {'name': 'theirs', 'encoder': encoder}, 'cpu')\n"
        done = self.run_program("python", "-c", program)
        error = done.stderr.splitlines()[-1]
        self.assertEqual(error, "ValueError: theirs reads input format 3, and encode writes format 1")

    def test_pytorch_elsewhere_is_found(self):
        if self.has_torch:
            done = self.run_program("tessera", "bench", "--nodes", "1", "--backend", "uniform")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        text = (self.packages / "torch-2.11.0.dist-info/METADATA").read_text()
        # Runs after the folders have been moved back.
        self.addCleanup((self.packages / "torch-2.11.0.dist-info/METADATA").write_text, text)
        moved = [self.packages / "torch", self.packages / "torch-2.11.0.dist-info"]
        for path in moved:
            path.rename(elsewhere / path.name)
            self.addCleanup((elsewhere / path.name).rename, path)
        done = self.run_program("tessera", "--version", env={"PYTHONPATH": str(elsewhere)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.run_program("tessera", "--version")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "tessera: error: PyTorch is missing: pip install 'torch==2.11.*'\n")
        metadata = elsewhere / "torch-2.11.0.dist-info/METADATA"
        metadata.write_text(text.replace("2.11.0", "2.12.0"))
        done = self.run_program("tessera-train", "--version", env={"PYTHONPATH": str(elsewhere)})
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1))
        self.assertIn("PyTorch 2.12.0 is installed, and Tessera needs 2.11", done.stderr)

    def test_a_notebook_evaluates_a_network(self):
        if not self.has_torch:
            self.skipTest("PyTorch is gigabytes, and tools/test --torch installs it; tests/python_package.rs has the rows")
        guide = (ROOT / "src/guide/python.md").read_text()
        self.assertIn(NOTEBOOK.strip(), guide)
        check = (
            "import json\n"
            "print(json.dumps({'policy': {m.uci(): p for m, p in policy.items()},"
            " 'names': list(evaluation.raw), 'two': tessera_chess.encode([board, board]).shape,"
            " 'human': list(tessera_chess.load('tessera-human').raw(tessera_chess.encode(board, 1500, 1500)))}))"
        )
        done = self.run_program("python", "-c", NOTEBOOK + check)
        self.assertEqual(done.returncode, 0, done.stderr)
        printed, found = done.stdout.splitlines()
        found = json.loads(found)
        done = self.run_program("tessera", "eval", "--precision", "f32", "--json")
        evaluated = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(printed, "win {:.1%}, draw {:.1%}, loss {:.1%}".format(*evaluated["wdl"]))
        self.assertEqual(set(found["policy"]), set(evaluated["policy"]))
        for move, chance in evaluated["policy"].items():
            self.assertAlmostEqual(found["policy"][move], chance, delta=1e-4)
        self.assertEqual(found["two"], [2, 113])
        self.assertEqual(found["names"], found["human"])
        done = self.run_program("python", "-c", "import tessera_chess; tessera_chess.load('tessera')")
        self.assertIn("name one of tessera-diffusion, ", done.stderr.splitlines()[-1])

    def test_every_network_evaluates_as_the_engine_does(self):
        if not self.has_torch:
            self.skipTest("PyTorch is gigabytes, and tools/test --torch installs it; tests/python_package.rs has the values")
        for file in sorted((ROOT / "nets").glob("*.pt")):
            if file.stem == "tessera-gpt":  # has no evaluation
                continue
            done = self.run_program("python", "-c", EVALUATE, file.stem)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(len(lines), 50)
            for line in lines:
                position = ["--moves", ",".join(line["moves"])] if line["moves"] else []
                done = self.run_program("tessera", "eval", "--net", file, "--precision", "f32", "--json", *position)
                self.assertEqual(done.returncode, 0, done.stderr)
                evaluated = json.loads(done.stdout.splitlines()[-1])
                pairs = [*zip(line["wdl"], evaluated["wdl"])]
                pairs += [(line[name], evaluated[name]) for name in ("value", "error")]
                for found, expected in pairs:
                    self.assertAlmostEqual(found, expected, delta=1e-4, msg=f"{file.stem}: {line['moves']}")
                self.assertAlmostEqual(line["moves_left"], evaluated["moves_left"], delta=0.05)

    def test_every_network_runs_in_python(self):
        if not self.has_torch:
            self.skipTest("PyTorch is gigabytes, and tools/test --torch installs it")
        program = "import chess, torch, tessera_chess\n" \
            "for file in sorted(tessera_chess.NETS.glob('*.pt')):\n" \
            "    network = tessera_chess.load(file.stem)\n" \
            "    rows = (tessera_chess.encode(chess.Board()),)\n" \
            "    if network.metadata['encoder']['kind'] == 'moves':\n" \
            "        rows = torch.zeros(1, 4, dtype=torch.int64), torch.zeros(1, 1, 2), torch.zeros(1, 1).long()\n" \
            "    assert all(output.dtype == torch.float32 for output in network.raw(*rows).values()), file\n" \
            "    print(file.stem)\n"
        done = self.run_program("python", "-c", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), sorted(file.stem for file in (ROOT / "nets").glob("*.pt")))

    def test_another_libtorch_on_the_search_path_does_no_harm(self):
        other = self.folder / "other"
        other.mkdir()
        for name in ("libc10.so", "libtorch_cpu.so"):
            (other / name).write_text("no library")
        done = self.run_program("tessera", "--version", env={"LD_LIBRARY_PATH": str(other)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_network_that_cannot_be_loaded_is_an_error(self):
        damaged = bytearray((ROOT / "nets/tessera-xs.pt").read_bytes())
        damaged[len(damaged) // 2] ^= 1
        for name, content, error in (
            ("damaged.pt", damaged, "ValueError: damaged.pt is damaged: the checksum of "),
            ("text.pt", b"text", "ValueError: text.pt is damaged, or not a network"),
        ):
            (self.folder / name).write_bytes(content)
            done = self.run_program("python", "-c", f"import tessera_chess; tessera_chess.load('{name}')")
            self.assertIn(error, done.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()

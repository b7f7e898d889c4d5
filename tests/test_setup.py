"""tools/setup and tools/tessera in a temporary folder, with fake versions of pip, cargo and rustc:
no network is needed and nothing is built."""

import base64
import hashlib
import io
import json
import os
import re
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

from patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent

# Writes small versions of the files in the real wheels. FAKE_PIP selects a fault.
PIP = textwrap.dedent(
    """
    import os, sys, tempfile, time, zipfile
    if "--version" in sys.argv:
        sys.exit()
    with open(os.environ["CALLS"], "a") as calls:
        print("pip", sys.argv[2], file=calls)
    fault = os.environ.get("FAKE_PIP", "")
    if fault == "no network":
        print("WARNING: Retrying: Failed to establish a new connection: NewConnectionError")
        print("ERROR: No matching distribution found for torch")
        sys.exit(1)
    if fault == "disk full":
        print("ERROR: Could not install: [Errno 28] No space left on device")
        sys.exit(1)
    if fault == "slow":
        time.sleep(3600)
    name, version = sys.argv[2].replace("-", "_").split("==")
    files = ["nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcupti.so.13"]
    files += [f"nvidia/{name}/lib/lib{name}.so.1", "nvidia/cu13/include/cuda.h"]
    licence = f"{name}-{version}.dist-info/licenses/LICENSE"
    if name == "torch":
        files = ["libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libtorch.so", "libtorch_cuda.so"]
        files = ["torch/lib/" + file for file in files] + ["torch/__init__.py", "torch/include/ATen/a.h"]
    folder = sys.argv[sys.argv.index("--dest") + 1]
    os.makedirs(folder)
    wheel = f"{name}-{version}-py3-none-any.whl"
    print(f"Downloading {wheel} (1.0 MB)", flush=True)
    time.sleep(0.2)
    if fault == "restless":  # temporary folders come and go, as pip's do
        end = time.time() + 1
        while time.time() < end:
            with tempfile.TemporaryDirectory() as folders:
                for index in range(100):
                    os.makedirs(os.path.join(folders, str(index), "unpack"))
    with zipfile.ZipFile(os.path.join(folder, wheel), "w") as archive:
        for file in [*files, licence]:
            archive.writestr(file, file)
    if fault == "damaged" and name == "torch":
        with open(os.path.join(folder, wheel), "r+b") as file:
            file.truncate(100)
    """
)

# Packs the sandbox's version of a package. FAKE_NPM selects a fault.
NPM = textwrap.dedent(
    """\
    #!/bin/sh
    echo "npm $2" >>"$CALLS"
    case "${FAKE_NPM-}" in
        'no network') echo 'npm ERR! code ENOTFOUND' >&2; exit 1 ;;
        other) echo other >"$4/other.tgz" ;;
        *) cp "$PACKAGES/$(echo "$2" | tr / -).tgz" "$4" ;;
    esac
    """
)
PACKAGES = {
    "chessground@9.2.1": ["dist/chessground.min.js", "dist/board.js", "assets/chessground.base.css", "LICENSE"],
    "chessops@0.15.1": ["dist/esm/chess.js", "dist/cjs/chess.js", "LICENSE.txt"],
    "@badrap/result@0.3.1": ["dist/mjs/index.mjs", "LICENSE"],
    "stockfish@19.0.0": [
        *(f"bin/stockfish-19{kind}.{end}" for kind in ("", "-lite", "-lite-single") for end in ("js", "wasm")),
        "Copying.txt", "README.md",
    ],
}

CARGO = textwrap.dedent(
    """\
    #!/bin/sh
    echo "cargo $1" >>"$CALLS"
    echo "noise of cargo"
    [ "${FAKE_CARGO-}" != "no $1" ] || exit 101
    [ "$1" = build ] || exit 0
    cat # must find no input
    printf '#!/bin/sh\\necho "engine $*"\\nexec cat\\n' >"$PWD/target/release/tessera"
    chmod +x "$PWD/target/release/tessera"
    """
)


class Sandbox(unittest.TestCase):
    def setUp(self):
        if platform.system() != "Linux":
            self.skipTest("only for Linux")
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.root = self.folder / "tessera"
        (self.root / "src").mkdir(parents=True)
        (self.root / "tools").mkdir()
        for name in ("setup", "tessera"):
            shutil.copy(ROOT / "tools" / name, self.root / "tools")
        for name in ("Cargo.toml", "Cargo.lock", "build.rs"):
            shutil.copy(ROOT / name, self.root)
        shutil.copytree(ROOT / ".cargo", self.root / ".cargo")
        (self.root / "nets").mkdir()
        (self.folder / "python/pip").mkdir(parents=True)
        (self.folder / "python/pip/__main__.py").write_text(PIP)
        (self.folder / "python/pip/__init__.py").touch()
        (self.folder / "bin").mkdir()
        self.pack()
        for name, text in (("cargo", CARGO), ("npm", NPM), ("rustc", "#!/bin/sh\necho rustc 1.95.0; echo host: here\n")):
            (self.folder / "bin" / name).write_text(text)
            (self.folder / "bin" / name).chmod(0o755)
        (self.folder / "bin/python3").symlink_to(sys.executable)
        self.calls = self.folder / "calls"
        self.calls.touch()
        self.environment = {
            **os.environ,
            "PATH": f"{self.folder}/bin:/usr/bin:/bin",
            "PYTHONPATH": str(self.folder / "python"),
            "CALLS": str(self.calls),
            "PACKAGES": str(self.folder / "packages"),
        }
        self.environment.pop("LIBTORCH", None)

    def pack(self):
        """Creates small packages, and makes tools/setup expect them."""
        (self.folder / "packages").mkdir()
        setup = self.root / "tools/setup"
        text = setup.read_text()
        for package, files in PACKAGES.items():
            path = self.folder / "packages" / f"{package.replace('/', '-')}.tgz"
            with tarfile.open(path, "w:gz") as archive:
                for name in files:
                    content = f"import '@badrap/result'; // {name}".encode()
                    member = tarfile.TarInfo(f"package/{name}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
            digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
            name, version = package.rsplit("@", 1)
            text, count = re.subn(
                rf'("{name}",\s+"{re.escape(version)}",\s+"sha512-)[^"]+', lambda it: it[1] + digest, text
            )
            self.assertEqual(count, 1, package)
        setup.write_text(text)

    def start(self, tool, *arguments, **environment):
        return subprocess.Popen(
            [self.root / "tools" / tool, *arguments],
            cwd="/", env={**self.environment, **environment}, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # A shell's background jobs, which may include these tests, ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run_tool(self, tool, *arguments, said="", **environment):
        process = self.start(tool, *arguments, **environment)
        out, error = process.communicate(said, timeout=PATIENCE)
        return process.returncode, out, error

    def called(self, name):
        return self.calls.read_text().splitlines().count(name)


class SetupTest(Sandbox):
    def fails(self, reason, *arguments, **environment):
        status, out, error = self.run_tool("setup", *arguments, **environment)
        self.assertEqual((status, out), (1, ""), error)
        errors = [line for line in error.splitlines() if "error" in line]
        self.assertEqual(len(errors), 1, error)
        self.assertIn(reason, errors[0])
        self.assertNotIn("Traceback", error)

    def test_keeps_the_cpu_files_and_then_returns_at_once(self):
        status, out, error = self.run_tool("setup")
        self.assertEqual((status, out), (0, ""), error)
        home = self.root / ".libtorch"
        self.assertEqual(
            sorted(path.name for path in (home / "torch/lib").iterdir()),
            ["libc10.so", "libgomp.so.1", "libtorch.so", "libtorch_cpu.so"],
        )
        self.assertIn("-ltorch_cpu", (home / "torch/lib/libtorch.so").read_text())
        self.assertEqual((home / "torch/build-version").read_text(), "2.11.0\n")
        self.assertTrue((home / "torch/include/ATen/a.h").exists())
        self.assertFalse((home / "torch/__init__.py").exists())
        self.assertEqual(
            sorted(path.name for path in home.iterdir()), ["installed.json", "licences", "lock", "nvidia", "torch"],
        )
        self.assertEqual(
            sorted(str(path.relative_to(home / "licences")) for path in (home / "licences").rglob("LICENSE")),
            ["nvidia_cuda_cupti/LICENSE", "nvidia_cuda_runtime/LICENSE", "torch/LICENSE"],
        )
        before = self.calls.read_text()
        self.assertEqual(self.run_tool("setup")[0], 0)
        self.assertEqual(self.calls.read_text(), before)
        self.assertEqual(self.run_tool("setup", "--check")[0], 0)

    def test_fetches_the_board_once(self):
        self.assertEqual(self.run_tool("setup")[0], 0)
        board = self.root / ".board"
        self.assertEqual(
            sorted(str(path.relative_to(board)) for path in board.rglob("*") if path.is_file()),
            ["chessground.base.css", "chessground.js", "chessops/chess.js", "installed.json",
             "licences/chessground", "licences/chessops", "licences/result", "result.js"],
        )
        # Browsers do not resolve package names.
        self.assertIn("'/board/result.js'", (board / "chessops/chess.js").read_text())
        self.assertEqual(self.run_tool("setup")[0], 0)
        self.assertEqual(self.called("npm chessops@0.15.1"), 1)

    def test_fetches_stockfish_for_the_browser_on_request(self):
        self.assertEqual(self.run_tool("setup")[0], 0)
        stockfish = self.root / ".stockfish"
        # build.rs watches the folder, and cargo would compile everything at each start without it.
        self.assertEqual(list(stockfish.iterdir()), [])
        status, _, error = self.run_tool("setup", "--check")
        self.assertEqual((status, "missing: Stockfish for the browser" in error), (0, True), error)
        self.assertEqual(self.run_tool("setup", "--check", "--stockfish")[0], 1)
        for fault, reason in (("no network", "no network"), ("other", "than was expected")):
            status, _, error = self.run_tool("setup", "--stockfish", FAKE_NPM=fault)
            self.assertEqual((status, reason in error.splitlines()[-1]), (1, True), error)
            self.assertEqual(list(stockfish.iterdir()), [])
        for _ in range(2):
            self.assertEqual(self.run_tool("setup", "--stockfish")[0], 0)
        self.assertEqual(
            sorted(str(path.relative_to(stockfish)) for path in stockfish.rglob("*") if path.is_file()),
            ["installed.json", "licences/Copying.txt", "licences/README.md",
             "stockfish-19.0.0-lite.js", "stockfish-19.0.0-lite.wasm"],
        )
        self.assertIn("bin/stockfish-19-lite-single.wasm", (stockfish / "stockfish-19.0.0-lite.wasm").read_text())
        self.assertEqual(self.called("npm stockfish@19.0.0"), 3)
        self.assertEqual(self.run_tool("setup", "--check", "--stockfish")[0], 0)

    def test_without_the_board_everything_else_works(self):
        for fault, reason in (("no network", "no network"), ("other", "than was expected")):
            status, _, error = self.run_tool("setup", FAKE_NPM=fault)
            self.assertEqual(status, 0, error)
            self.assertIn(reason, error.splitlines()[-1])
            self.assertEqual(list((self.root / ".board").iterdir()), [])
            self.assertTrue((self.root / ".libtorch/torch").exists())
        self.assertEqual([path.name for path in self.root.glob(".board*")], [".board"])
        status, _, error = self.run_tool("setup", "--check")
        self.assertEqual((status, "missing: the web board" in error), (0, True), error)

    def test_cuda_replaces_the_cpu_and_serves_it(self):
        self.assertEqual(self.run_tool("setup")[0], 0)
        self.assertEqual(self.run_tool("setup", "--check", "--cuda")[0], 1)
        self.assertEqual(self.run_tool("setup", "--cuda")[0], 0)
        home = self.root / ".libtorch"
        self.assertTrue((home / "torch/lib/libtorch_cuda.so").exists())
        self.assertTrue(list(home.glob("nvidia/*/lib/libnvidia_cudnn_cu13.so.1")))
        self.assertIn("-ltorch_cpu", (home / "torch/lib/libtorch.so").read_text())
        self.assertEqual(json.loads((home / "installed.json").read_text())["kind"], "cuda")
        before = self.calls.read_text()
        self.assertEqual(self.run_tool("setup")[0], 0)
        self.assertEqual(self.calls.read_text(), before)

    def test_two_at_once_fetch_once(self):
        both = [self.start("setup"), self.start("setup")]
        for process in both:
            self.assertEqual(process.communicate(timeout=PATIENCE)[0], "")
            self.assertEqual(process.returncode, 0)
        self.assertEqual(self.called("pip torch==2.11.0"), 1)

    def test_an_interrupted_setup_resumes_and_leaves_nothing_behind(self):
        process = self.start("setup", FAKE_PIP="slow")
        deadline = time.monotonic() + PATIENCE
        while not self.calls.read_text():
            self.assertLess(time.monotonic(), deadline, "pip was not called")
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        error = process.communicate(timeout=PATIENCE)[1]
        self.assertEqual(process.returncode, 130)
        self.assertIn("run again", error.splitlines()[-1])
        self.assertEqual(list((self.root / ".libtorch/download").iterdir()), [])
        self.assertEqual(self.run_tool("setup")[0], 0)

    def test_folders_of_pip_may_vanish_while_progress_is_shown(self):
        status, _, error = self.run_tool("setup", FAKE_PIP="restless")
        self.assertEqual(status, 0, error)

    def test_each_fault_gets_one_line(self):
        self.fails("no network", FAKE_PIP="no network")
        self.fails("disk full", FAKE_PIP="disk full")
        self.fails("damaged", FAKE_PIP="damaged")
        self.fails("C++ compiler is missing", CXX="/nonexistent/c++")
        (self.folder / "bin/rustc").write_text("#!/bin/sh\necho rustc 1.60.0\n")
        self.fails("rustup update")
        (self.folder / "bin/cargo").unlink()
        self.fails("rustup.rs")

    def test_a_libtorch_of_the_users_own_is_respected(self):
        own = self.folder / "own"
        for name in ("lib", "include"):
            (own / name).mkdir(parents=True)
        (own / "build-version").write_text("2.11.0+cu130\n")
        self.assertEqual(self.run_tool("setup", LIBTORCH=str(own))[0], 0)
        self.assertFalse((self.root / ".libtorch").exists())
        self.fails("unset it for --cuda", "--cuda", LIBTORCH=str(own))
        (own / "build-version").write_text("2.5.1\n")
        self.fails("is libtorch 2.5.1, Tessera needs 2.11.0", LIBTORCH=str(own))
        self.fails("no lib and include", LIBTORCH="/nonexistent")


class TesseraTest(Sandbox):
    def test_sets_up_once_and_leaves_both_streams_to_the_engine(self):
        for run in range(2):
            status, out, error = self.run_tool("tessera", "bench", "--json", said="uci\nquit\n")
            self.assertEqual((status, out), (0, "engine bench --json\nuci\nquit\n"), error)
            self.assertEqual(self.called("cargo build"), 1)
        self.assertEqual(error, "")
        (self.root / "src/new.rs").write_text("")
        self.assertEqual(self.run_tool("tessera")[0], 0)
        self.assertEqual(self.called("cargo build"), 2)

    def test_only_built_in_networks_count(self):
        nets = self.root / "nets"
        later = time.time() + 86_400
        (nets / "default").write_text("own net.pt\n")
        (nets / "own net.pt").write_text("")
        self.assertEqual(self.run_tool("tessera")[0], 0)
        # Files that `tessera-train export` writes there, as well as documents.
        for name, builds in (
            ("mine.pt", 1), ("README.md", 1), ("configs/mine.toml", 1),
            ("own net.pt", 2), ("default", 3), ("tessera-human.pt", 4),
        ):
            path = nets / name
            path.parent.mkdir(exist_ok=True)
            path.touch()
            os.utime(path, (later, later))
            status, _, error = self.run_tool("tessera")
            self.assertEqual((status, self.called("cargo build")), (0, builds), f"{name}: {error}")
            os.utime(path, (0, 0))

    def test_rebuilds_for_another_libtorch(self):
        self.assertEqual(self.run_tool("tessera")[0], 0)
        own = self.folder / "own"
        for name in ("lib", "include"):
            (own / name).mkdir(parents=True)
        for _ in range(2):
            self.assertEqual(self.run_tool("tessera", LIBTORCH=str(own))[0], 0)
        self.assertEqual(self.called("cargo build"), 2)

    def test_starts_through_a_link(self):
        link = self.folder / "engine"
        link.symlink_to(self.root / "tools/tessera")
        done = subprocess.run([link], cwd="/", env=self.environment, input="x\n", capture_output=True, text=True)
        self.assertEqual(done.stdout, "engine \nx\n", done.stderr)

    def test_each_fault_gets_one_line_and_leaves_no_engine(self):
        for fault, reason in (("no fetch", "is there a network?"), ("no build", "the build failed")):
            status, out, error = self.run_tool("tessera", FAKE_CARGO=fault)
            self.assertEqual((status, out), (1, ""))
            self.assertIn(reason, error.splitlines()[-1])
        self.assertEqual(list((self.root / "target/release").iterdir()), [])
        for name in ("sh", "dirname", "readlink", "cat", "rm"):
            (self.folder / "bin" / name).symlink_to(shutil.which(name))
        (self.folder / "bin/python3").unlink()
        status, out, error = self.run_tool("tessera", PATH=str(self.folder / "bin"))
        self.assertEqual((status, out, len(error.splitlines())), (1, "", 1))
        self.assertIn("Python 3 is missing", error)


if __name__ == "__main__":
    unittest.main()

"""tools/release: the archive plays in a root that otherwise contains only the C library."""

import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

from patience import PATIENCE
from tool_test import ROOT, binaries, lack, stated_sizes

import chess
import chess.engine
from bundle.archive import pack
from bundle.crates import LICENCE
from bundle.programs import MACHINE, loaded

PLIES = 10


def options_of_the_bot():
    """Returns the UCI options in the configurations of lichess-bot."""
    names = set()
    for name in ("lichess-bot.yml", "lichess-bot-human.yml"):
        _, _, section = (ROOT / "tools" / name).read_text().partition("  uci_options:\n")
        lines = itertools.takewhile(lambda line: line.startswith("    "), section.splitlines())
        options = {line.strip().partition(":")[0] for line in lines if not line.lstrip().startswith("#")}
        assert len(options) > 2, options
        names |= options
    return names


@unittest.skipUnless(sys.platform == "linux", "only Linux has such roots")
class ReleaseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("patchelf", "strip", "ldd", "unshare", "chroot"):
            if shutil.which(program) is None:
                lack(program)
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.archive = Path(temporary.name) / "tessera.tar"
        cls.root = Path(temporary.name) / "root"
        command = [sys.executable, ROOT / "tools/release", "--binaries", binaries(), "-o", cls.archive]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        with tarfile.open(cls.archive) as archive:
            archive.extractall(cls.root)
        [cls.folder] = cls.root.iterdir()

    def in_root(self, program, *arguments):
        """Returns the command that runs a program of the archive in that root, without network access."""
        for path in loaded(self.folder / program, machine=True).values():
            copy = self.root / path.relative_to("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            copy.chmod(0o755)
        (self.root / "proc").mkdir(exist_ok=True)
        new_root = [shutil.which("unshare"), "--net", "--pid", "--fork", f"--mount-proc={self.root}/proc"]
        if os.geteuid() != 0:
            new_root.insert(1, "--map-root-user")
        probe = subprocess.run([*new_root, "true"], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            lack(f"leave to make a root of its own: {probe.stderr.strip()}")
        return [*new_root, shutil.which("chroot"), self.root, f"/{self.folder.name}/{program}", *arguments]

    def test_a_game_in_an_empty_root(self):
        # The environment is empty, and the working directory differs from the program's.
        command = [str(word) for word in self.in_root("tessera")]
        top = {path.name for path in self.root.iterdir()}
        self.assertLessEqual(top, {self.folder.name, "lib", "lib64", "usr", "proc"})
        with chess.engine.SimpleEngine.popen_uci(command, env={}, cwd="/", timeout=PATIENCE) as engine:
            board = chess.Board()
            while board.ply() < PLIES:
                played = engine.play(board, chess.engine.Limit(nodes=8), info=chess.engine.INFO_ALL)
                self.assertIn("score", played.info)
                board.push(played.move)
            self.assertLessEqual(options_of_the_bot(), set(engine.options))

    def test_the_trainer_starts_in_an_empty_root(self):
        done = subprocess.run(self.in_root("tessera-train", "--version"), env={}, cwd="/", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("tessera-train "), done.stdout)

    def new_root(self, *words):
        """Returns a command that starts with the archive as its root, as in a container."""
        command = [shutil.which("unshare"), "--net", "--pid", "--fork", "--kill-child", f"--root={self.root}"]
        if os.geteuid() != 0:
            command.insert(1, "--map-root-user")
        return [*command, "--mount-proc", *words]

    def test_the_manifests_commands_work_in_the_image(self):
        try:
            import yaml
        except ImportError:
            lack("pyyaml (tools/venv --tests installs it)")
        for path in ("tools/bundle/Containerfile", ".github/Containerfile"):
            copies = re.findall(r"^COPY .* (/\S+)$", (ROOT / path).read_text(), re.MULTILINE)
            self.assertEqual(copies, ["/opt/tessera"], path)
            self.assertIn("\nENV PATH=/opt/tessera:$PATH\n", (ROOT / path).read_text())
        # Set up like the image, with the manifest's mounts.
        self.in_root("tessera-train")
        (self.root / "opt").mkdir()
        (self.root / "opt/tessera").symlink_to(f"/{self.folder.name}")
        for folder in ("dev", "loop", "run/loop", "tmp"):
            (self.root / folder).mkdir(parents=True)
        # Containers have devices; libtorch seeds its generator from this device.
        (self.root / "dev/urandom").write_bytes(os.urandom(1 << 16))
        shutil.copyfile(self.folder / "nets/configs/loop-zero.toml", self.root / "loop/loop.toml")
        jobs = list(yaml.safe_load_all((ROOT / "tools/cluster/kubernetes.yaml").read_text()))
        jobs = {job["metadata"]["name"]: job["spec"]["template"]["spec"]["containers"][0] for job in jobs}
        store = self.root / "run/loop/store"
        # The program is also found by name, on the image's PATH.
        words = self.new_root("--wd=/tmp", "tessera-train", "--version")
        done = subprocess.run(words, env={"PATH": "/opt/tessera:/usr/bin"}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # The actor plays with the learner's first network.
        for name in ("loop-learner", "loop-actors"):
            container = jobs[name]
            command = [word.replace("s3://BUCKET/loop", "store") for word in container["command"]]
            words = self.new_root(f"--wd={container['workingDir']}", *command)
            worker = subprocess.Popen(words, env={}, stderr=subprocess.PIPE, text=True)
            self.addCleanup(worker.stderr.close)
            self.addCleanup(worker.wait)
            self.addCleanup(worker.kill)
            if name == "loop-learner":
                end = time.monotonic() + PATIENCE
                while not (store / "generations/000000.json").exists():
                    self.assertIsNone(worker.poll(), "the learner ended")
                    self.assertLess(time.monotonic(), end, "no network")
                    time.sleep(0.1)
            else:
                self.assertIn("generation 0: ", worker.stderr.readline())

    def test_programs_look_only_beside_themselves(self):
        for path in [self.folder / "tessera", self.folder / "tessera-train", *(self.folder / "lib").iterdir()]:
            said = subprocess.run(["patchelf", "--print-rpath", path], capture_output=True, text=True, check=True)
            self.assertIn(said.stdout.strip(), ("", "$ORIGIN") if path.parent.name == "lib" else ("$ORIGIN/lib",))
        for path in loaded(self.folder / "tessera").values():
            self.assertEqual(path.resolve().parent, (self.folder / "lib").resolve())

    def test_all_contents_are_listed(self):
        bill = json.loads((self.folder / "sbom.cdx.json").read_text())
        listed = {entry["name"]: entry for entry in bill["components"]}
        files = [*self.folder.glob("lib/*"), *self.folder.glob("nets/*.pt"), self.folder / "tessera"]
        self.assertGreater(len(files), 6)
        for path in files:
            entry = listed[path.relative_to(self.folder).as_posix()]
            self.assertEqual(entry["hashes"][0]["content"], hashlib.sha256(path.read_bytes()).hexdigest())
        crates = (self.folder / "licences/crates.txt").read_text()
        for name in ("shakmaty", "tch", "clap", "zstd-sys"):
            self.assertIn(f"\n{name} {listed[name]['version']}: ", crates)
            self.assertEqual(listed[name]["purl"], f"pkg:cargo/{name}@{listed[name]['version']}")
        # proptest is only needed by tests.
        self.assertNotIn("proptest", listed)
        if (ROOT / ".board/installed.json").exists():
            self.assertEqual(listed["chessground"]["purl"], f"pkg:npm/chessground@{listed['chessground']['version']}")
            self.assertTrue((self.folder / "licences/board/chessops").is_file())
        if (ROOT / ".stockfish/installed.json").exists():
            self.assertEqual(listed["stockfish"]["purl"], f"pkg:npm/stockfish@{listed['stockfish']['version']}")
            licences = self.folder / "licences/stockfish"
            self.assertIn("GENERAL PUBLIC LICENSE", (licences / "Copying.txt").read_text())
            self.assertIn(f"/tree/v{listed['stockfish']['version']}\n", (licences / "SOURCE.txt").read_text())
        for name in ("Containerfile", "tessera.service"):
            self.assertTrue((self.folder / name).is_file())
        # A crate's own licence and that of its bundled C code.
        self.assertIn("\nzstd-sys", crates)
        self.assertIn(": zstd/LICENSE\n", crates)
        self.assertTrue((self.folder / "licences/torch/LICENSE").is_file())
        self.assertIn("GENERAL PUBLIC LICENSE", (self.folder / "LICENSE").read_text())
        self.assertNotIn("VERSION", (self.folder / "README.md").read_text())

    def test_the_guide_states_the_sizes(self):
        sizes = {name: 0 for name in stated_sizes()}
        del sizes["the wheel"]
        for path in filter(Path.is_file, self.folder.rglob("*")):
            place = path.relative_to(self.folder)
            if place.name == "libtorch_cpu.so":
                kind = "`lib/libtorch_cpu.so`"
            elif place.parts[0] == "lib":
                kind = "other shared objects"
            elif place.name in ("tessera", "tessera-train") and len(place.parts) == 1:
                kind = "`tessera` and `tessera-train`"
            elif place.suffix == ".pt":
                kind = "networks"
            else:
                kind = "licences, documents, manual pages"
            for row in (kind, "unpacked"):
                sizes[row] += path.stat().st_size / 1e6
        self.assertGreater(len(sizes), 5)
        if binaries().name != "release":
            # The programs have the documented sizes only in a release build.
            programs = "`tessera` and `tessera-train`"
            sizes["unpacked"] += stated_sizes()[programs] - sizes.pop(programs)
        for row, size in sizes.items():
            self.assertAlmostEqual(size, stated_sizes()[row], delta=max(1, 0.05 * size), msg=row)

    def test_completions_and_manual_pages_are_included(self):
        share = self.folder / "share"
        for name in ("tessera", "tessera-train"):
            function = name.replace("-", "_")
            self.assertIn(f" -F _{function} {name}", (share / "bash-completion/completions" / name).read_text())
            self.assertTrue((share / f"man/man1/{name}.1").is_file())
            self.assertTrue((share / f"zsh/site-functions/_{name}").is_file())
            self.assertTrue((share / f"fish/vendor_completions.d/{name}.fish").is_file())

    def test_the_digest_is_the_archives(self):
        written = self.archive.with_name("tessera.tar.sha256").read_text()
        with open(self.archive, "rb") as file:
            self.assertEqual(written, f"{hashlib.file_digest(file, 'sha256').hexdigest()}  tessera.tar\n")


class PartsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def test_the_same_files_make_the_same_archive(self):
        for number, order in enumerate((["b", "a", "lib/c"], ["lib/c", "a", "b"])):
            folder = self.folder / str(number) / "tessera"
            (folder / "lib").mkdir(parents=True)
            for name in order:
                (folder / name).write_text(name)
                (folder / name).chmod(0o755 if name == "a" else 0o600 + 0o44 * number)
                os.utime(folder / name, (number, 1000 * number))
            for kind in ("tar", "tar.xz", "zip"):
                pack(folder, self.folder / f"{number}.{kind}", mtime=1_700_000_000)
        for kind in ("tar", "tar.xz", "zip"):
            made = [(self.folder / f"{number}.{kind}").read_bytes() for number in range(2)]
            self.assertEqual(*made)
        with tarfile.open(self.folder / "0.tar.xz") as archive:
            members = [(member.name, member.mode, member.mtime, member.uid) for member in archive]
        named = [("tessera/a", 0o100755), ("tessera/b", 0o100644), ("tessera/lib/c", 0o100644)]
        self.assertEqual(members, [(name, mode & 0o777, 1_700_000_000, 0) for name, mode in named])
        with zipfile.ZipFile(self.folder / "0.zip") as archive:
            self.assertEqual([(info.filename, info.external_attr >> 16) for info in archive.infolist()], named)

    def test_licences_are_recognised_by_name(self):
        for name in ("LICENSE", "LICENCE.md", "License-MIT", "LICENSE-APACHE-2.0", "COPYING.txt", "UNLICENSE"):
            self.assertTrue(LICENCE.fullmatch(name), name)
        for name in ("license_check.rs", "notices", "README.md", "copyright.c"):
            self.assertFalse(LICENCE.fullmatch(name), name)

    def test_the_machines_own_libraries_stay_out(self):
        for name in ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "linux-vdso.so.1"):
            self.assertTrue(MACHINE.fullmatch(name), name)
        for name in ("libc10.so", "libstdc++.so.6", "libcudart.so.13", "libtorch_cpu.so"):
            self.assertFalse(MACHINE.fullmatch(name), name)

    def test_openbench_builds_by_make(self):
        if shutil.which("make") is None:
            lack("make")
        source, home = self.folder / "source", self.folder / "home"
        (source / "tools").mkdir(parents=True)
        shutil.copytree(ROOT / "tools/openbench", source / "tools/openbench")
        (source / "tools/setup").write_text("#!/bin/sh\nmkdir -p $(dirname $0)/../.libtorch/torch\n")
        (self.folder / "bin").mkdir()
        # Takes the place of cargo: the built program records where it finds libtorch.
        (self.folder / "bin/cargo").write_text(
            "#!/bin/sh\nmkdir -p target/release && echo $LIBTORCH >target/release/tessera\n"
        )
        for program in (source / "tools/setup", self.folder / "bin/cargo"):
            program.chmod(0o755)
        environment = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": str(home)}
        for name in ("Tessera-1", "Tessera-2"):
            command = ["make", "-j", f"EXE={name}"]
            make = subprocess.run(
                command, cwd=source / "tools/openbench", env=environment, capture_output=True, text=True, check=False
            )
            self.assertEqual(make.returncode, 0, make.stderr)
            # Where libtorch is once the source folder is gone.
            libtorch = (source / "tools/openbench" / name).read_text().strip()
            self.assertEqual(libtorch, f"{home.resolve()}/.cache/tessera/libtorch-2.11.0/torch")
        version = re.search(r'^VERSION = "(.*)"', (ROOT / "tools/setup").read_text(), re.MULTILINE)[1]
        self.assertIn(f"libtorch-{version}/", libtorch)
        built = json.loads((ROOT / "tools/openbench/Tessera.json").read_text())["build"]
        self.assertEqual(built["path"], "tools/openbench")

    def test_missing_programs_are_reported_before_the_build(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        for program in ("strip", "ldd"):
            (folder / program).symlink_to(shutil.which(program))
        for program in ("cargo", "rustc", "npm"):
            (folder / program).write_text('#!/bin/sh\necho "$0" >> "$(dirname "$0")/started"\n')
            (folder / program).chmod(0o755)
        for arguments in ([], ["--wheel"]):
            command = [sys.executable, ROOT / "tools/release", *arguments]
            done = subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (1, "", 1), done.stderr)
            self.assertIn("these programs are missing: patchelf, objdump (", done.stderr)
        self.assertFalse((folder / "started").exists(), "the build has begun")

    def test_mistakes_get_one_line(self):
        for arguments, expected in (
            (["--binaries", self.folder, "-o", self.folder / "x.rar"], "x.rar does not end in"),
            (["--binaries", self.folder, "-o", self.folder / "x.tar.zst"], "x.tar.zst does not end in"),
            (["--binaries", self.folder, "-o", self.folder / "x.tar"], "tessera is missing"),
            (["--binaries", self.folder, "-o", self.folder / "no/x.tar"], "no such folder"),
            (["--wheel", "--binaries", self.folder, "-o", self.folder], "tessera is missing"),
            (["--wheel", "--binaries", self.folder, "-o", self.folder / "no"], "no such folder"),
        ):
            with self.subTest(expected):
                command = [sys.executable, ROOT / "tools/release", *arguments]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (1, "", 1))
                self.assertIn(expected, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()

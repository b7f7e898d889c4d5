"""The programs on a terminal: the engine's greeting, completions, manual pages."""

import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from patience import PATIENCE
from tool_test import binaries, lack

GREETING = re.compile(r"Tessera \d+\.\d+\.\d+\. Waiting for UCI; `help`, or `tessera serve` for a board\.")
# Completes the last of the words, as a shell does when Tab is pressed after it.
COMPLETE = """
eval "$("$1" completions bash)"
shift
line=$(complete -p "$1")
[[ $line =~ -F\\ ([^ ]+) ]] && function=${BASH_REMATCH[1]}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
$function "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


class TerminalTest(unittest.TestCase):
    def setUp(self):
        self.folder = binaries()
        self.tessera = self.folder / "tessera"

    def start(self, stdin):
        """Runs the engine with this input and a pipe for its output."""
        return subprocess.Popen([self.tessera], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_people_are_greeted(self):
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        engine = self.start(terminal)
        os.close(terminal)
        os.write(controller, b"uci\nquit\n")
        answers, said = engine.communicate(timeout=PATIENCE)
        self.assertRegex(said.strip(), re.compile(f"^{GREETING.pattern}$"))
        self.assertIn("uciok", answers.splitlines())
        self.assertNotIn("Waiting", answers)

    def test_chess_programs_are_not(self):
        answers, said = self.start(subprocess.PIPE).communicate("uci\nquit\n", timeout=PATIENCE)
        self.assertEqual(said, "")
        self.assertIn("uciok", answers.splitlines())
        self.assertNotIn("Waiting", answers)

    def complete(self, *words):
        bash = ["bash", "--norc", "-c", COMPLETE, "bash", self.folder / words[0], *words]
        done = subprocess.run(bash, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes(self):
        self.assertEqual(self.complete("tessera", "benc"), ["bench"])
        self.assertEqual(self.complete("tessera", "bench", "--js"), ["--json"])
        self.assertEqual(self.complete("tessera", "bench", "--backend", "uni"), ["uniform"])
        self.assertNotIn("man", self.complete("tessera", "ma"))
        self.assertEqual(self.complete("tessera-train", "valid"), ["validate"])
        self.assertEqual(self.complete("tessera-train", "validate", "--js"), ["--json"])

    def type_in_bash(self, typed, folder):
        """Types into Bash with real line editing; returns the arguments that the program would have got."""
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        environment = {"PATH": f"{self.folder}:/usr/bin:/bin", "TERM": "dumb", "HOME": str(folder), "PS1": "$ "}
        bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"], stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder,
            env=environment, start_new_session=True,
        )
        os.close(terminal)
        self.addCleanup(bash.wait)
        self.addCleanup(bash.kill)
        said = ""

        def wait_for(pattern):
            nonlocal said
            end = time.monotonic() + PATIENCE
            while not (found := re.search(pattern, said)):
                self.assertLess(time.monotonic(), end, said)
                if select.select([controller], [], [], 1)[0]:
                    said += os.read(controller, 4096).decode(errors="replace")
            return found

        # The functions take the programs' places. The ends of lines are told from echoes by their quotes.
        os.write(controller, b"bind 'set bell-style none'\n")
        for program in ("tessera", "tessera-train"):
            os.write(controller, f'eval "$({program} completions bash)"\n'.encode())
            os.write(controller, f"function {program} {{ printf '<%s>' \"$@\" E'N'D; }}\n".encode())
        os.write(controller, b"echo rea''dy\n")
        wait_for("ready")
        os.write(controller, typed.encode() + b"\n")
        arguments = wait_for(r"<[^\r\n]*<END>")[0]
        return re.findall("<([^>]*)>", arguments)[:-1]

    def test_bash_completes_paths_as_elsewhere(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "my nets").mkdir()
        (folder / "my nets/a b.pt").touch()
        (folder / "puzzles.csv").touch()
        (folder / "it's.toml").touch()
        for typed, expected in (
            # A folder gets a slash, and blanks are escaped.
            ("tessera bench --net my\ta\t", ["bench", "--net", "my nets/a b.pt"]),
            ("tessera bench --net=my\ta\t", ["bench", "--net=my nets/a b.pt"]),
            ("tessera bench --net 'my\ta\t", ["bench", "--net", "my nets/a b.pt"]),
            # Positional arguments are files, and options only after a hyphen.
            ("tessera puzzles p\t", ["puzzles", "puzzles.csv"]),
            ("tessera-train run i\t", ["run", "it's.toml"]),
            ("tessera puzzles puzzles.csv --js\t", ["puzzles", "puzzles.csv", "--json"]),
            # Addresses and numbers are not files.
            ("tessera serve --check p\t", ["serve", "--check", "p"]),
            ("tessera bench --nodes p\t", ["bench", "--nodes", "p"]),
            ("tessera ben\t--no\t5", ["bench", "--nodes", "5"]),
        ):
            with self.subTest(typed=typed):
                self.assertEqual(self.type_in_bash(typed, folder), expected)
        # Without a letter, files are offered, and no options.
        self.assertEqual(self.complete("tessera", "puzzles", ""), [])

    def test_zsh_completes_whenever_it_reads_the_script(self):
        if shutil.which("zsh") is None:
            lack("zsh")
        for program in ("tessera", "tessera-train"):
            load = f'eval "$({self.folder / program} completions zsh)"'
            init = "autoload -Uz compinit; compinit -u -D"
            check = f"for each in $precmd_functions; do $each; done; print -- $_comps[{program}]"
            home = self.enterContext(tempfile.TemporaryDirectory())
            for order in ((init, load), (load, init), (load,)):
                with self.subTest(program=program, order=order):
                    script = "\n".join((*order, check))
                    done = subprocess.run(
                        ["zsh", "-f", "-c", script], capture_output=True, text=True, env={**os.environ, "HOME": home}
                    )
                    self.assertEqual((done.stdout.strip(), done.stderr), (f"_{program}", ""))

    def test_zsh_offers_files_only_for_paths(self):
        for program, option, is_path in (
            ("tessera", "--check", False), ("tessera", "--bind", False), ("tessera", "--nodes", False),
            ("tessera", "--net", True), ("tessera-train", "--set", False), ("tessera-train", "--output", True),
        ):
            with self.subTest(program=program, option=option):
                command = [self.folder / program, "completions", "zsh"]
                script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                lines = [line for line in script.splitlines() if re.match(rf"'\*?{option}=", line)]
                self.assertTrue(lines)
                for line in lines:
                    self.assertEqual(bool(re.search(r":(_files|_default)' \\$", line)), is_path, line)

    def test_other_shells_read_their_scripts(self):
        for shell, check in (("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])):
            for program in ("tessera", "tessera-train"):
                with self.subTest(shell=shell, program=program):
                    command = [self.folder / program, "completions", shell]
                    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                    self.assertIn(program, script)
                    if shutil.which(shell) is None:
                        lack(shell)
                    done = subprocess.run([*check, "/dev/stdin"], input=script, capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_fish_completes(self):
        if shutil.which("fish") is None:
            lack("fish")
        script = subprocess.run([self.tessera, "completions", "fish"], capture_output=True, text=True, check=True).stdout
        fish = ["fish", "--no-config", "-c", "source -; complete -C 'tessera benc'; complete -C 'tessera bench --js'"]
        done = subprocess.run(fish, input=script, capture_output=True, text=True, check=True)
        offered = [line.partition("\t")[0] for line in done.stdout.splitlines()]
        self.assertEqual(offered, ["bench", "--json"])

    def test_fish_offers_files_only_for_paths(self):
        if shutil.which("fish") is None:
            lack("fish")
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "paths").touch()
        for program, words, offered in (
            ("tessera", "serve --check p", ""), ("tessera", "serve --bind p", ""), ("tessera", "bench --nodes p", ""),
            ("tessera", "bench --net p", "paths"), ("tessera-train", "run --set p", ""),
            ("tessera-train", "run --output p", "paths"),
        ):
            with self.subTest(words=words):
                command = [self.folder / program, "completions", "fish"]
                script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                fish = ["fish", "--no-config", "-c", f"source -; complete -C '{program} {words}'"]
                done = subprocess.run(fish, input=script, cwd=folder, capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout.strip(), offered)

    def test_manual_pages_are_read_without_warnings(self):
        if shutil.which("man") is None:
            lack("man (Debian: apt install man-db)")
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for program in ("tessera", "tessera-train"):
            subprocess.run([self.folder / program, "man", folder], check=True, timeout=PATIENCE)
        pages = sorted(folder.iterdir())
        self.assertGreater(len(pages), 30)
        self.assertLessEqual({"tessera.1", "tessera-bench.1", "tessera-train.1"}, {page.name for page in pages})
        self.assertFalse([page.name for page in pages if page.name.endswith("-man.1")])
        environment = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
        for page in pages:
            with self.subTest(page=page.name):
                command = ["man", "--warnings=w", "--local-file", page]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("SYNOPSIS", done.stdout)
                # Neither sentences nor justification widen blanks. The header has wide ones, and they follow short
                # names of options.
                text = re.sub(r"(?m)^ {7}[-<\[]\S*  ", "", done.stdout.partition("\n")[2])
                self.assertNotRegex(text, r"\S  \S")
        done = subprocess.run(["man", "-l", folder / "tessera-bench.1"], env=environment, capture_output=True, text=True)
        self.assertIn("--json", done.stdout)


if __name__ == "__main__":
    unittest.main()

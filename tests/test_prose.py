"""tools/prose on documents, comments and messages."""

import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def load():
    """Loads tools/prose as a module."""
    loader = SourceFileLoader("prose", str(ROOT / "tools/prose"))
    sys.dont_write_bytecode = True
    module = module_from_spec(spec_from_loader("prose", loader))
    loader.exec_module(module)
    return module


class ProseTest(unittest.TestCase):
    prose = load()

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def findings(self, name, text):
        """Returns the line and the words of each finding in a file with this text."""
        file = self.folder / name
        file.write_text(text, encoding="utf-8")
        return [(line, words) for line, words, _ in self.prose.findings(file)]

    def run_tool(self, *arguments):
        done = subprocess.run([sys.executable, ROOT / "tools/prose", *arguments], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_the_listed_paths_are_clean(self):
        self.assertEqual(self.run_tool(), (0, ""))

    def test_every_listed_path_exists(self):
        for name in self.prose.CLEAN:
            self.assertTrue(list(ROOT.glob(name)), name)

    def test_findings_are_printed_and_fail(self):
        file = self.folder / "page.md"
        file.write_text("It works.\nIt goes on.\n")
        self.assertEqual(self.run_tool(file), (1, f"{file}:2: goes on: continue, resume\n"))

    def test_laboured_sentences_are_found(self):
        for text, words in [
            ("The run goes on with its checkpoint.", "goes on"),
            ("A network foretells 51.7 % of the moves.", "foretells"),
            ("It is no network.", "is no"),
            ("There are no tables, and it plays. It is a thing of\nwhich we know.", "of which"),
            ("It returns so many moves.", "so many"),
            ("Errors come first. What is wrong is said.", "What"),
            ("**Who may ask** is next.", "Who"),
            ("That the visits grow is an idea from elsewhere.", "That the"),
            ("| a | Whoever publishes it |", "Whoever"),
            ("- Beside UCI it knows perft.", "Beside"),
            ("It plays networks of Lc0's, too.", "of Lc0's"),
            ("## How fast is it", "How fast is it"),
            ("## Fast?", "Fast?"),
        ]:
            with self.subTest(text=text):
                self.assertIn(words, [found for _, found in self.findings("page.md", text)])

    def test_idiomatic_sentences_pass(self):
        text = (
            "# Speed\n\nThat takes a second. There is no table. It is no longer there, and no worse.\n"
            "You see what it does, in the order of Lc0's\nmoves. A page tells you what to do.\n"
        )
        self.assertEqual(self.findings("page.md", text), [])

    def test_code_and_links_are_not_prose(self):
        text = (
            "`goes on` and ``so ` many``, see [it](#what-goes-on).\n\n```sh\n# goes on\n```\n\n    goes on\n\n"
            "<!-- goes on -->\n[x]: goes-on.md goes on\n\nIt goes on.\n"
        )
        self.assertEqual(self.findings("page.md", text), [(12, "goes on")])

    def test_comments_and_messages_of_rust_are_read(self):
        text = (
            "//! It goes\n//! on here, besides.\n"
            'const NAME: &str = "goes on";\n'
            "fn besides() {\n"
            '    bail!("there are so many moves in the file"); // \'"\' is no character\n'
            '    let pattern = r#"this is no " message"#;\n'
            "}\n"
            "/// What it does.\n"
        )
        expected = [(1, "goes on"), (2, "besides"), (5, "is no"), (5, "so many"), (8, "What")]
        self.assertEqual(self.findings("code.rs", text), expected)

    def test_comments_and_messages_of_python_are_read(self):
        text = '#!/usr/bin/env python3\n"""Goes on with a run.\n\nIt is no run."""\nprint("goes on", "there are so many runs")  # besides\n'
        expected = [(2, "Goes on"), (4, "is no"), (5, "besides"), (5, "so many")]
        self.assertEqual(self.findings("tool", text), expected)

    def test_comments_of_scripts_are_read(self):
        self.assertEqual(self.findings("tool", "#!/bin/sh\n# It goes on.\necho goes on\n"), [(2, "goes on")])


if __name__ == "__main__":
    unittest.main()

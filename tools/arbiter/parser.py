"""Parses the command line of a tool."""

import argparse
import re
import sys

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


class Parser(argparse.ArgumentParser):
    """A parser that reports errors on one line, and accepts the names of options in the previous release.

    `renamed` maps the old name of an option with a value to the new name, or to "" if the value is now
    an argument. For options that take a time, it also gives the unit of numbers without a unit.
    """

    def __init__(self, description, renamed=None):
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.renamed = renamed or {}

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")

    def parse_known_args(self, args=None, namespace=None):
        words = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(self.translated(words), namespace)

    def translated(self, words):
        """Replaces old names of options in `words` with the current names; prints a note for each old name."""
        end = words.index("--") if "--" in words else len(words)
        new = []
        left = words[:end]
        while left:
            word = left.pop(0)
            name, equals, value = word.partition("=")
            if name not in self.renamed:
                new.append(word)
                continue
            now, unit = self.renamed[name], ""
            if isinstance(now, tuple):
                now, unit = now
            if not equals and left:
                value = left.pop(0)
            old = [name, value] if value else [name]
            value += unit * bool(re.fullmatch(r"[\d.]+", value))
            today = [part for part in (now, value) if part]
            if today != old:
                print(f"{self.prog}: write {' '.join(today)} in place of {' '.join(old)}, "
                      "which the next release will not know", file=sys.stderr)
            new += today
        return new + words[end:]


def count(text):
    """Reads a whole number above zero."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number above zero")
    return int(text)


def seconds(text):
    """Reads a time such as 500ms, 90s or 5m."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)(ms|s|m|h)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"`{text}` is not a time such as 500ms, 90s or 5m")
    return float(found[1]) * UNITS[found[2]]

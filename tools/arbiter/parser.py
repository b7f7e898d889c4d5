"""Parses the command line of a tool."""

import argparse
import re

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


class Parser(argparse.ArgumentParser):
    """A parser that reports errors on one line."""

    def __init__(self, description):
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")


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

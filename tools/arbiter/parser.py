"""The command line of a tool."""

import argparse


class Parser(argparse.ArgumentParser):
    """Tells a mistake in one line."""

    def __init__(self, description):
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")


def count(text):
    """A whole number above zero."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number above zero")
    return int(text)

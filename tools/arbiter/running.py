"""Starts, interrupts and ends a tool that plays games."""

import asyncio
import logging
import signal
import sys

from . import MatchError


def say(tool, text):
    print(f"{tool}: {text}", file=sys.stderr, flush=True)


def carry_out(tool, make, resumable=True):
    """Creates a runner, runs it and prints its report; returns the exit status."""
    # Some engines print unexpected lines, and python-chess would log a warning for each.
    logging.getLogger("chess.engine").setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        made = make()
        try:
            asyncio.run(made.run())
        except KeyboardInterrupt:
            say(tool, "interrupted" + ("; use --resume to continue" if resumable else ""))
    except (MatchError, OSError) as error:
        say(tool, f"error: {error}")
        return 2
    made.report()
    return 0 if made.complete() else 130

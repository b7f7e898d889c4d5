"""Starts, interrupts and ends a tool that plays games, and prints its report."""

import asyncio
import logging
import os
import signal
import sys

from . import MatchError


def say(tool, text):
    print(f"{tool}: {text}", file=sys.stderr, flush=True)


def reported(tool, report):
    """Calls `report`, which prints to standard output; returns the exit status.

    If a reader such as `head` has read enough and closes the pipe, this is a success.
    """
    try:
        report()
        print(end="", flush=True)
    except OSError as error:
        # Python writes what is left when it exits, and would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            say(tool, f"error: cannot write the report: {error.strerror}")
            return 2
    return 0


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
    return reported(tool, made.report) or (0 if made.complete() else 130)

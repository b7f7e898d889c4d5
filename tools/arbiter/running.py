"""How a tool that plays games begins, is interrupted, and ends."""

import asyncio
import logging
import signal
import sys

from . import MatchError


def say(tool, text):
    print(f"{tool}: {text}", file=sys.stderr, flush=True)


def carry_out(tool, make, resumable=True):
    """Makes what plays, lets it play and report; returns the exit status."""
    # Engines may say more than they are asked: python-chess would warn of every line.
    logging.getLogger("chess.engine").setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        made = make()
        try:
            asyncio.run(made.run())
        except KeyboardInterrupt:
            say(tool, "interrupted" + ("; --resume goes on" if resumable else ""))
    except (MatchError, OSError) as error:
        say(tool, f"error: {error}")
        return 2
    made.report()
    return 0 if made.complete() else 130

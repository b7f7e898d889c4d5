"""Command-line arguments shared by the tools that play games."""

import argparse
import os

from . import MatchError
from .entrant import thinking
from .game import Adjudication
from .openings import Openings
from .parser import count, seconds

ENGINE_KEYS = "name, cmd, dir, proto (uci or xboard), option.NAME, and tc, time (or st), nodes or depth"


def numbers(names, counts):
    """Returns a parser for whole numbers separated by commas. The number at index `counts` must be positive."""

    def read(text):
        try:
            values = tuple(map(int, text.split(",")))
            if len(values) != len(names.split(",")) or values[counts] < 1:
                raise ValueError
        except ValueError:
            raise argparse.ArgumentTypeError(f"`{text}` is not {names} in whole numbers") from None
        return values

    return read


def add_conditions(parser):
    add_thinking(parser)
    add_openings(parser)
    add_adjudication(parser)


def add_thinking(parser):
    add = parser.add_argument_group("thinking limits, for engines without their own").add_argument
    add("--time", metavar="TIME", help="time per move, such as 500ms")
    add("--nodes", metavar="N", help="nodes per move")
    add("--depth", metavar="N", help="depth of each move")
    add("--tc", metavar="[MOVES/]SECONDS[+INCREMENT]", help="clock")
    add("--margin", type=seconds, default="100ms", metavar="TIME",
        help="tolerated excess time (default 100ms)")
    add("--patience", type=seconds, default="5m", metavar="TIME",
        help="time after which an engine without a clock counts as hung (default 5m)")
    add("--ponder", action="store_true", help="engines also think on the opponent's time")


def read_thinking(options):
    return thinking({key: getattr(options, key) for key in ("tc", "time", "nodes", "depth")})


def add_openings(parser):
    add = parser.add_argument_group("openings").add_argument
    add("--openings", metavar="FILE",
        help="EPD, FEN or PGN, plain, gzip or zip; by default, all games start from the initial position")
    add("--order", choices=["random", "sequential"], default="random", help="order of the openings (default random)")
    add("--plies", type=count, help="number of plies to take from a PGN opening")
    add("--seed", type=int, default=0, help="random seed (default 0)")
    add("--chess960", action="store_true", help="treat the openings as Chess960")


def read_openings(options):
    for output in (options.log, getattr(options, "pgn", None), getattr(options, "state", None)):
        if output and options.openings and is_same_file(output, options.openings):
            raise MatchError(f"{output} holds the openings, so it is not written: name another output")
    seed = options.seed if options.order == "random" else None
    return Openings(options.openings, seed, options.chess960, options.plies)


def is_same_file(one, other):
    """Returns whether two paths refer to the same regular file, directly or through links."""
    return os.path.isfile(one) and os.path.isfile(other) and os.path.samefile(one, other)


def add_adjudication(parser):
    add = parser.add_argument_group(
        "adjudication, before the rules end a game (default never)",
        "Uses the scores that the engines report for their own moves, in centipawns. A mate\n"
        "score exceeds every limit, and a move without a score meets no condition.",
    ).add_argument
    add("--resign", type=numbers("MOVES,CP", counts=0), metavar="MOVES,CP",
        help="a side loses if its score is -CP or less for MOVES consecutive moves, as in `3,600`")
    add("--draw", type=numbers("FROM,MOVES,CP", counts=1), metavar="FROM,MOVES,CP",
        help="from move FROM on, a game is drawn if both sides' scores are within ±CP for MOVES"
        " consecutive moves each, as in `34,8,20`")
    add("--max-plies", type=count, metavar="PLIES", help="length at which a game is drawn, including the opening")


def read_adjudication(options):
    return Adjudication(options.resign, options.draw, options.max_plies)


def add_running(parser):
    add = parser.add_argument_group("running").add_argument
    add("--jobs", type=count, default=1, metavar="N", help="concurrent games (default 1)")
    add("--log", metavar="FILE", help="file for the engines' standard error")
    add("--json", action="store_true", help="print the result as one JSON object")

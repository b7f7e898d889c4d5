"""An engine as described on the command line, and its thinking time."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
from dataclasses import dataclass

from . import MatchError
from .parser import seconds

# Other match tools use the name `st` for `time`.
LIMITS = {"tc": "tc", "time": "time", "st": "time", "nodes": "nodes", "depth": "depth"}
PROTOCOLS = ("uci", "xboard")
KEYS = rf"name|cmd|dir|proto|{'|'.join(LIMITS)}|option\.[^=,]+"


@dataclass(frozen=True)
class TimeControl:
    """A clock with `base` seconds for `moves` moves (0: for all moves) and `increment` seconds per move."""

    base: float
    increment: float = 0.0
    moves: int = 0

    @classmethod
    def parse(cls, text):
        """Reads `[moves/]seconds[+increment]`."""
        found = re.fullmatch(r"(?:(\d+)/)?([\d.]+)(?:\+([\d.]+))?", text)
        if not found:
            raise ValueError(text)
        return cls(float(found[2]), float(found[3] or 0), int(found[1] or 0))


@dataclass(frozen=True)
class Thinking:
    """The thinking time of a side: a clock, or limits on each move."""

    clock: TimeControl | None = None
    time: float | None = None
    nodes: int | None = None
    depth: int | None = None

    def __bool__(self):
        return self != Thinking()

    def __str__(self):
        if self.clock:
            moves = f"{self.clock.moves}/" if self.clock.moves else ""
            return f"{moves}{self.clock.base:g}+{self.clock.increment:g}"
        parts = [f"{self.time:g} s"] if self.time else []
        parts += [f"{self.nodes} nodes"] if self.nodes else []
        parts += [f"depth {self.depth}"] if self.depth else []
        return ", ".join(parts) + " a move"


@dataclass
class Entrant:
    """A player: an engine's command, options and thinking time."""

    name: str
    command: list
    directory: str | None
    options: dict
    thinking: Thinking
    protocol: str

    @classmethod
    def parse(cls, words, default, each=()):
        """Reads an engine's settings. Missing settings are taken from `each`, and then from `default`.

        If the engine's settings contain limits, the limits in `each` and `default` do not apply.
        """
        common, own = settings(each), settings(words)
        if "name" in common:
            raise MatchError("a name belongs to one engine: give it to --engine")
        merged = {**common, **own}
        command = arguments_of(merged.get("cmd", ""))
        if not command:
            raise MatchError(f"the engine `{' '.join(words)}` needs a cmd=")
        name = merged.get("name") or os.path.basename(command[0])
        plan = thinking(limits(own) or limits(common)) or default
        if not plan:
            raise MatchError(f"{name} needs time, nodes, depth or tc")
        protocol = merged.get("proto", "uci")
        if protocol not in PROTOCOLS:
            raise MatchError(f"proto `{protocol}` is not one of {', '.join(PROTOCOLS)}")
        if protocol == "xboard" and plan.nodes:
            raise MatchError(f"{name}: XBoard engines support time, depth and tc, but not nodes")
        options = {
            key.removeprefix("option."): value for key, value in merged.items() if key.startswith("option.")
        }
        return cls(name, command, merged.get("dir"), options, plan, protocol)


def settings(words):
    """Reads `name=…,cmd=…,dir=…,proto=…,option.X=Y,time=…,nodes=…,depth=…,tc=…`.

    A comma separates settings only if one of these keys follows, so commands and option values
    may contain commas.
    """
    read = {}
    for word in words:
        for part in re.split(rf",(?=(?:{KEYS})=)", word):
            key, equals, value = part.partition("=")
            if not equals or not re.fullmatch(KEYS, key):
                keys = "name, cmd, dir, proto, option.NAME, tc, time, st, nodes or depth"
                raise MatchError(f"`{part}` is not {keys} with a value")
            read[key] = value
    return read


def arguments_of(command):
    """Splits a command line."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise MatchError(f"cmd `{command}`: {str(error).lower()}") from None


def limits(settings):
    """Returns the limits among an engine's settings."""
    return {LIMITS[key]: value for key, value in settings.items() if key in LIMITS}


def time(text):
    """Reads a time with a unit or, as in other match tools, in seconds without a unit."""
    try:
        return float(text)
    except ValueError:
        return seconds(text)


def thinking(limits):
    """Parses the values of `tc`, `time`, `nodes` and `depth`."""
    read = {"tc": TimeControl.parse, "time": time, "nodes": int, "depth": int}
    values = {}
    for key, text in limits.items():
        if text is not None:
            try:
                values[key] = read[key](text)
            except (ValueError, argparse.ArgumentTypeError):
                kind = "time control: use [moves/]seconds[+increment]" if key == "tc" else "number"
                raise MatchError(f"{key} `{text}` is not a {kind}") from None
    clock = values.pop("tc", None)
    if clock and values:
        raise MatchError("tc cannot be combined with time, nodes or depth")
    if not all(0 < value < math.inf for value in values.values()):
        raise MatchError("time, nodes and depth must be above zero")
    return Thinking(clock=clock, **values)

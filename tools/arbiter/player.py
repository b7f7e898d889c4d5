"""A UCI engine as one side of a match."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import signal
import time
from dataclasses import dataclass, field

import chess
import chess.engine

from . import MatchError

# Engines load networks and tables before they answer.
START_SECONDS = 120
# After its time has gone, an engine that says nothing for so long hangs.
HANG_SECONDS = 10
QUIT_SECONDS = 3


@dataclass(frozen=True)
class TimeControl:
    """`base` seconds for `moves` moves (0: for all of them) and `increment` a move."""

    base: float
    increment: float = 0.0
    moves: int = 0

    @classmethod
    def parse(cls, text):
        """Reads `[moves/]seconds[+increment]`."""
        found = re.fullmatch(r"(?:(\d+)/)?([\d.]+)(?:\+([\d.]+))?", text)
        if not found:
            raise ValueError(f"`{text}` is no time control: use [moves/]seconds[+increment]")
        return cls(float(found[2]), float(found[3] or 0), int(found[1] or 0))


@dataclass(frozen=True)
class Thinking:
    """How long a side thinks: a clock, or limits on each move."""

    clock: TimeControl | None = None
    time: float | None = None
    nodes: int | None = None
    depth: int | None = None

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
    """An engine as the command line describes it."""

    name: str = ""
    command: list = field(default_factory=list)
    directory: str | None = None
    options: dict = field(default_factory=dict)
    thinking: Thinking = field(default_factory=Thinking)

    @classmethod
    def parse(cls, words, default):
        """Reads `name=…,cmd=…,dir=…,option.X=Y,time=…,nodes=…,depth=…,tc=…`.

        A comma ends a value only where one of these keys follows, so that
        commands and option values may hold commas.
        """
        keys = r"name|cmd|dir|time|nodes|depth|tc|option\.[^=,]+"
        entrant, limits = cls(), {}
        for word in words:
            for part in re.split(rf",(?=(?:{keys})=)", word):
                key, equals, value = part.partition("=")
                if not equals or not re.fullmatch(keys, key):
                    raise MatchError(f"`{part}` is not one of {keys.replace('|', ', ')} with a value")
                if key == "name":
                    entrant.name = value
                elif key == "cmd":
                    entrant.command = shlex.split(value)
                elif key == "dir":
                    entrant.directory = value
                elif key.startswith("option."):
                    entrant.options[key.removeprefix("option.")] = value
                else:
                    limits[key] = value
        if not entrant.command:
            raise MatchError(f"the engine `{' '.join(words)}` has no cmd=")
        entrant.name = entrant.name or os.path.basename(entrant.command[0])
        entrant.thinking = thinking(limits) if limits else default
        if entrant.thinking == Thinking():
            raise MatchError(f"{entrant.name} has no time, nodes, depth or tc to think with")
        return entrant


def thinking(limits):
    """Reads the texts of `tc`, `time`, `nodes` and `depth`."""
    try:
        read = {"tc": TimeControl.parse, "time": float, "nodes": int, "depth": int}
        values = {key: read[key](text) for key, text in limits.items() if text is not None}
    except ValueError as error:
        raise MatchError(str(error)) from None
    if any(value <= 0 for key, value in values.items() if key != "tc"):
        raise MatchError("time, nodes and depth are above zero")
    clock = values.pop("tc", None)
    if clock and values:
        raise MatchError("tc does not go together with time, nodes or depth")
    return Thinking(clock=clock, **values)


class Forfeit(Exception):
    """The side to move has lost by its own fault."""

    ILLEGAL, NO_MOVE, TIME = "illegal move", "no move", "time loss"
    CRASH, HANG = "crash", "hang"
    KINDS = (ILLEGAL, NO_MOVE, TIME, CRASH, HANG)

    def __init__(self, kind, detail=""):
        # The text becomes a PGN tag, which ends at a double quote.
        detail = " ".join(detail.replace('"', "'").split())
        super().__init__(f"{kind} ({detail})" if detail else kind)
        self.kind = kind


class Protocol(chess.engine.UciProtocol):
    """Takes the time from `go` to `bestmove`, as a clock does: getting ready
    for a new game is not the engine's thinking time."""

    thinking_since = 0.0
    thought = 0.0

    def send_line(self, line):
        super().send_line(line)
        if line.startswith("go"):
            self.thinking_since = time.perf_counter()

    def line_received(self, line):
        if line.startswith("bestmove"):
            self.thought = time.perf_counter() - self.thinking_since


class Player:
    """A running engine; started when first asked, and again after a fault."""

    def __init__(self, entrant, margin, patience, log=None):
        self.entrant, self.margin, self.patience, self.log = entrant, margin, patience, log
        self.transport = self.protocol = None

    async def ready(self):
        """Starts the engine unless it runs; it has loaded what it needs."""
        if self.protocol is None:
            try:
                self.transport, self.protocol = await Protocol.popen(
                    self.entrant.command,
                    setpgrp=True,
                    cwd=self.entrant.directory,
                    stderr=self.log or asyncio.subprocess.DEVNULL,
                )
                await asyncio.wait_for(self.introduce(), START_SECONDS)
            except (OSError, chess.engine.EngineError, asyncio.TimeoutError) as error:
                reason = str(error) or f"no answer within {START_SECONDS} s"
                raise MatchError(f"{self.entrant.name} does not start: {reason}") from None
        return self.protocol

    async def introduce(self):
        await self.protocol.initialize()
        await self.protocol.configure(self.entrant.options)
        await self.protocol.ping()

    async def think(self, board, limit, allowed, game):
        """The engine's move with what it said, and the seconds it took.

        `allowed` is its time in seconds, `None` where no clock runs. Raises
        Forfeit.
        """
        patience = self.patience if allowed is None else allowed + self.margin + HANG_SECONDS
        protocol = await self.ready()
        protocol.thinking_since = time.perf_counter()
        try:
            move = protocol.play(board, limit, game=game, info=chess.engine.INFO_ALL)
            result = await asyncio.wait_for(move, patience)
        except asyncio.TimeoutError:
            await self.close(kill=True)
            raise Forfeit(Forfeit.HANG, f"no move for {patience:.1f} s") from None
        except chess.engine.EngineTerminatedError as error:
            await self.close(kill=True)
            raise Forfeit(Forfeit.CRASH, str(error)) from None
        except chess.engine.EngineError as error:
            await self.close(kill=True)
            raise Forfeit(Forfeit.ILLEGAL, str(error)) from None
        if not result.move:
            raise Forfeit(Forfeit.NO_MOVE)
        if allowed is not None and protocol.thought > allowed + self.margin:
            raise Forfeit(Forfeit.TIME, f"{protocol.thought:.3f} s of {allowed:.3f} s")
        return result, protocol.thought

    async def close(self, kill=False):
        """Ends the engine, by force where it does not go by itself."""
        transport, protocol, self.transport, self.protocol = self.transport, self.protocol, None, None
        if transport is None:
            return
        if not kill:
            with contextlib.suppress(chess.engine.EngineError, asyncio.TimeoutError, OSError):
                await asyncio.wait_for(protocol.quit(), QUIT_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(transport.get_pid(), signal.SIGKILL)
            else:
                transport.kill()
        transport.close()

"""An engine that speaks UCI or XBoard, as one side of a match."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time

import chess
import chess.engine

from . import MatchError

# Engines load networks and tables before they respond.
START_SECONDS = 120
# An engine that does not respond within this time after its clock has run out counts as hung.
HANG_SECONDS = 10
QUIT_SECONDS = 3
# How engines report that they do not do what they were told: Stockfish and Tessera, and Lc0.
PROBLEM = re.compile(r"(?:info string error:|error )\s*(.+)", re.IGNORECASE)
# The time that Stockfish and Tessera, or Lc0, reserve for delays, in milliseconds. Their defaults differ, and some
# exceed the fixed time of a fast game.
OVERHEADS = ("Move Overhead", "MoveOverheadMs")
OVERHEAD = 10


class Forfeit(Exception):
    """Raised if the side to move forfeits the game because of a fault."""

    ILLEGAL, NO_MOVE, TIME = "illegal move", "no move", "time loss"
    CRASH, HANG = "crash", "hang"
    KINDS = (ILLEGAL, NO_MOVE, TIME, CRASH, HANG)
    # The singular and the plural.
    COUNTED = {
        ILLEGAL: ("illegal move", "illegal moves"), NO_MOVE: ("missing move", "missing moves"),
        TIME: ("time loss", "time losses"), CRASH: ("crash", "crashes"), HANG: ("hang", "hangs"),
    }

    def __init__(self, kind, detail=""):
        # The text is written to a PGN tag, which a double quote would end.
        detail = " ".join(detail.replace('"', "'").split())
        super().__init__(f"{kind} ({detail})" if detail else kind)
        self.kind = kind

    @classmethod
    def counted(cls, number, kind):
        """Returns the number of faults of a kind, in words."""
        one, several = cls.COUNTED[kind]
        return f"{number} {one if number == 1 else several}"


class Clock:
    """Measures the time from the opponent's move to the reply, like a chess clock.

    Preparation for a new game does not count as thinking time. If the engine
    ponders and the opponent plays a different move, the time that the engine
    needs to stop pondering counts.
    """

    answer: str
    # The commands that start the engine's own time.
    starts = ("go",)
    thinking_since = 0.0
    running = False
    thought = 0.0
    # The first problem that the engine has reported.
    problem = None

    def start(self):
        self.thinking_since, self.running = time.perf_counter(), False

    def send_line(self, line):
        super().send_line(line)
        if line == "isready":
            self.running = False
        elif not self.running and line.startswith(self.starts):
            self.thinking_since, self.running = time.perf_counter(), True

    def line_received(self, line):
        if line.startswith(self.answer):
            self.thought = time.perf_counter() - self.thinking_since


class Uci(Clock, chess.engine.UciProtocol):
    answer = "bestmove"
    starts = ("go", "ponderhit", "stop")

    def line_received(self, line):
        super().line_received(line)
        if problem := PROBLEM.match(line):
            self.problem = self.problem or problem[1]


class XBoard(Clock, chess.engine.XBoardProtocol):
    answer = "move"


PROTOCOLS = {"uci": Uci, "xboard": XBoard}


class Player:
    """A running engine, which is started on first use and restarted after each fault."""

    def __init__(self, entrant, margin, patience, ponder=False, log=None):
        self.entrant, self.margin, self.patience, self.log = entrant, margin, patience, log
        self.ponder = ponder
        self.options = dict(entrant.options)
        # The option by which the overhead was set here.
        self.reserved = None
        self.transport = self.protocol = None

    async def ready(self):
        """Starts the engine unless it is running, and waits until it has loaded.

        Raises MatchError if it does not start, or reports that it does not play as told.
        """
        if self.protocol is None:
            try:
                self.transport, self.protocol = await PROTOCOLS[self.entrant.protocol].popen(
                    self.entrant.command,
                    setpgrp=True,
                    cwd=self.entrant.directory,
                    stderr=self.log or asyncio.subprocess.DEVNULL,
                )
                await asyncio.wait_for(self.introduce(), START_SECONDS)
            except (OSError, chess.engine.EngineError, asyncio.TimeoutError) as error:
                reason = str(error) or f"no answer within {START_SECONDS} s"
                self.check()
                raise MatchError(f"{self.entrant.name} does not start: {reason}") from None
            self.check()
        return self.protocol

    async def introduce(self):
        await self.protocol.initialize()
        self.reserve()
        await self.protocol.configure(self.options)
        await self.protocol.ping()

    def reserve(self):
        """Sets the overhead of an engine on a clock, so that no engine gets less time to think than another."""
        named = {name.lower() for name in self.options}
        thinking = self.entrant.thinking
        for name in OVERHEADS:
            if (thinking.clock or thinking.time) and name in self.protocol.options and name.lower() not in named:
                self.options[name] = str(OVERHEAD)
                self.reserved = name

    def check(self):
        """Raises MatchError if the engine has reported a problem: it would play differently from what was asked."""
        if self.protocol is not None and self.protocol.problem:
            raise MatchError(f"{self.entrant.name} reports an error: {self.protocol.problem}")

    async def configure(self, options):
        """Sets options for this process and any process that replaces it."""
        self.options.update(options)
        if self.protocol is not None:
            try:
                await self.protocol.configure(options)
                await asyncio.wait_for(self.protocol.ping(), START_SECONDS)
                self.check()
            except (chess.engine.EngineTerminatedError, asyncio.TimeoutError):
                await self.close(kill=True)
            except chess.engine.EngineError as error:
                raise MatchError(f"{self.entrant.name}: {error}") from None

    async def think(self, board, limit, allowed, game):
        """Returns the engine's move or resignation with its info, and the seconds taken.

        `allowed` is the remaining time in seconds, or None without a clock. Raises
        Forfeit.
        """
        patience = self.patience if allowed is None else allowed + self.margin + HANG_SECONDS
        protocol = await self.ready()
        protocol.start()
        try:
            move = protocol.play(board, limit, game=game, info=chess.engine.INFO_ALL, ponder=self.ponder)
            result = await asyncio.wait_for(move, patience)
        except asyncio.TimeoutError:
            self.check()
            await self.close(kill=True)
            raise Forfeit(Forfeit.HANG, f"no move for {patience:.1f} s") from None
        except chess.engine.EngineTerminatedError as error:
            self.check()
            await self.close(kill=True)
            raise Forfeit(Forfeit.CRASH, str(error)) from None
        except chess.engine.EngineError as error:
            await self.close(kill=True)
            raise Forfeit(Forfeit.ILLEGAL, str(error)) from None
        self.check()
        if not result.move and not result.resigned:
            raise Forfeit(Forfeit.NO_MOVE)
        if allowed is not None and protocol.thought > allowed + self.margin:
            raise Forfeit(Forfeit.TIME, f"{protocol.thought:.3f} s of {allowed:.3f} s")
        return result, protocol.thought

    async def close(self, kill=False):
        """Ends the engine, by force if it does not quit."""
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

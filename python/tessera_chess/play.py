"""The engine for python-chess."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import logging
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import chess
import chess.engine

from .programs import environment, program

# The time limit for the engine to start and load its network, and python-chess's own for its other answers.
_START_SECONDS = 120.0
_ANSWER_SECONDS = 10.0
_logger = logging.getLogger("tessera_chess")


def _interruptible(search: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the method with the addition that an interrupt stops the search."""

    @functools.wraps(search)
    def run(self: Engine, *arguments: Any, **options: Any) -> Any:
        try:
            return search(self, *arguments, **options)
        except KeyboardInterrupt:
            self.stop()
            raise

    return run


class _Protocol(chess.engine.UciProtocol):
    """Collects the errors that the engine reports while it starts, and logs later ones."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] | None = []

    def line_received(self, line: str) -> None:
        _, is_problem, text = line.partition("info string ERROR: ")
        if is_problem and self.problems is None:
            _logger.error(text)
        elif is_problem and self.problems is not None:
            self.problems.append(text)
        super().line_received(line)

    def started(self) -> None:
        """Raises the errors that the engine has reported."""
        problems, self.problems = self.problems, None
        if problems:
            raise chess.engine.EngineError("; ".join(dict.fromkeys(problems)))


class Engine(chess.engine.SimpleEngine):
    """An engine that survives an interrupt (Ctrl+C, or *Stop* in a notebook), which only ends its search."""

    if not TYPE_CHECKING:  # the inherited signatures remain
        play = _interruptible(chess.engine.SimpleEngine.play)
        analyse = _interruptible(chess.engine.SimpleEngine.analyse)

    def stop(self) -> None:
        """Stops the search that is running, and waits for its end."""
        # python-chess stops a running search before it sends another command, but if the search has not begun, it may
        # send "stop" before "go".
        protocol = self.protocol
        answered = asyncio.run_coroutine_threadsafe(protocol.ping(), protocol.loop)
        while not concurrent.futures.wait([answered], timeout=0.1).done:
            protocol.loop.call_soon_threadsafe(protocol.send_line, "stop")


_started: weakref.WeakSet[Engine] = weakref.WeakSet()


@functools.cache
def _close_at_exit() -> None:
    """Closes all engines when the main thread ends.

    Python waits for python-chess's threads at exit, and each of them waits for its engine.
    """

    def close() -> None:
        threading.main_thread().join()
        for engine in list(_started):
            engine.close()

    threading.Thread(target=close, name="tessera_chess", daemon=True).start()


def start(options: dict[str, str | int | bool | None]) -> Engine:
    """Starts the engine with these UCI options, and loads its network."""
    # In its own process group, the engine does not receive the terminal's or the notebook's interrupts.
    started = Engine.popen(_Protocol, program(), timeout=_START_SECONDS, env=environment(), setpgrp=True)
    assert isinstance(started, Engine) and isinstance(started.protocol, _Protocol)
    _started.add(started)
    _close_at_exit()
    try:
        _check(started, options)
        started.configure(options)
        # Loads the network. A ping would, too, but python-chess warns of the messages that come with it.
        started.play(chess.Board(), chess.engine.Limit(nodes=1), game=object())
        started.protocol.started()
    except BaseException:
        started.close()
        raise
    started.timeout = _ANSWER_SECONDS
    return started


def _check(engine: Engine, options: dict[str, str | int | bool | None]) -> None:
    """Raises `EngineError` if an option lacks a value. Buttons have none."""
    for name, value in options.items():
        option = engine.options.get(name)
        if value is None and option is not None and option.type != "button":
            raise chess.engine.EngineError(f"{name} needs a value: omit the option for its default, {option.default}")

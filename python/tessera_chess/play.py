"""The engine for python-chess."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import chess.engine

from .programs import environment, program

# Seconds. A cold disk takes long to load PyTorch's libraries; python-chess would wait for 10 seconds.
_PATIENCE = 60


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
    """Starts the engine with these UCI options."""
    # In its own process group, the engine does not receive the terminal's or the notebook's interrupts.
    started = Engine.popen_uci(program(), timeout=_PATIENCE, env=environment(), setpgrp=True)
    assert isinstance(started, Engine)
    _started.add(started)
    _close_at_exit()
    try:
        started.configure(options)
    except BaseException:
        started.close()
        raise
    return started

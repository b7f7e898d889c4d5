"""A table at which two engines play one game after another. Several tables play concurrently."""

from __future__ import annotations

import asyncio
import contextlib
import datetime

import chess

from .game import play
from .player import OVERHEAD, Player
from .running import say


class Table:
    """Two engines that are started once and play all games at this table."""

    def __init__(self, entrants, margin, patience, ponder=False, log=None):
        self.players = [Player(entrant, margin, patience, ponder, log) for entrant in entrants]

    async def play(self, board, white, adjudication):
        """Plays a game from `board`, in which the entrant with index `white` has White."""
        await self.ready()
        sides = {chess.WHITE: self.players[white], chess.BLACK: self.players[1 - white]}
        game = await play(board, sides, adjudication)
        game.headers["Event"] = " - ".join(player.entrant.name for player in self.players)
        game.headers["Site"] = "?"
        game.headers["Date"] = datetime.date.today().strftime("%Y.%m.%d")
        for side, player in sides.items():
            colour = chess.COLOR_NAMES[side].capitalize()
            game.headers[colour] = player.entrant.name
            game.headers[f"{colour}TimeControl"] = str(player.entrant.thinking)
        return game

    async def ready(self):
        """Starts the engines unless they are running. Raises MatchError if one does not play as told."""
        for player in self.players:
            await player.ready()

    async def configure(self, *options):
        """Sets the options of each engine."""
        for player, own in zip(self.players, options):
            await player.configure(own)

    async def close(self):
        for player in self.players:
            await player.close()


@contextlib.asynccontextmanager
async def tables(count, entrants, options, tool):
    """Opens `count` tables, the first of them with its engines started, and stops all engines at the end of the
    block. `tool` is the name of the tool in messages."""
    with open(options.log, "ab") if options.log else contextlib.nullcontext() as log:
        made = [Table(entrants, options.margin, options.patience, options.ponder, log) for _ in range(count)]
        try:
            await made[0].ready()
            for player in made[0].players:
                if player.reserved:
                    name, option = player.entrant.name, player.reserved
                    say(tool, f"{name}: {option} is {OVERHEAD} ms; option.{option}= sets it")
            yield made
        finally:
            await asyncio.gather(*(table.close() for table in made), return_exceptions=True)


async def share(tables, numbers, play):
    """Awaits play(table, number) for all numbers. A table that is free takes the next number.
    A failure at one table ends the games at all tables."""

    async def work(table):
        for number in numbers:
            await play(table, number)

    numbers = iter(numbers)
    working = [asyncio.ensure_future(work(table)) for table in tables]
    try:
        await asyncio.gather(*working)
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)

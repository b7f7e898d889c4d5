"""The PGN file of a match. It is written game by game, and read to resume the match."""

import os
import re
from pathlib import Path

from . import MatchError
from .player import Forfeit

SCORES = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
TAG = re.compile(r'^\[(\w+) "(.*)"\]$', re.MULTILINE)


def fault(reason):
    """Returns the colour and the kind of the fault that a reason names, or None."""
    colour, _, told = reason.partition(": ")
    return (colour, told.split(" (")[0]) if colour in ("White", "Black") else None


class Record:
    """Scores, faults and endings of the finished games, which are also in a file.

    `scores` contains the first player's scores by game number; the first player has White in
    even-numbered games. `match` identifies the conditions: a file with different conditions is
    rejected.
    """

    def __init__(self, names, match, path=None, resume=False):
        self.names, self.match, self.path = names, match, path and Path(path)
        self.scores = {}
        self.faults = {name: dict.fromkeys(Forfeit.KINDS, 0) for name in names}
        self.endings = {}
        if self.path and self.path.exists() and self.path.stat().st_size:
            if not resume:
                raise MatchError(f"{path} exists: continue it with --resume, or name another file")
            self.read()

    def read(self):
        """Loads the file's games, and removes an unfinished game at the end."""
        text = self.path.read_bytes().decode()
        # A game ends with an empty line, which follows a line that ends in the game's result.
        complete = [end.end() for end in re.finditer(r"(?:1-0|0-1|1/2-1/2)\n\n", text)]
        kept = text[: complete[-1]] if complete else ""
        for game in re.split(r"^(?=\[Event )", kept, flags=re.MULTILINE)[1:]:
            tags = dict(TAG.findall(game.split("\n\n", 1)[0]))
            if tags.get("Match") != self.match:
                raise MatchError(f"{self.path} contains a match with different settings: name another file")
            self.count(int(tags["Round"]) - 1, tags["Result"], tags["Reason"])
        if len(kept) < len(text):
            os.truncate(self.path, len(kept.encode()))

    def count(self, number, result, reason):
        """Counts a game; game numbers start at 0."""
        white = number % 2
        self.scores[number] = SCORES[result] if white == 0 else 1 - SCORES[result]
        colour, kind = fault(reason) or (None, reason)
        if colour:
            self.faults[self.names[white if colour == "White" else 1 - white]][kind] += 1
        self.endings[kind] = self.endings.get(kind, 0) + 1

    def add(self, number, game):
        """Adds a game and appends it to the file in one write."""
        game.headers["Round"], game.headers["Match"] = str(number + 1), self.match
        self.count(number, game.headers["Result"], game.headers["Reason"])
        if self.path:
            with open(self.path, "ab") as file:
                file.write(f"{game}\n\n".encode())
                file.flush()
                os.fsync(file.fileno())

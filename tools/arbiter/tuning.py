"""The state of a tuning run, which is written atomically to a file after every game."""

from __future__ import annotations

import json
from pathlib import Path

from . import MatchError
from .files import write_whole
from .player import Forfeit
from .record import SCORES, fault

# Maximum number of rows in the history.
HISTORY = 200


class Tuning:
    """The current values, and the games played since they last changed.

    `settings` are the conditions of the run: a file with different settings is rejected.
    `scores` contains the plus side's scores by game number.
    """

    def __init__(self, settings, parameters, pairs, path, resume):
        self.path, self.settings, self.all_pairs = Path(path), settings, pairs
        self.names = [parameter.name for parameter in parameters]
        self.pairs, self.values = 0, [parameter.start for parameter in parameters]
        self.scores, self.history = {}, []
        self.results = dict.fromkeys(SCORES.values(), 0)
        self.faults = dict.fromkeys(Forfeit.KINDS, 0)
        if self.path.exists():
            if not resume:
                raise MatchError(f"{path} exists: continue it with --resume, or name another file")
            self.read()

    def read(self):
        """Loads the file."""
        try:
            state = json.loads(self.path.read_text(encoding="utf-8"))
            for name, wanted in self.settings.items():
                found = state["settings"].get(name)
                if found != wanted:
                    raise MatchError(f"{self.path} contains a tuning run with different settings: {name} {found}")
            self.pairs, self.history, self.faults = state["pairs"], state["history"], state["faults"]
            self.values = [state["values"][name] for name in self.names]
            self.scores = {int(number): score for number, score in state["scores"].items()}
            self.results = {float(score): games for score, games in state["results"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise MatchError(f"{self.path} is not the state of a tuning run") from None

    def write(self):
        write_whole(self.path, json.dumps({
            "settings": self.settings,
            "pairs": self.pairs,
            "values": dict(zip(self.names, self.values)),
            "scores": self.scores,
            "results": self.results,
            "faults": self.faults,
            "history": self.history,
        }, indent=1))

    def add(self, number, game):
        """Adds a finished game; the plus side has White in even-numbered games."""
        white = SCORES[game.headers["Result"]]
        self.scores[number] = white if number % 2 == 0 else 1 - white
        self.results[self.scores[number]] += 1
        found = fault(game.headers["Reason"])
        if found:
            self.faults[found[1]] += 1
        self.write()

    def won(self):
        """Returns the number of the plus side's wins minus its losses since the values last changed."""
        return round(sum(2 * score - 1 for score in self.scores.values()))

    def move(self, values, pairs):
        """Updates the values after this number of pairs."""
        row = pairs * HISTORY // self.all_pairs
        if row > self.pairs * HISTORY // self.all_pairs:
            self.history.append({"pairs": pairs, "values": dict(zip(self.names, values))})
        self.values, self.pairs, self.scores = values, pairs, {}
        self.write()

"""The results of a match: score, Elo difference, and their uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .elo import elo, normalised_elo

# Two-sided 95 % of the normal distribution.
NORMAL_95 = 1.959964


@dataclass(frozen=True)
class Standings:
    """The standing of a match from the perspective of the first player. Elo differences and errors are None
    if the games are too few or their results too one-sided."""

    wins: int
    draws: int
    losses: int
    pentanomial: list | None
    score: float | None
    elo: float | None
    elo_error: float | None
    nelo: float | None
    nelo_error: float | None
    los: float | None

    @classmethod
    def of(cls, scores, paired=True):
        """Evaluates scores (0, ½ or 1) by game number.

        In a `paired` match, games 2k and 2k + 1 have the same opening with colours swapped.
        The estimates use only complete pairs (pentanomial), in which the opening's advantage
        cancels out. Games whose partners have not been played are omitted, but as long as there
        are at least as many of them as pairs, the estimates use all single games instead.
        """
        values = list(scores.values())
        pairs = [(scores[n] + scores[n + 1]) / 2 for n in scores if n % 2 == 0 and n + 1 in scores]
        paired = paired and len(pairs) > len(values) - 2 * len(pairs)
        return cls(
            wins=values.count(1),
            draws=values.count(0.5),
            losses=values.count(0),
            pentanomial=[pairs.count(quarters / 4) for quarters in range(5)] if paired else None,
            score=sum(values) / len(values) if values else None,
            **(estimates(pairs, 2) if paired else estimates(values, 1)),
        )

    def __str__(self):
        games = self.wins + self.draws + self.losses
        if not games:
            return "no game is finished"
        text = f"+{self.wins} ={self.draws} -{self.losses}, {self.score:.1%} of {games} games"
        if self.pentanomial:
            text += f", pairs {'-'.join(map(str, self.pentanomial))}"
        if self.elo is None:
            return f"{text}, Elo difference beyond measure"
        error = f"± {self.elo_error:.1f} (95 %)" if self.elo_error else "± beyond measure"
        text += f", Elo difference {self.elo:+.1f} {error}"
        if self.nelo is not None:
            text += f", nElo {self.nelo:+.1f} ± {self.nelo_error:.1f}"
        return text if self.los is None else f"{text}, LOS {self.los:.1%}"


def estimates(sample, games):
    """Returns Elo differences, their errors and the likelihood of superiority. `sample` contains the mean
    scores of independent units, each of which consists of `games` games."""
    known = dict.fromkeys(("elo", "elo_error", "nelo", "nelo_error", "los"))
    if not sample:
        return known
    mean = sum(sample) / len(sample)
    known["elo"] = elo(mean)
    if len(sample) == 1:
        return known
    variance = sum((value - mean) ** 2 for value in sample) / (len(sample) - 1)
    if variance == 0:
        return known
    error = math.sqrt(variance / len(sample))
    bounds = [elo(mean + sign * NORMAL_95 * error) for sign in (-1, 1)]
    if None not in bounds:
        known["elo_error"] = (bounds[1] - bounds[0]) / 2
    deviation = math.sqrt(games * variance)
    known["nelo"] = normalised_elo(mean, deviation)
    known["nelo_error"] = normalised_elo(0.5 + NORMAL_95 * error, deviation)
    known["los"] = (1 + math.erf((mean - 0.5) / error / math.sqrt(2))) / 2
    return known

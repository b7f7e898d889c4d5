"""What a match has shown: score, Elo difference, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Two-sided 95 % of the normal distribution.
NORMAL_95 = 1.959964


def elo(score):
    """Elo difference of an expected score; None where it is beyond measure."""
    return -400 * math.log10(1 / score - 1) if 0 < score < 1 else None


@dataclass(frozen=True)
class Standings:
    """A match as the first player sees it; Elo and its error are None where too
    little was played, or too one-sidedly, to say."""

    wins: int
    draws: int
    losses: int
    pentanomial: list | None
    score: float | None
    elo: float | None
    elo_error: float | None
    los: float | None

    @classmethod
    def of(cls, scores):
        """Reckons from scores (0, ½ or 1) by game number.

        Games 2k and 2k + 1 share an opening with colours changed. Where every
        game has its partner the variance is that of the pairs (pentanomial),
        in which the opening's advantage cancels; else that of single games.
        """
        values = list(scores.values())
        pairs = [(scores[n] + scores[n + 1]) / 2 for n in scores if n % 2 == 0 and n + 1 in scores]
        paired = len(pairs) * 2 == len(values) and len(pairs) > 0
        sample = pairs if paired else values
        mean = sum(values) / len(values) if values else None
        error = superiority = None
        if len(sample) > 1:
            variance = sum((value - mean) ** 2 for value in sample) / (len(sample) - 1)
            deviation = math.sqrt(variance / len(sample))
            bounds = [elo(mean + sign * NORMAL_95 * deviation) for sign in (-1, 1)]
            if deviation > 0:
                superiority = (1 + math.erf((mean - 0.5) / deviation / math.sqrt(2))) / 2
                error = (bounds[1] - bounds[0]) / 2 if None not in bounds else None
        return cls(
            wins=values.count(1),
            draws=values.count(0.5),
            losses=values.count(0),
            pentanomial=[pairs.count(quarters / 4) for quarters in range(5)] if paired else None,
            score=mean,
            elo=None if mean is None else elo(mean),
            elo_error=error,
            los=superiority,
        )

    def __str__(self):
        games = self.wins + self.draws + self.losses
        if not games:
            return "no game is finished"
        text = f"+{self.wins} ={self.draws} -{self.losses}, {self.score:.1%} of {games} games"
        if self.elo is None:
            return f"{text}, Elo difference beyond measure"
        error = f"± {self.elo_error:.1f} (95 %)" if self.elo_error else "± beyond measure"
        text += f", Elo difference {self.elo:+.1f} {error}"
        return text if self.los is None else f"{text}, LOS {self.los:.1%}"

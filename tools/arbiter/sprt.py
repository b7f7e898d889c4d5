"""The sequential probability ratio test, which stops a match when the evidence suffices.

The generalised test compares two hypothetical Elo differences. Each is represented by the
likeliest distribution of scores with that difference, as in fishtest (Van den Bergh,
https://www.cantate.be/Fishtest/GSPRT_approximation.pdf; Wald 1945 for the bounds).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import MatchError
from .elo import NORMALISED, expected_score
from .likelihood import given_mean, given_t_value

# The count assumed for a score that has not occurred, as in fishtest. With 0, a hypothesis could be impossible.
UNSEEN = 1e-3
# The largest Elo difference for which the likelihood is computed, by model.
LARGEST = {"logistic": 1000, "normalised": 200}
MODELS = tuple(LARGEST)


@dataclass(frozen=True)
class Sprt:
    """Tests H1, an Elo difference of `elo1`, against H0, a difference of `elo0`.

    `alpha` is the probability of accepting H1 if H0 is true, and `beta` the probability of accepting H0 if H1 is
    true.
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05
    model: str = "logistic"

    @classmethod
    def parse(cls, text, model="logistic"):
        """Reads `ELO0,ELO1[,ALPHA[,BETA]]`."""
        try:
            numbers = [float(word) for word in text.split(",")]
            if not 2 <= len(numbers) <= 4:
                raise ValueError
        except ValueError:
            raise MatchError(f"sprt `{text}`: use ELO0,ELO1[,ALPHA[,BETA]]") from None
        test = cls(*numbers, model=model)
        largest = LARGEST[model]
        if not -largest <= test.elo0 < test.elo1 <= largest:
            raise MatchError(f"sprt `{text}`: ELO0 must be below ELO1, both within ±{largest} ({model})")
        if not (test.alpha > 0 and test.beta > 0 and test.alpha + test.beta < 1):
            raise MatchError(f"sprt `{text}`: ALPHA and BETA must be above 0, and together below 1")
        return test

    @property
    def bounds(self):
        """Returns Wald's bounds: H0 is accepted at or below the first one, and H1 at or above the second one."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def likeliest(self, frequencies, elo):
        """Returns the likeliest distribution of scores under this Elo difference."""
        if self.model == "logistic":
            return given_mean(frequencies, expected_score(elo))
        # A pair's score is the mean of two games' scores, so its deviation is √2 times smaller.
        games = 2 if len(frequencies) == 5 else 1
        return given_t_value(frequencies, math.sqrt(games) * elo / NORMALISED)

    def llr(self, counts):
        """Returns the log-likelihood ratio of H1 to H0, from trinomial or pentanomial counts."""
        counts = [count or UNSEEN for count in counts]
        frequencies = [count / sum(counts) for count in counts]
        under = [self.likeliest(frequencies, elo) for elo in (self.elo0, self.elo1)]
        return sum(count * math.log(p1 / p0) for count, p0, p1 in zip(counts, *under))

    def accepted(self, llr):
        """Returns the accepted hypothesis, or None while the test continues."""
        lower, upper = self.bounds
        return "H0" if llr <= lower else "H1" if llr >= upper else None

    def claim(self, accepted):
        """Returns the claim of an accepted hypothesis."""
        claimed, other = (self.elo0, self.elo1) if accepted == "H0" else (self.elo1, self.elo0)
        return f"{self.model} Elo difference {claimed:g} rather than {other:g}"


class Course:
    """The progress of a test during a match.

    Pairs are counted in the order of their openings, not in the order in which they finish.
    The verdict therefore depends neither on concurrency nor on interruptions, and short games
    are not counted earlier than long ones. With `size` 1, single games are counted in this way.
    """

    def __init__(self, test, size=2):
        self.test, self.size = test, size
        self.counts = [0] * (2 * size + 1)
        self.llr, self.accepted = 0.0, None

    def follow(self, scores):
        """Adds the pairs in which both games have scores; `scores` is indexed by game number."""
        while self.accepted is None:
            first = sum(self.counts) * self.size
            games = [scores.get(number) for number in range(first, first + self.size)]
            if None in games:
                return
            self.counts[round(2 * sum(games))] += 1
            self.llr = self.test.llr(self.counts)
            self.accepted = self.test.accepted(self.llr)

    def __str__(self):
        lower, upper = self.test.bounds
        text = f"LLR {self.llr:+.2f} ({lower:+.2f}, {upper:+.2f})"
        if self.accepted is None:
            return text
        tested = f"{sum(self.counts)} {'pairs' if self.size == 2 else 'games'}"
        return f"{text} after {tested}, {self.accepted} accepted: {self.test.claim(self.accepted)}"

    def summary(self):
        """Returns the test as JSON data."""
        lower, upper = self.test.bounds
        return {
            **vars(self.test), "lower": lower, "upper": upper,
            "llr": self.llr, "counts": self.counts, "accepted": self.accepted,
        }

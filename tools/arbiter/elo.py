"""Converts scores to Elo differences and back."""

from __future__ import annotations

import math

# Normalised Elo is the score's distance from ½ in standard deviations of one game,
# scaled so that it is close to the logistic Elo difference if there are no draws
# (Van den Bergh, https://www.cantate.be/Fishtest/normalized_elo.pdf).
NORMALISED = 800 / math.log(10)


def elo(score: float) -> float | None:
    """Returns the logistic Elo difference of an expected score, or None if it is infinite."""
    return 400 * math.log10(score / (1 - score)) if 0 < score < 1 else None


def expected_score(elo: float) -> float:
    """Returns the expected score at a logistic Elo difference."""
    return 1 / (1 + 10 ** (-elo / 400))


def normalised_elo(score: float, deviation: float) -> float:
    """Returns the normalised Elo difference of a score, given the standard deviation of a single game's score."""
    return NORMALISED * (score - 0.5) / deviation

"""Simultaneous perturbation stochastic approximation: tuning by self-play.

Every parameter is shifted by its step, up or down at random. The shifted values play
against values shifted in the opposite directions, and each parameter moves towards the
value of the winning side. Every pair of games therefore provides information about all
parameters (Spall, IEEE Transactions on Automatic Control 37, 1992).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from . import MatchError

# The decay exponents of rates and steps, and the stability constant, which lowers the first rates, as a share of
# the number of pairs. As in fishtest, the values are Spall's (IEEE Transactions on Aerospace and Electronic
# Systems 34, 1998).
ALPHA, GAMMA, STABILITY = 0.602, 0.101, 0.1


@dataclass(frozen=True)
class Parameter:
    """An option of the engine to be tuned.

    As in fishtest, `step_end` is the step at the last pair, and `rate_end` is the share of
    this step by which a win at the last pair moves the value. At earlier pairs, both the step
    and the share are larger.
    """

    name: str
    start: float
    low: float
    high: float
    step_end: float
    rate_end: float
    whole: bool = False

    @classmethod
    def parse(cls, text):
        """Reads `NAME=START,MIN,MAX,STEP_END,R_END`."""
        name, _, numbers = text.rpartition("=")
        try:
            start, low, high, step, rate = map(float, numbers.split(","))
        except ValueError:
            raise MatchError(f"option `{text}`: use NAME=START,MIN,MAX,STEP_END,R_END") from None
        if not name or not -math.inf < low <= start <= high < math.inf or low == high:
            raise MatchError(f"option `{text}`: START must be between MIN and MAX, which must differ")
        if not (0 < step < math.inf and 0 < rate < math.inf):
            raise MatchError(f"option `{text}`: STEP_END and R_END must be above zero")
        return cls(name, start, low, high, step, rate)

    def clipped(self, value):
        return min(max(value, self.low), self.high)

    def shown(self, value):
        """Returns a value rounded to a thousandth of a step, for display."""
        return f"{value:.{max(0, 3 - math.floor(math.log10(self.step_end)))}f}"

    def written(self, value):
        """Returns a value formatted for the engine."""
        return str(math.floor(value + 0.5)) if self.whole else self.shown(value)


@dataclass(frozen=True)
class Perturbation:
    """The direction in which each parameter is shifted, and the values of both sides."""

    signs: tuple
    plus: dict
    minus: dict


class Spsa:
    """The schedule of a tuning run over a number of game pairs."""

    def __init__(self, parameters, pairs, seed):
        self.parameters, self.pairs, self.seed = parameters, pairs, seed
        self.held_back = STABILITY * pairs

    def step(self, parameter, pair):
        """Returns the parameter's step at this pair; pairs count from 0."""
        step = parameter.step_end * (self.pairs / (pair + 1)) ** GAMMA
        # With a step below ½, both sides could get the same whole number. OpenBench has the same minimum.
        return max(step, 0.5) if parameter.whole else step

    def gain(self, parameter, pair):
        """Returns the change of the parameter for each game won at this pair."""
        ahead = (self.held_back + self.pairs) / (self.held_back + pair + 1)
        gain = parameter.rate_end * parameter.step_end**2 * ahead**ALPHA
        return gain / self.step(parameter, pair)

    def perturb(self, values, pair):
        """Returns the perturbation at a pair, which depends only on the seed."""
        draw = random.Random(f"{self.seed} {pair}")
        signs, plus, minus = [], {}, {}
        for parameter, value in zip(self.parameters, values):
            sign, fraction = (1 if draw.random() < 0.5 else -1), draw.random()
            signs.append(sign)
            for side, way in ((plus, sign), (minus, -sign)):
                moved = value + way * self.step(parameter, pair)
                if parameter.whole:
                    # Round randomly, so that the mean is the unrounded value.
                    moved = math.floor(moved + fraction)
                side[parameter.name] = parameter.written(parameter.clipped(moved))
        return Perturbation(tuple(signs), plus, minus)

    def learn(self, values, pair, signs, won):
        """Returns the values after the games of one or more pairs, starting with `pair`.

        `won` is the number of the plus side's wins minus the number of its losses.
        """
        return [
            parameter.clipped(value + self.gain(parameter, pair) * sign * won)
            for parameter, value, sign in zip(self.parameters, values, signs)
        ]

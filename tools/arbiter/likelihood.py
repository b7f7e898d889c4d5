"""The likeliest distribution of scores for a hypothesis about its mean or t-value.

Frequencies belong to evenly spaced scores from 0 to 1: loss, draw and win in single games
(trinomial), or 0, ½, 1, 1½ and 2 points in pairs of games (pentanomial). The methods for the
mean and for the t-value are by Michel Van den Bergh, and are also used in fishtest and fastchess:
https://www.cantate.be/Fishtest/support_MLE_multinomial.pdf, proposition 1.1, for the mean;
https://www.cantate.be/Fishtest/normalized_elo_practical.pdf, section 4.1, for the t-value.
"""

import math

# Tolerances for probabilities and multipliers: larger than rounding errors, and negligible for tests.
PRECISION = 1e-9
ROUNDING = 1e-13
MOST_ITERATIONS = 200


def scores(frequencies):
    """Returns the scores to which the frequencies belong."""
    return [index / (len(frequencies) - 1) for index in range(len(frequencies))]


def mean_and_variance(frequencies):
    values = scores(frequencies)
    mean = sum(p * value for p, value in zip(frequencies, values))
    return mean, sum(p * (value - mean) ** 2 for p, value in zip(frequencies, values))


def given_mean(frequencies, mean):
    """Returns the likeliest distribution with this mean. All frequencies must be nonzero."""
    return tilted(frequencies, [score - mean for score in scores(frequencies)])


def given_t_value(frequencies, t):
    """Returns the likeliest distribution whose mean is `t` standard deviations above ½.

    The constraint is nonlinear, so it is linearised at each step, starting from the
    uniform distribution.
    """
    likeliest = [1 / len(frequencies)] * len(frequencies)
    for _ in range(MOST_ITERATIONS):
        mean, variance = mean_and_variance(likeliest)
        sigma, last = math.sqrt(variance), likeliest
        likeliest = tilted(frequencies, [
            score - 0.5 - t * sigma * (1 + ((score - mean) / sigma) ** 2) / 2
            for score in scores(frequencies)
        ])
        if max(abs(p - q) for p, q in zip(likeliest, last)) < PRECISION:
            break
    return likeliest


def tilted(frequencies, deviations):
    """Returns the likeliest distribution with a mean deviation of zero.

    By Lagrange's method, its probabilities are pᵢ / (1 + x·dᵢ), where x solves
    Σ pᵢdᵢ / (1 + x·dᵢ) = 0. The sum falls from +∞ to −∞ between the two values of x nearest to 0 at
    which a probability is infinite. Newton's method finds the root; where a step would leave the
    interval, the interval is bisected instead.
    """
    low, high = -1 / max(deviations), -1 / min(deviations)
    x = 0.0
    for _ in range(MOST_ITERATIONS):
        ratios = [d / (1 + x * d) for d in deviations]
        value = sum(p * ratio for p, ratio in zip(frequencies, ratios))
        step = value / sum(p * ratio * ratio for p, ratio in zip(frequencies, ratios))
        if abs(step) <= ROUNDING * max(1, abs(x)):
            break
        low, high = (x, high) if value > 0 else (low, x)
        x = x + step if low < x + step < high else (low + high) / 2
    return [p / (1 + x * d) for p, d in zip(frequencies, deviations)]

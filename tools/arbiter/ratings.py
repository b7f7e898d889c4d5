"""Rates many players from their games by maximum likelihood.

The expected score of a game is a logistic function of the difference of the players'
ratings plus White's advantage (Bradley and Terry 1952, in Elo units); a draw counts as
half a win and half a loss, as in Ordo. The likelihood has a single maximum, which
Newton's method finds. Errors are computed by the sandwich estimator, which uses the
actual spread of the games' scores, so they are valid for any share of draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Elo per unit of the logistic function's argument.
SCALE = 400 / math.log(10)
# Number of draws against an average player that are added for each player. A single draw is enough for a player
# who won or lost all games to get a finite rating. BayesElo adds two draws.
PRIOR_DRAWS = 1.0
# Two-sided 95 % of the normal distribution.
NORMAL_95 = 1.959964
# Tolerance of a rating, in units of the logistic function's argument.
PRECISION = 1e-10
MOST_ITERATIONS = 100
# Limit on the length of a Newton step. Steps overshoot if a player lost or won all games.
LONGEST_STEP = 2.0


@dataclass(frozen=True)
class Rating:
    """A player's rating in Elo, its 95 % error, and statistics of the player's games.

    `error` is None if the games alone imply no finite rating, as after a score of 6–0. The rating then follows from
    `PRIOR_DRAWS`.
    """

    name: str
    elo: float
    error: float | None
    games: int
    score: float


def rate(games, anchors=None):
    """Returns the ratings in descending order, and White's advantage in Elo with its error.

    `games` are tuples (name of White, name of Black, White's score). `anchors` are known ratings.
    The ratings are shifted so that they match the anchors on average; without anchors, the mean
    rating is 0. The errors are those of the difference from the anchors, or from the mean. An error
    is None if the games alone imply no finite figure.
    """
    games = list(games)
    names = sorted({name for white, black, _ in games for name in (white, black)})
    anchors = {name: elo for name, elo in (anchors or {}).items() if name in names}
    index = {name: number for number, name in enumerate(names)}
    rows = [(index[white], index[black], score) for white, black, score in games]
    ratings = maximum(rows, len(names))
    covariance = sandwich(rows, ratings)
    known = [index[name] for name in anchors] or range(len(names))
    weight = [1 / len(known) if number in known else 0.0 for number in range(len(names))]
    weight.append(0.0)
    mean = sum(anchors.values()) / len(anchors) if anchors else 0.0
    origin = sum(w * rating for w, rating in zip(weight, ratings))
    finite = comparable(rows, [index[name] for name in anchors])
    rated = []
    for name, number in index.items():
        contrast = [-w for w in weight]
        contrast[number] += 1
        own = [score if white == number else 1 - score for white, black, score in rows if number in (white, black)]
        rated.append(Rating(
            name, mean + SCALE * (ratings[number] - origin),
            SCALE * deviation(covariance, contrast) * NORMAL_95 if number in finite else None,
            len(own), sum(own) / len(own),
        ))
    advantage = [0.0] * len(names) + [1.0]
    lopsided = {score for _, _, score in rows} in ({0.0}, {1.0})
    white = SCALE * ratings[-1], None if lopsided else SCALE * deviation(covariance, advantage) * NORMAL_95
    return sorted(rated, key=lambda rating: -rating.elo), white


def comparable(rows, anchors):
    """Returns the numbers of the players whose ratings are finite without a prior, relative to the anchors or, without
    anchors, to the largest group of such players.

    The difference between two players is finite if each has scored against the other, directly or through others
    (Ford 1957).
    """
    scored = {}
    for white, black, score in rows:
        if score > 0:
            scored.setdefault(white, set()).add(black)
        if score < 1:
            scored.setdefault(black, set()).add(white)

    def reachable(start):
        found, ahead = {start}, [start]
        while ahead:
            new = scored.get(ahead.pop(), set()) - found
            found |= new
            ahead += new
        return found

    reach = {number: reachable(number) for row in rows for number in row[:2]}
    tied = {one: {other for other in found if one in reach[other]} for one, found in reach.items()}
    if anchors:
        return {one for one, others in tied.items() if others.issuperset(anchors)}
    largest = max(tied.values(), key=len)
    return largest if len(largest) > 1 else set()


def expected(ratings, white, black):
    return 1 / (1 + math.exp(-(ratings[white] - ratings[black] + ratings[-1])))


def maximum(rows, players):
    """Returns the likeliest ratings, followed by White's advantage, in units of the logistic function's argument."""
    ratings = [0.0] * (players + 1)
    for _ in range(MOST_ITERATIONS):
        gradient, information = derivatives(rows, ratings)
        step = solve(information, gradient)
        longest = max(map(abs, step))
        factor = min(1.0, LONGEST_STEP / longest) if longest else 0.0
        ratings = [rating + factor * change for rating, change in zip(ratings, step)]
        if longest < PRECISION:
            break
    return ratings


def derivatives(rows, ratings):
    """Returns the gradient of the log-likelihood and the negative of its second derivatives."""
    size = len(ratings)
    gradient = [0.0] * size
    information = [[0.0] * size for _ in range(size)]
    for white, black, score in rows:
        p = expected(ratings, white, black)
        for i, sign in signs(white, black, size):
            gradient[i] += sign * (score - p)
            for j, other in signs(white, black, size):
                information[i][j] += sign * other * p * (1 - p)
    for player, rating in enumerate(ratings):
        p = 1 / (1 + math.exp(-rating))
        gradient[player] += PRIOR_DRAWS * (0.5 - p)
        information[player][player] += PRIOR_DRAWS * p * (1 - p)
    return gradient, information


def signs(white, black, size):
    """Returns the gradient of a game's logistic argument with respect to the ratings."""
    return (white, 1.0), (black, -1.0), (size - 1, 1.0)


def sandwich(rows, ratings):
    """Returns the covariance of the ratings: information⁻¹ · spread of the gradients · information⁻¹."""
    size = len(ratings)
    _, information = derivatives(rows, ratings)
    spread = [[0.0] * size for _ in range(size)]
    for white, black, score in rows:
        residual = score - expected(ratings, white, black)
        for i, sign in signs(white, black, size):
            for j, other in signs(white, black, size):
                spread[i][j] += sign * other * residual * residual
    columns = [solve(information, [float(i == j) for i in range(size)]) for j in range(size)]
    product = [[dot(column, row) for row in spread] for column in columns]
    return [[dot(line, column) for column in columns] for line in product]


def deviation(covariance, contrast):
    """Returns the standard deviation of a combination of ratings."""
    return math.sqrt(max(dot(contrast, [dot(row, contrast) for row in covariance]), 0.0))


def dot(left, right):
    return sum(a * b for a, b in zip(left, right))


def solve(matrix, vector):
    """Solves linear equations with a nonsingular matrix, by Gaussian elimination with partial pivoting."""
    rows = [[*row, value] for row, value in zip(matrix, vector)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(column + 1, size):
            factor = rows[row][column] / rows[column][column]
            if factor:
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    solution = [0.0] * size
    for row in reversed(range(size)):
        known = dot(rows[row][row + 1 : size], solution[row + 1 :])
        solution[row] = (rows[row][size] - known) / rows[row][row]
    return solution


def groups(games):
    """Returns the groups of players that games connect, directly or indirectly, as sets of names."""
    found = []
    for white, black, _ in games:
        touched = [group for group in found if white in group or black in group]
        merged = {white, black}.union(*touched)
        found = [group for group in found if group not in touched] + [merged]
    return found

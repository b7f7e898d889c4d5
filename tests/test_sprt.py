"""Compares the SPRT with maxima found by brute force, and runs it in matches."""

import math
import random
import re
import unittest

from tool_test import WEAK_ENGINE, ToolTest

from arbiter import MatchError
from arbiter.elo import NORMALISED, elo, expected_score
from arbiter.likelihood import mean_and_variance
from arbiter.sprt import Course, Sprt
from arbiter.standings import Standings


def highest(function, low, high):
    """Returns the maximum of a unimodal function, found by ternary search."""
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if function(left) < function(right) else (low, right)
    return function((low + high) / 2)


def log_likelihood(counts, probabilities):
    if min(probabilities) <= 0:
        return -math.inf
    return sum(count * math.log(p) for count, p in zip(counts, probabilities))


def best_trinomial(counts, mean):
    """Returns the highest log-likelihood with this mean, which leaves one probability free."""

    def at(wins):
        draws = 2 * (mean - wins)
        return log_likelihood(counts, [1 - wins - draws, draws, wins])

    return highest(at, max(0, 2 * mean - 1), mean)


def best_trinomial_of_t(counts, t):
    """Does the same with (mean − ½) / σ equal to `t`; wins − losses then follow from the draws."""

    def at(draws):
        excess = t * math.sqrt((1 - draws) / (1 + t * t))
        return log_likelihood(counts, [(1 - draws - excess) / 2, draws, (1 - draws + excess) / 2])

    return highest(at, 0, 1 - t * t / (1 + t * t))


def best_pentanomial(counts, mean):
    """Returns the highest log-likelihood with this mean, by coordinate ascent that preserves it."""
    # Mixing the uniform distribution with one end of the scale can produce any mean.
    end = 1 if mean > 0.5 else 0
    share = abs(mean - 0.5) * 2
    point = [(1 - share) / 5] * 5
    point[4 * end] += share
    for _ in range(100):
        for middle in (1, 2, 3):
            def moved(step):
                shifted = list(point)
                for offset, factor in ((-1, 1), (0, -2), (1, 1)):
                    shifted[middle + offset] += factor * step
                return shifted

            low, high = -min(point[middle - 1], point[middle + 1]), point[middle] / 2
            for _ in range(60):
                left, right = low + (high - low) / 3, high - (high - low) / 3
                rises = log_likelihood(counts, moved(left)) < log_likelihood(counts, moved(right))
                low, high = (left, high) if rises else (low, right)
            point = moved((low + high) / 2)
    return log_likelihood(counts, point)


class LikelihoodTest(unittest.TestCase):
    def test_ratio_of_single_games(self):
        for counts in ([30, 50, 40], [200, 300, 100], [1, 1, 9]):
            test = Sprt(-5, 40)
            expected = best_trinomial(counts, expected_score(40)) - best_trinomial(counts, expected_score(-5))
            self.assertAlmostEqual(test.llr(counts), expected, places=6)

    def test_normalised_ratio_of_single_games(self):
        for counts in ([30, 50, 40], [200, 300, 100], [3, 1, 9]):
            low, high = -5 / NORMALISED, 40 / NORMALISED
            expected = best_trinomial_of_t(counts, high) - best_trinomial_of_t(counts, low)
            self.assertAlmostEqual(Sprt(-5, 40, model="normalised").llr(counts), expected, places=6)

    def test_ratio_of_pairs(self):
        for counts in ([3, 20, 40, 25, 6], [50, 10, 5, 10, 20]):
            low, high = (best_pentanomial(counts, expected_score(elo)) for elo in (0, 30))
            self.assertAlmostEqual(Sprt(0, 30).llr(counts), high - low, places=5)

    def test_normalised_likeliest_pairs_are_a_maximum(self):
        # At a constrained maximum, the gradient of the likelihood lies in the span of the gradients
        # of the constraints (sum and t-value).
        frequencies, t = [0.1, 0.2, 0.4, 0.25, 0.05], 0.15

        def t_value(point):
            total = sum(point)
            mean, variance = mean_and_variance([p / total for p in point])
            return (mean - 0.5) / math.sqrt(variance)

        found = Sprt(0, 1, model="normalised").likeliest(frequencies, t * NORMALISED / math.sqrt(2))
        self.assertAlmostEqual(sum(found), 1)
        self.assertAlmostEqual(t_value(found), t)
        slope = [f / p for f, p in zip(frequencies, found)]
        constraint = []
        for index in range(5):
            nudged = list(found)
            nudged[index] += 1e-7
            constraint.append((t_value(nudged) - t_value(found)) / 1e-7)
        mean_slope, mean_constraint = sum(slope) / 5, sum(constraint) / 5
        along = [value - mean_slope for value in slope]
        across = [value - mean_constraint for value in constraint]
        product = sum(a * b for a, b in zip(along, across))
        lengths = math.sqrt(sum(a * a for a in along) * sum(b * b for b in across))
        self.assertAlmostEqual(abs(product / lengths), 1, places=5)

    def test_ratios_that_fastchess_publishes(self):
        # The expected values are from fastchess's unit tests, to two decimals.
        for counts, low, high, model, expected in (
            ([21184, 40708, 21404], 0.5, 2.5, "logistic", -1.57),
            ([57030, 106593, 57433], 0, 2, "logistic", -2.59),
            ([223, 9863, 21279, 10037, 246], 0.5, 2.5, "logistic", -3.07),
            ([871, 26175, 55983, 26678, 821], 0, 2, "logistic", -4.98),
            ([36027, 68692, 36433], 0, 2, "normalised", 0.92),
            ([365, 16618, 36229, 16974, 390], 0, 2, "normalised", 2.25),
            ([127, 4883, 10712, 5150, 104], -1.75, 0.25, "normalised", 3.01),
        ):
            self.assertAlmostEqual(Sprt(low, high, model=model).llr(counts), expected, delta=0.005)

    def test_scores_that_did_not_occur(self):
        # As in fishtest, zero counts are replaced by a thousandth.
        expected = best_trinomial([1e-3, 20, 5], expected_score(30)) - best_trinomial([1e-3, 20, 5], 0.5)
        self.assertAlmostEqual(Sprt(0, 30).llr([0, 20, 5]), expected, places=6)
        for model in ("logistic", "normalised"):
            test = Sprt(0, 5, model=model)
            self.assertTrue(0 < test.llr([0, 0, 0, 0, 100]) < 10)
            self.assertTrue(-10 < test.llr([100, 0, 0, 0, 0]) < 0)
            self.assertLess(test.llr([0, 0, 1000, 0, 0]), 0)
            self.assertAlmostEqual(test.llr([0, 0, 0, 0, 0]), 0, delta=0.01)


class SprtTest(unittest.TestCase):
    def test_bounds(self):
        lower, upper = Sprt(0, 5).bounds
        self.assertAlmostEqual(upper, math.log(19))
        self.assertAlmostEqual(lower, -math.log(19))
        lower, upper = Sprt(0, 5, alpha=0.1, beta=0.01).bounds
        self.assertAlmostEqual(upper, math.log(9.9))
        self.assertAlmostEqual(lower, math.log(0.01 / 0.9))

    def test_reading(self):
        self.assertEqual(Sprt.parse("-3,1"), Sprt(-3, 1, 0.05, 0.05))
        self.assertEqual(Sprt.parse("0,2,0.1,0.2", "normalised"), Sprt(0, 2, 0.1, 0.2, "normalised"))
        for text in ("5", "5,0", "a,b", "0,5,0", "0,5,0.6,0.4", "0,nan", "0,2000", "0,1,.1,.1,.1"):
            with self.subTest(text), self.assertRaises(MatchError):
                Sprt.parse(text)

    def test_error_rates(self):
        # Matches between engines that differ by ELO0, and by ELO1. With an error rate of 5 %, more
        # than 19 errors in 200 occur once in 400 times, and so do fewer than 3.
        for test in (Sprt(0, 60), Sprt(0, 120, model="normalised")):
            for truth, wrong in ((test.elo0, "H1"), (test.elo1, "H0")):
                with self.subTest(test.model, truth=truth):
                    chances = test.likeliest([0.06, 0.22, 0.44, 0.22, 0.06], truth)
                    draw = random.Random(1)
                    errors = sum(self.accepted(test, chances, draw) == wrong for _ in range(200))
                    self.assertTrue(3 <= errors <= 19, f"{errors} errors")

    def accepted(self, test, chances, draw):
        counts = [0] * 5
        while not test.accepted(test.llr(counts)):
            counts[draw.choices(range(5), chances)[0]] += 1
        return test.accepted(test.llr(counts))

    def test_pairs_enter_in_order(self):
        course = Course(Sprt(0, 5))
        course.follow({0: 1, 2: 1, 3: 1})
        self.assertEqual(course.counts, [0, 0, 0, 0, 0])
        course.follow({0: 1, 2: 1, 3: 1, 1: 0.5})
        self.assertEqual(course.counts, [0, 0, 0, 1, 1])

    def test_the_verdict_stands(self):
        course = Course(Sprt(0, 100))
        course.follow(dict.fromkeys(range(200), 1))
        self.assertEqual(course.accepted, "H1")
        accepted = course.summary()
        course.follow(dict.fromkeys(range(200), 1) | dict.fromkeys(range(200, 9000), 0))
        self.assertEqual(course.summary(), accepted)


class EloTest(unittest.TestCase):
    def test_scores_and_elo_are_inverse(self):
        for difference in (-300, 0, 12.5):
            self.assertAlmostEqual(elo(expected_score(difference)), difference)

    def test_standings_that_fastchess_publishes(self):
        # The values are from fastchess's unit tests, which divide variances by n instead of n − 1.
        pairs = [34, 54, 63, 64, 75]
        points = [(0, 0), (0.5, 0), (0.5, 0.5), (1, 0.5), (1, 1)]
        scores = [score for count, pair in zip(pairs, points) for score in pair * count]
        standings = Standings.of(dict(enumerate(scores)))
        self.assertEqual(standings.pentanomial, pairs)
        for value, expected in (
            (standings.elo, 55.58), (standings.elo_error, 27.65),
            (standings.nelo, 57.94), (standings.nelo_error, 28.28),
        ):
            self.assertAlmostEqual(value / expected, 1, delta=0.003)
        singles = Standings.of(dict(enumerate([1] * 76 + [0] * 89 + [0.5] * 123)), paired=False)
        self.assertIsNone(singles.pentanomial)
        self.assertAlmostEqual(singles.nelo, -20.76, delta=0.1)
        self.assertAlmostEqual(singles.nelo_error, 40.13, delta=0.01)
        self.assertAlmostEqual(singles.los, 0.1553, delta=0.001)

    def test_a_game_whose_partner_is_played_waits(self):
        scores = dict(enumerate([1, 0, 0.5, 0.5, 1, 1]))
        self.assertEqual(Standings.of(scores).pentanomial, [0, 0, 2, 0, 1])
        waiting = Standings.of({**scores, 6: 0})
        self.assertEqual(waiting.pentanomial, [0, 0, 2, 0, 1])
        self.assertEqual(waiting.losses, 2)
        self.assertEqual(waiting.elo, Standings.of(scores).elo)


class MatchTest(ToolTest):
    """Matches in which the position and the engines' weakness determine how each game ends."""

    def setUp(self):
        super().setUp()
        self.write_openings("book.epd", 100)

    def match(self, *arguments, weakness=(0.2, 0.4), status=0):
        engines = []
        for name, share in zip(("new", "base"), weakness):
            engines += ["--engine", f"name={name},option.Weakness={share}"]
        return self.run_tool(
            "match", "--each", f"cmd={WEAK_ENGINE},nodes=1", *engines, "--openings", "book.epd",
            "--resign", "1,900", "--max-plies", "2", *arguments, status=status,
        )

    def test_it_stops_when_decided(self):
        better = self.match("--sprt", "-10,80")
        self.assertEqual(better["sprt"]["accepted"], "H1")
        self.assertGreaterEqual(better["sprt"]["llr"], better["sprt"]["upper"])
        self.assertEqual(better["sprt"]["counts"], better["pentanomial"])
        self.assertEqual(better["games"], 2 * sum(better["pentanomial"]))
        worse = self.match("--sprt", "-10,80", weakness=(0.4, 0.2))
        self.assertEqual(worse["sprt"]["accepted"], "H0")
        self.assertLessEqual(worse["sprt"]["llr"], worse["sprt"]["lower"])
        self.assertTrue(worse["elo"] < 0 < better["elo"])

    def test_the_verdict_does_not_depend_on_how_many_play_at_once(self):
        alone, together = self.match("--sprt", "0,60"), self.match("--sprt", "0,60", "--jobs", "3")
        self.assertEqual(alone["sprt"], together["sprt"])
        self.assertEqual(together["games"], 2 * sum(together["pentanomial"]))

    def test_an_interrupted_test_resumes_exactly(self):
        arguments = ["--sprt", "0,60", "--elo-model", "normalized"]
        whole = self.match(*arguments, "--pgn", "whole.pgn")
        tenth = [found.start() for found in re.finditer(r"^\[Event ", self.text("whole.pgn"), re.M)][9]
        (self.folder / "part.pgn").write_text(self.text("whole.pgn")[: tenth + 80])
        resumed = self.match(*arguments, "--pgn", "part.pgn", "--resume")
        self.assertEqual(resumed, whole)
        self.assertEqual(self.games("part.pgn"), self.games("whole.pgn"))
        self.assertEqual(self.match(*arguments, "--pgn", "part.pgn", "--resume"), whole)
        self.assertEqual(len(self.games("part.pgn")), whole["games"])

    def test_a_decided_test_still_plays_the_running_pair_s_second_game(self):
        whole = self.match("--sprt", "0,60", "--pgn", "games.pgn")
        played = whole["games"]
        last = "[Event " + self.text("games.pgn").split("[Event ")[-1]
        with open(self.folder / "games.pgn", "a") as file:
            file.write(last.replace(f'[Round "{played}"]', f'[Round "{played + 4}"]'))
        resumed = self.match("--sprt", "0,60", "--pgn", "games.pgn", "--resume")
        self.assertEqual(resumed["games"], played + 2)
        self.assertEqual(resumed["sprt"], whole["sprt"])

    def games(self, name):
        """Returns the games without the tags that vary over time."""
        return re.sub(r" [\d.]+s }", "", self.text(name)).split("[Event ")[1:]

    def text(self, name):
        return (self.folder / name).read_text()

    def test_undecided_at_the_last_game(self):
        result = self.match("--sprt", "0,5", "--limit", "6")
        self.assertEqual((result["games"], result["sprt"]["accepted"]), (6, None))

    def test_single_games(self):
        result = self.match("--sprt", "0,80", "--unpaired")
        self.assertEqual(len(result["sprt"]["counts"]), 3)
        self.assertEqual(
            result["sprt"]["counts"], [result["losses"], result["draws"], result["wins"]]
        )
        self.assertIsNone(result["pentanomial"])
        self.assertIsNotNone(result["sprt"]["accepted"])

    def test_mistakes_get_one_line(self):
        for arguments, expected in (
            (["--sprt", "5,0"], "ELO0 must be below ELO1"),
            (["--sprt", "0"], "use ELO0,ELO1"),
            (["--sprt", "0,5,2"], "ALPHA and BETA"),
            (["--sprt", "0,300", "--elo-model", "normalised"], "within ±200"),
            (["--sprt", "0,5", "--limit", "3"], "--limit must be even"),
            (["--sprt", "0,5", "--elo-model", "bayesian"], "invalid choice"),
            (["--each", "name=x"], "give it to --engine"),
            (["--each", "nodes=many"], "nodes `many` is not a number"),
            (["--limit", "0"], "above zero"),
        ):
            with self.subTest(expected):
                said = self.match(*arguments, status=2)
                self.assertIn(expected, said)
                self.assertEqual(len(said.splitlines()), 1, said)


if __name__ == "__main__":
    unittest.main()

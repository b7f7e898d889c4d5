"""Compares the rating list with known ratings, and plays leagues of real games."""

import json
import math
import os
import random
import subprocess
import sys
import unittest
from pathlib import Path

from patience import PATIENCE
from tool_test import ROOT, WEAK_ENGINE, ToolTest

from arbiter.elo import elo
from arbiter.ratings import derivatives, groups, maximum, rate, solve
from arbiter.standings import Standings


def expected(difference):
    return 1 / (1 + 10 ** (-difference / 400))


def season(ratings, rounds, advantage=0, draws=0.3, seed=1):
    """Plays round robins whose results are sampled from the model."""
    source = random.Random(seed)
    for _ in range(rounds):
        for white in ratings:
            for black in ratings:
                if white == black:
                    continue
                p = expected(ratings[white] - ratings[black] + advantage)
                # Draws replace wins and losses in equal numbers, so that the mean does not change.
                share = draws * 2 * min(p, 1 - p)
                drawn = source.random()
                yield white, black, 0.5 if drawn < share else float(drawn < share / 2 + p)


class RatingTest(unittest.TestCase):
    def test_two_players_differ_by_the_logistic_formula(self):
        scores = [1.0] * 300 + [0.5] * 200 + [0.0] * 100
        games = [("a", "b", s) if n % 2 else ("b", "a", 1 - s) for n, s in enumerate(scores)]
        (best, other), (advantage, _) = rate(games, {"b": 2000})
        self.assertEqual((best.name, best.games, other.elo, other.error), ("a", 600, 2000, 0))
        self.assertAlmostEqual(best.elo - 2000, elo(400 / 600), delta=0.5)
        self.assertAlmostEqual(advantage, 0, delta=2)
        single = Standings.of(dict(enumerate(scores)), paired=False)
        self.assertAlmostEqual(best.error, single.elo_error, delta=0.02 * single.elo_error)

    def test_ratings_are_recovered(self):
        truth = {"a": 300, "b": 120, "c": 0, "d": -60, "e": -360}
        found, (advantage, error) = rate(season(truth, 500, advantage=35))
        self.assertEqual([rating.name for rating in found], list("abcde"))
        self.assertAlmostEqual(sum(rating.elo for rating in found), 0, places=6)
        for rating in found:
            self.assertLess(abs(rating.elo - truth[rating.name]), 1.6 * rating.error)
            self.assertLess(rating.error, 15)
        self.assertLess(abs(advantage - 35), 1.6 * error)

    def test_errors_cover_the_truth_at_the_stated_rate(self):
        truth = {"a": 100, "b": 0, "c": -100}
        covered = 0
        for seed in range(200):
            found, _ = rate(season(truth, 12, seed=seed), {"b": 0})
            best = next(rating for rating in found if rating.name == "a")
            covered += abs(best.elo - 100) < best.error
        self.assertTrue(180 <= covered <= 199, covered)

    def test_the_gradient_vanishes_at_the_maximum(self):
        games = list(season({"a": 0, "b": 50, "c": 400}, 5))
        rows = [("abc".index(white), "abc".index(black), score) for white, black, score in games]
        gradient, _ = derivatives(rows, maximum(rows, 3))
        self.assertLess(max(map(abs, gradient)), 1e-6)

    def test_a_winner_of_all_games_has_only_the_ratings_of_the_prior(self):
        games = [("a", "b", 1.0), ("b", "a", 0.0)] * 10
        (best, other), (_, white) = rate(games)
        self.assertTrue(math.isfinite(best.elo) and best.elo > 100)
        self.assertEqual((best.error, other.error), (None, None))
        self.assertIsNotNone(white)
        (best, other), _ = rate(games, {"b": 1350})
        self.assertEqual((best.error, other.error), (None, 0))
        (best, other), _ = rate([*games, ("a", "b", 0.5)])
        self.assertTrue(best.error and other.error)

    def test_ratings_are_finite_within_a_group_that_scores_in_a_circle(self):
        circle = [("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 1.0), ("b", "a", 0.5)]
        beaten = [("a", "d", 1.0), ("d", "b", 0.0)]
        unknown = lambda anchors=None: {it.name for it in rate(circle + beaten, anchors)[0] if it.error is None}
        self.assertEqual(unknown(), {"d"})
        self.assertEqual(unknown({"d": 1000}), {"a", "b", "c"})
        self.assertEqual(unknown({"a": 1000}), {"d"})

    def test_an_advantage_that_decides_all_games_is_the_priors(self):
        _, (_, error) = rate([("a", "b", 1.0), ("b", "a", 1.0)] * 3)
        self.assertIsNone(error)

    def test_equations_are_solved(self):
        self.assertEqual(solve([[0.0, 2.0], [4.0, 0.0]], [2.0, 8.0]), [2.0, 1.0])

    def test_groups(self):
        games = [("a", "b", 1), ("c", "d", 1), ("b", "c", 0), ("e", "f", 1)]
        self.assertEqual(groups(games), [{"a", "b", "c", "d"}, {"e", "f"}])


class ToolsTest(ToolTest):
    def rank(self, *arguments):
        command = [sys.executable, ROOT / "tools/rank", *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)

    def pgn(self, name, *games):
        text = "".join(
            f'[Event "?"]\n[White "{white}"]\n[Black "{black}"]\n[Result "{result}"]\n\n1. e4 {result}\n\n'
            for white, black, result in games
        )
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def test_files_become_one_list(self):
        one = self.pgn("one.pgn", ("a", "b", "1-0"), ("b", "a", "1/2-1/2"), ("a", "b", "*"))
        two = self.pgn("two.pgn", ("b", "c|d", "1-0"), ("c|d", "b", "0-1"))
        text = self.rank(one, two, "--anchor", "c|d=1000", "--json").stdout
        listed = json.loads(text.splitlines()[-1])
        self.assertEqual([(p["name"], p["games"]) for p in listed["players"]], [("a", 2), ("b", 4), ("c|d", 2)])
        self.assertIn("| 3 | c\\|d | 1000 |", text)
        self.assertEqual(listed["players"][2]["elo"], 1000)

    def test_a_rating_of_the_prior_is_marked(self):
        won = self.pgn("won.pgn", *[("a", "SF", "1-0"), ("SF", "a", "0-1")] * 3)
        text = self.rank(won, "--anchor", "SF=1350", "--json").stdout
        self.assertRegex(text, r"\| 1 \| a \| \d+ \| prior \| 6 \| 100.0% \|")
        self.assertIn("\nprior: the games imply no finite figure for a.", text)
        self.assertIsNone(json.loads(text.splitlines()[-1])["players"][0]["error"])
        even = self.pgn("even.pgn", ("a", "SF", "1-0"), ("SF", "a", "1-0"))
        text = self.rank(even).stdout
        self.assertIn("(prior).\nprior: the games imply no finite figure for White's advantage.", text)
        fair = self.pgn("fair.pgn", ("a", "SF", "1-0"), ("SF", "a", "1/2-1/2"))
        self.assertNotIn("prior", self.rank(fair).stdout)

    def test_mistakes_get_one_line(self):
        apart = self.pgn("apart.pgn", ("a", "b", "1-0"), ("c", "d", "1-0"))
        one = self.pgn("one.pgn", ("a", "b", "1-0"))
        empty = self.pgn("empty.pgn", ("a", "b", "*"))
        for arguments, reason in [
            ([apart], "no game connects"), ([empty], "no finished game"), (["none.pgn"], "none.pgn"),
            ([one, "--anchor", "x=1"], "no player is named x"), ([one, "--anchor", "a"], "--anchor a"),
            ([one, "--anchor", "a=nan"], "finite"), ([one, "--anchor", "b=1,a=-inf"], "finite"),
        ]:
            done = self.rank(*arguments)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(reason, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    @unittest.skipUnless(Path("/dev/full").exists(), "/dev/full is Linux's")
    def test_a_list_that_cannot_be_written_is_an_error(self):
        one = self.pgn("one.pgn", ("a", "b", "1-0"))
        command = [sys.executable, ROOT / "tools/rank", one, "--json"]
        # Python writes at once to a file only if it is told to.
        for environment in ({}, {"PYTHONUNBUFFERED": "1"}):
            with open("/dev/full", "w") as full:
                done = subprocess.run(
                    command, cwd=self.folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                    env={**os.environ, **environment},
                )
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr, "rank: error: cannot write the report: No space left on device\n")

    def test_a_reader_may_close_the_pipe(self):
        one = self.pgn("one.pgn", ("a", "b", "1-0"))
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as closed:
            done = subprocess.run(
                [sys.executable, ROOT / "tools/rank", one], cwd=self.folder, stdout=closed, stderr=subprocess.PIPE,
                text=True, timeout=PATIENCE,
            )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_league_is_played_and_resumes(self):
        league = self.folder / "league.toml"
        engines = "".join(f'[[engine]]\nname = "{name}"\nwith = "cmd={WEAK_ENGINE}"\n' for name in "abc")
        league.write_text(f'each = "nodes=1"\nanchors = {{ a = 500 }}\n{engines}', encoding="utf-8-sig")
        arguments = [league, "-o", "games", "--limit", "2", "--", "--max-plies", "30"]

        def play():
            command = [sys.executable, ROOT / "tools/league", *arguments[:5], "--json", *arguments[5:]]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout.splitlines()[-1])

        first = play()
        self.assertEqual(len(first["players"]), 3)
        self.assertEqual({rating["games"] for rating in first["players"]}, {4})
        self.assertEqual(first, play())

    def test_a_faulty_engine_is_named_before_the_first_game(self):
        engines = "".join(
            f'[[engine]]\nname = "{name}"\nwith = "cmd={WEAK_ENGINE},option.Beta={beta}"\n'
            for name, beta in (("a", 1), ("b", 1), ("c", 5))
        )
        (self.folder / "league.toml").write_text(f'each = "nodes=1"\n{engines}')
        command = [sys.executable, ROOT / "tools/league", "league.toml", "-o", "games", "--limit", "2"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "league: error: c reports an error: Beta must be 0 to 1, not 5\n")
        self.assertEqual(list((self.folder / "games").iterdir()), [])

    def test_invalid_leagues(self):
        for text, reason in [
            ("", "two or more"), ("x = 1", "unknown key x"), ("[", "cannot read"),
            ('[[engine]]\nname = "a"', "`with`"),
            ('pairs = [["a", "z"]]\n' + "".join(f'[[engine]]\nname = "{n}"\nwith = ""\n' for n in "ab"), "names z"),
        ]:
            (self.folder / "league.toml").write_text(text, encoding="utf-8")
            command = [sys.executable, ROOT / "tools/league", "league.toml", "-o", "games"]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 2)
            self.assertIn(reason, done.stderr)


if __name__ == "__main__":
    unittest.main()

"""Compares the tuner with its schedule, and runs it on an engine whose best options are known."""

import os
import unittest
from pathlib import Path
from unittest import mock

from tool_test import WEAK_ENGINE, ToolTest

import chess.pgn
from arbiter import MatchError
from arbiter.files import write_whole
from arbiter.spsa import Parameter, Spsa
from arbiter.tuning import Tuning

OPTIONS = ["Alpha=20,0,100,8,0.2", "Beta=0.3,0,1,0.08,0.2"]


class SpsaTest(unittest.TestCase):
    def test_steps_and_gains_are_those_of_fishtest(self):
        parameter, pairs = Parameter("X", 50, 0, 100, step_end=6, rate_end=0.002), 1000
        spsa = Spsa([parameter], pairs, seed=0)
        held_back = 0.1 * pairs
        for pair in (0, 10, 999):
            # In fishtest's notation: c = c_end · N^γ and a = r_end · c_end² · (A + N)^α. At
            # iteration k the perturbation is c/k^γ and R = a / (A + k)^α / c², and each game won
            # adds R · c.
            step = 6 * pairs**0.101 / (pair + 1) ** 0.101
            a = 0.002 * 6**2 * (held_back + pairs) ** 0.602
            gain = a / (held_back + pair + 1) ** 0.602 / step**2 * step
            self.assertAlmostEqual(spsa.step(parameter, pair), step)
            self.assertAlmostEqual(spsa.gain(parameter, pair), gain)
        self.assertAlmostEqual(spsa.step(parameter, 999), 6)
        self.assertAlmostEqual(spsa.gain(parameter, 999), 0.002 * 6)

    def test_perturbations_repeat_by_their_seed(self):
        parameters = [Parameter(name, 50, 0, 100, 6, 0.002) for name in "ABCDEFGH"]
        values = [50] * 8
        drawn = [Spsa(parameters, 100, seed=1).perturb(values, pair).signs for pair in range(9)]
        again = [Spsa(parameters, 100, seed=1).perturb(values, pair).signs for pair in range(9)]
        other = [Spsa(parameters, 100, seed=2).perturb(values, pair).signs for pair in range(9)]
        self.assertEqual(drawn, again)
        self.assertNotEqual(drawn, other)
        self.assertGreater(len(set(drawn)), 5)

    def test_sides_mirror_each_other(self):
        parameter = Parameter("X", 1.5, 0, 4, step_end=0.1, rate_end=0.002)
        seen = Spsa([parameter], 1, seed=0).perturb([1.5], 0)
        self.assertEqual({seen.plus["X"], seen.minus["X"]}, {"1.4000", "1.6000"})
        self.assertEqual(float(seen.plus["X"]) > 1.5, seen.signs[0] > 0)
        at_the_end = Spsa([parameter], 1, seed=0).perturb([4.0], 0)
        self.assertEqual({at_the_end.plus["X"], at_the_end.minus["X"]}, {"3.9000", "4.0000"})

    def test_whole_numbers_differ_and_keep_their_mean(self):
        parameter = Parameter("X", 7.3, 0, 20, step_end=0.2, rate_end=0.002, whole=True)
        spsa = Spsa([parameter], 2000, seed=0)
        seen = [spsa.perturb([7.3], pair) for pair in range(2000)]
        values = [(int(one.plus["X"]), int(one.minus["X"])) for one in seen]
        self.assertEqual({abs(plus - minus) for plus, minus in values}, {1})
        # The mean has a standard deviation of about 0.01.
        self.assertAlmostEqual(sum(plus + minus for plus, minus in values) / 4000, 7.3, delta=0.04)

    def test_values_follow_the_winner(self):
        parameters = [Parameter("X", 5, 0, 10, 1, 0.1), Parameter("Y", 5, 0, 10, 1, 0.1)]
        spsa = Spsa(parameters, 1, seed=0)
        for value, expected in zip(spsa.learn([5, 5], 0, (1, -1), 3), (5.3, 4.7)):
            self.assertAlmostEqual(value, expected)
        self.assertEqual(spsa.learn([5, 5], 0, (1, -1), 900), [10, 0])

    def test_reading(self):
        self.assertEqual(
            Parameter.parse("Move Overhead=5,0,9,1,0.002"), Parameter("Move Overhead", 5, 0, 9, 1, 0.002)
        )
        for text in (
            "X", "X=1,2,3", "X=5,0,4,1,1", "X=1,0,4,0,1", "X=1,0,4,1,-1", "X=1,1,1,1,1", "=1,0,4,1,1",
            "X=nan,0,4,1,1", "X=1,0,inf,1,1",
        ):
            with self.subTest(text), self.assertRaises(MatchError):
                Parameter.parse(text)


class StateTest(ToolTest):
    def test_a_failure_leaves_the_old_file(self):
        path = self.folder / "state"
        write_whole(path, "old")
        with mock.patch("os.fsync", side_effect=OSError), self.assertRaises(OSError):
            write_whole(path, "new")
        self.assertEqual(path.read_text(), "old")
        write_whole(path, "new")
        self.assertEqual((path.read_text(), os.listdir(self.folder)), ("new", ["state"]))

    def test_games_and_faults_are_kept(self):
        parameters = [Parameter("X", 1, 0, 2, 0.1, 0.1)]
        made = [{"books": 1}, parameters, 10, self.folder / "state.json"]
        tuning = Tuning(*made, resume=False)
        for number, result, reason in ((0, "1-0", "checkmate"), (1, "1-0", "Black: time loss (2 s)")):
            game = chess.pgn.Game()
            game.headers["Result"], game.headers["Reason"] = result, reason
            tuning.add(number, game)
        again = Tuning(*made, resume=True)
        self.assertEqual(again.scores, {0: 1, 1: 0})
        self.assertEqual((again.won(), again.faults["time loss"]), (0, 1))
        self.assertEqual(vars(again), vars(tuning))


class TuneTest(ToolTest):
    """Tunes an engine that is best at Alpha 70 and Beta 0.6."""

    def setUp(self):
        super().setUp()
        self.write_openings("book.epd", 150)

    def tune(self, *arguments, options=OPTIONS, state="tune.json", games=300, status=0):
        return self.run_tool(
            "tune", "--engine", f"cmd={WEAK_ENGINE}", "nodes=1", "--option", *options,
            "--limit", str(games), "--batch", "3", "--openings", "book.epd", "--order", "sequential",
            "--resign", "1,900", "--max-plies", "2", "--state", state, *arguments, status=status,
        )

    def test_it_finds_the_best(self):
        result = self.tune("--seed", "1")
        self.assertEqual(result["pairs"], 150)
        self.assertEqual(result["wins"] + result["draws"] + result["losses"], 300)
        self.assertAlmostEqual(int(result["values"]["Alpha"]), 70, delta=10)
        self.assertAlmostEqual(float(result["values"]["Beta"]), 0.6, delta=0.1)

    def test_an_interrupted_tuning_resumes_exactly(self):
        whole = self.tune(games=60, state="whole.json")
        book = self.folder / "book.epd"
        text = book.read_text()
        # The third batch fails in its second pair.
        lines = text.splitlines()
        lines[7] = "no position"
        book.write_text("\n".join(lines))
        self.assertIn("number 8", self.tune(games=60, status=2))
        book.write_text(text)
        self.assertIn("--resume", self.tune(games=60, status=2))
        stopped = (self.folder / "tune.json").read_text()
        self.assertIn('"pairs": 6', stopped)
        self.assertIn('"13"', stopped)
        self.assertNotIn('"14"', stopped)
        self.assertEqual(self.tune("--resume", "--jobs", "2", games=60), whole)
        self.assertEqual(self.tune("--resume", games=60), whole)
        self.assertIn("games 60", self.tune("--resume", games=66, status=2))
        self.assertEqual(*(Path(self.folder / name).read_text() for name in ("tune.json", "whole.json")))

    def test_mistakes_get_one_line(self):
        (self.folder / "broken.json").write_text("{}")
        for arguments, keywords, expected in (
            ([], {"options": ["Gamma=1,0,2,0.1,0.1"]}, "no option Gamma"),
            ([], {"options": ["Noisy=0,0,1,0.1,0.1"]}, "Noisy is a check"),
            ([], {"options": ["Alpha=1,0,200,0.1,0.1"]}, "takes 0 to 100 for Alpha"),
            ([], {"options": ["Beta=0.5,0,5,0.1,0.1"]}, "reports an error: Beta must be 0 to 1, not 5.00"),
            ([], {"options": ["Alpha=1,0,20"]}, "NAME=START,MIN,MAX,STEP_END,R_END"),
            ([], {"options": [*OPTIONS, "alpha=1,0,2,0.1,0.1"]}, "named twice"),
            ([], {"games": 3}, "--limit must be even"),
            (["--resume"], {"state": "broken.json"}, "is not the state of a tuning"),
            ([], {"state": "nowhere/tune.json"}, "nowhere/tune.json"),
        ):
            with self.subTest(expected):
                said = self.tune(*arguments, status=2, **keywords)
                self.assertIn(expected, said)
                self.assertEqual(len(said.splitlines()), 1, said)


if __name__ == "__main__":
    unittest.main()

"""tools/match with well-behaved and misbehaving engines."""

import math
import os
import shutil
import subprocess
import sys
import textwrap
import unittest

from patience import PATIENCE
from tool_test import ROOT, ToolTest, lack

import chess.pgn
from arbiter.entrant import Entrant, Thinking, TimeControl
from arbiter.openings import Openings
from arbiter.player import Forfeit
from arbiter.standings import Standings, elo

# Plays the legal move that sorts last. On its third move it commits the fault given as its
# argument.
ENGINE = textwrap.dedent(
    """
    import sys, time, chess
    fault, moves, board = sys.argv[1], 0, chess.Board()
    for line in sys.stdin:
        words = line.split()
        if words[0] == "uci":
            print("id name fake\\noption name Level type spin default 1 min 1 max 9\\nuciok", flush=True)
        elif words[0] == "isready":
            print("readyok", flush=True)
        elif words[0] == "ucinewgame":
            moves = 0
        elif words[0] == "position":
            fen, _, played = line.partition(" moves ")
            board = chess.Board() if "startpos" in fen else chess.Board(fen.split("fen ")[1])
            for move in played.split():
                board.push_uci(move)
        elif words[0] == "go":
            moves += 1
            best = max(move.uci() for move in board.legal_moves)
            if moves == 3 and fault == "illegal":
                best = "a1h7"
            elif moves == 3 and fault == "none":
                best = "(none)"
            elif moves == 3 and fault == "slow":
                time.sleep(1.5)
            elif moves == 3 and fault == "crash":
                sys.exit(3)
            elif moves == 3 and fault == "hang":
                time.sleep(1000)
            print(f"info depth 1 score cp 900\\nbestmove {best}", flush=True)
        elif words[0] == "quit":
            break
    """
)

# Plays the first legal move. It reports a refused value of `Bad`, in Lc0's words with the argument `lc0`, and reads
# no network named `missing`. With the argument `slow`, it exceeds its time on every move.
STRICT_ENGINE = textwrap.dedent(
    """
    import sys, time, chess
    kind, board = sys.argv[1], chess.Board()
    prefix = "error " if kind == "lc0" else "info string ERROR: "
    for line in sys.stdin:
        words = line.split()
        print(line.strip(), file=sys.stderr, flush=True)
        if words[0] == "uci":
            print("option name Bad type string default 1\\noption name Net type string default x")
            print("option name Move Overhead type spin default 500 min 0 max 5000\\nuciok", flush=True)
        elif words[:4] == ["setoption", "name", "Bad", "value"] and not words[4].isdigit():
            print(prefix + "Bad must be a number", flush=True)
        elif words[:4] == ["setoption", "name", "Net", "value"] and words[4] == "missing":
            print(prefix + "cannot read missing", flush=True)
        elif words[0] == "isready":
            print("readyok", flush=True)
        elif words[0] == "position":
            fen, _, played = line.partition(" moves ")
            board = chess.Board() if "startpos" in fen else chess.Board(fen.split("fen ")[1])
            for move in played.split():
                board.push_uci(move)
        elif words[0] == "go":
            if kind == "late":
                print(prefix + "the device failed")
            time.sleep(2 * (kind == "slow"))
            print("bestmove", next(iter(board.legal_moves)), flush=True)
        elif words[0] == "quit":
            break
    """
)

# Plays the same moves over the XBoard protocol, and resigns or stays silent on its third move.
XBOARD_ENGINE = textwrap.dedent(
    """
    import sys, time, chess
    fault, moves, board, forced = sys.argv[1], 0, chess.Board(), True
    for line in sys.stdin:
        words = line.split()
        if words[0] == "protover":
            print('feature myname="x" setboard=1 usermove=1 ping=1 sigint=0 reuse=1 done=1', flush=True)
        elif words[0] == "ping":
            print("pong", words[1], flush=True)
        elif words[0] == "new":
            moves, board = 0, chess.Board()
        elif words[0] == "setboard":
            board = chess.Board(line.split(" ", 1)[1])
        elif words[0] == "force":
            forced = True
        elif words[0] == "usermove":
            board.push_uci(words[1])
        if words[0] == "go" or words[0] == "usermove" and not forced:
            forced, moves = False, moves + 1
            if moves == 3 and fault == "resigns":
                print("resign", flush=True)
                continue
            if moves == 3 and fault == "slow":
                time.sleep(1.5)
            best = max(board.legal_moves, key=lambda move: move.uci())
            board.push(best)
            print("1 900 1 10 " + best.uci(), flush=True)
            print("move", best.uci(), flush=True)
        if words[0] == "quit":
            break
    """
)

# Ponders when asked to, expecting the first legal move. It logs its input. Before it ends a search
# on the opponent's time, it waits for the time given as its argument.
PONDERING_ENGINE = textwrap.dedent(
    """
    import sys, time, chess
    seconds, log, board, pondering = float(sys.argv[1]), open(sys.argv[2], "a"), chess.Board(), False
    for line in sys.stdin:
        words = line.split()
        print(words[0], *words[1:2], file=log, flush=True)
        if words[0] == "uci":
            print("option name Ponder type check default false\\nuciok", flush=True)
        elif words[0] == "isready":
            print("readyok", flush=True)
        elif words[0] == "position":
            fen, _, played = line.partition(" moves ")
            board = chess.Board() if "startpos" in fen else chess.Board(fen.split("fen ")[1])
            for move in played.split():
                board.push_uci(move)
        elif words[0] == "quit":
            break
        if words[0] == "stop" and pondering:
            time.sleep(seconds)
        if words[0] == "go" and "ponder" in words:
            pondering = True
        elif words[0] == "go" or pondering and words[0] in ("stop", "ponderhit"):
            pondering = False
            move = next(iter(board.legal_moves))
            board.push(move)
            reply = next(iter(board.legal_moves), None)
            print("bestmove", move.uci(), *(["ponder", reply.uci()] if reply else []), flush=True)
    """
)


class MatchTest(ToolTest):
    def setUp(self):
        super().setUp()
        (self.folder / "fake.py").write_text(ENGINE)
        (self.folder / "xboard.py").write_text(XBOARD_ENGINE)
        (self.folder / "strict.py").write_text(STRICT_ENGINE)

    def engine(self, name, fault="well", extra=""):
        return ["--engine", f"name={name},cmd={sys.executable} fake.py {fault}{extra}"]

    def strict(self, name, kind="well", extra=""):
        return ["--engine", f"name={name},cmd={sys.executable} strict.py {kind}{extra}"]

    def match(self, *arguments, status=0):
        return self.run_tool("match", *arguments, status=status)

    def games(self, name="games.pgn"):
        with open(self.folder / name) as file:
            return list(iter(lambda: chess.pgn.read_game(file), None))

    def test_each_fault_loses_and_is_counted(self):
        kinds = {"illegal": "illegal move", "none": "no move", "slow": "time loss", "crash": "crash"}
        for fault, kind in kinds.items():
            with self.subTest(fault):
                # Only the clock of the slow engine runs, because the other one might be slow by chance.
                limit = ",time=1" if fault == "slow" else ",nodes=1"
                result = self.match(
                    *self.engine("good", extra=",nodes=1"), *self.engine("bad", fault, limit),
                    "--limit", "2", "--pgn", f"{fault}.pgn",
                )
                self.assertEqual((result["wins"], result["losses"]), (2, 0))
                self.assertEqual(result["faults"]["bad"][kind], 2)
                self.assertEqual(sum(result["faults"]["good"].values()), 0)
                self.assertEqual(result["endings"], {kind: 2})
                for game in self.games(f"{fault}.pgn"):
                    loser = "White" if game.headers["White"] == "bad" else "Black"
                    self.assertTrue(game.headers["Reason"].startswith(f"{loser}: {kind}"))
                    self.assertEqual(game.errors, [])

    def test_faults_are_reported_in_words(self):
        told = [[Forfeit.counted(n, kind) for kind in Forfeit.KINDS] for n in (1, 2)]
        self.assertEqual(told[0], ["1 illegal move", "1 missing move", "1 time loss", "1 crash", "1 hang"])
        self.assertEqual(told[1], ["2 illegal moves", "2 missing moves", "2 time losses", "2 crashes", "2 hangs"])

    def test_xboard_engines_play_too(self):
        for fault, endings, time_losses in [
            ("well", {"adjudication: length": 2}, 0), ("resigns", {"resignation": 2}, 0), ("slow", {"time loss": 2}, 2),
        ]:
            with self.subTest(fault):
                time = 1 if fault == "slow" else 60
                xboard = f"name=old,proto=xboard,time={time},cmd={sys.executable} xboard.py {fault}"
                result = self.match(
                    *self.engine("new"), "--engine", xboard, "--limit", "2", "--nodes", "5", "--max-plies", "12",
                    "--pgn", f"{fault}.pgn",
                )
                self.assertEqual(result["endings"], endings)
                self.assertEqual(result["faults"]["old"]["time loss"], time_losses)
                self.assertEqual(sum(result["faults"]["old"].values()), time_losses)
                self.assertEqual([game.errors for game in self.games(f"{fault}.pgn")], [[], []])
        self.assertIn("not nodes", self.match(
            *self.engine("new"), "--engine", "name=old,proto=xboard,cmd=x", "--nodes", "5", status=2,
        ))

    def test_a_hang_ends_the_engine_and_not_the_match(self):
        # On a busy machine, the good engine may take as long, so the patience grows.
        for patience in (1, 4, 16, 64):
            result = self.match(
                *self.engine("good"), *self.engine("bad", "hang"),
                "--limit", "2", "--nodes", "5", "--patience", f"{patience}s",
            )
            hangs = [result["faults"][name]["hang"] for name in ("good", "bad")]
            if hangs[0] == 0:
                break
        self.assertEqual(hangs, [0, 2])

    def test_an_engine_that_plays_otherwise_than_told_ends_the_match(self):
        good = self.strict("good", extra=",nodes=1")
        for kind, option, told in [
            ("well", "Net=missing", "cannot read missing"), ("lc0", "Bad=x", "Bad must be a number"),
            ("late", "Bad=1", "the device failed"),
        ]:
            with self.subTest(kind):
                # The faulty engine would have the second move.
                said = self.match(
                    *good, *self.strict("bad", kind, f",nodes=1,option.{option}"), "--limit", "2",
                    "--pgn", f"{kind}.pgn", status=2,
                )
                self.assertEqual(said, f"match: error: bad reports an error: {told}\n")
                self.assertFalse((self.folder / f"{kind}.pgn").exists())
        # The other engine has not been asked for a move.
        told = ["--log", "log"]
        self.match(*good, *self.strict("bad", extra=",nodes=1,option.Net=missing"), *told, status=2)
        self.assertNotIn("go ", (self.folder / "log").read_text())

    def test_the_overhead_of_engines_on_a_clock_is_set_and_told(self):
        pair = [*self.strict("own", extra=",time=60,option.Move Overhead=7"), *self.strict("set", extra=",tc=60+1")]
        limits = ["--limit", "2", "--max-plies", "4", "--log", "log"]
        command = [sys.executable, ROOT / "tools/match", *pair, *limits]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = [line for line in done.stderr.splitlines() if "Overhead" in line]
        self.assertEqual(told, ["match: set: Move Overhead is 10 ms; option.Move Overhead= sets it"])
        values = {line for line in (self.folder / "log").read_text().splitlines() if "Overhead" in line}
        self.assertEqual(values, {f"setoption name Move Overhead value {n}" for n in (7, 10)})
        self.match(*self.strict("a"), *self.strict("b"), "--nodes", "1", *limits[:4], "--log", "nodes")
        self.assertNotIn("Overhead", (self.folder / "nodes").read_text())

    def test_a_bare_king_does_not_win_on_time(self):
        for fen, score, reason in [
            # FIDE Laws 6.9: the opponent has a king, a king and a knight, or a king and a pawn.
            ("8/8/8/4k3/8/8/8/3QK3 w - - 0 1", 0.5, ", but Black cannot mate"),
            ("8/8/8/4k1n1/8/8/8/3QK3 w - - 0 1", 0.5, ", but Black cannot mate"),
            ("8/8/6p1/4k3/8/8/8/3QK3 w - - 0 1", 0.0, ""),
        ]:
            with self.subTest(fen):
                (self.folder / "end.epd").write_text(fen)
                result = self.match(
                    *self.strict("slow", "slow", ",time=0.5"), *self.strict("other", extra=",nodes=1"),
                    "--limit", "1", "--unpaired", "--openings", "end.epd", "--pgn", "games.pgn",
                )
                self.assertEqual(result["score"], score)
                self.assertEqual(result["faults"]["slow"]["time loss"], 1)
                [game] = self.games()
                self.assertRegex(game.headers["Reason"], rf"^White: time loss \(2.* s of 0.500 s\){reason}$")
                self.assertEqual(game.headers["Termination"], "time forfeit")
                (self.folder / "games.pgn").unlink()

    def test_colours_change_over_each_opening(self):
        book = "1. e4 c5 *", "1. d4 d5 *", "1. c4 e5 *"
        (self.folder / "book.pgn").write_text("".join(f'[Event "?"]\n\n{moves}\n\n' for moves in book))
        self.match(
            *self.engine("one"), *self.engine("two"), "--limit", "6", "--nodes", "1", "--jobs", "2",
            "--openings", "book.pgn", "--seed", "5", "--max-plies", "8", "--pgn", "games.pgn",
        )
        games = sorted(self.games(), key=lambda game: int(game.headers["Round"]))
        openings = [" ".join(move.uci() for move in list(game.mainline_moves())[:2]) for game in games]
        self.assertEqual(openings[::2], openings[1::2])
        self.assertEqual(set(openings), {"e2e4 c7c5", "d2d4 d7d5", "c2c4 e7e5"})
        self.assertEqual([game.headers["White"] for game in games], ["one", "two"] * 3)

    def test_an_interrupted_match_resumes(self):
        conditions = [*self.engine("one"), *self.engine("two"), "--nodes", "1", "--max-plies", "20"]
        conditions += ["--pgn", "games.pgn"]
        self.match(*conditions, "--limit", "2")
        self.assertIn("--resume", self.match(*conditions, "--limit", "4", status=2))
        first = (self.folder / "games.pgn").read_text()
        (self.folder / "games.pgn").write_text(first + '[Event "?"]\n[Round "3"]\n\n1. e4')
        result = self.match(*conditions, "--limit", "4", "--resume")
        self.assertEqual(result["games"], 4)
        self.assertTrue((self.folder / "games.pgn").read_text().startswith(first))
        self.assertEqual([game.headers["Round"] for game in self.games()], list("1234"))
        other = self.match(*conditions, "--max-plies", "30", "--limit", "4", "--resume", status=2)
        self.assertIn("different settings", other)

    def test_adjudication(self):
        # Both engines report +9.00, so neither resigns, but with low limits the game is adjudicated
        # as a draw.
        pair = [*self.engine("one"), *self.engine("two"), "--limit", "2", "--nodes", "1"]
        drawn = self.match(*pair, "--resign", "2,500", "--draw", "3,2,900")
        self.assertEqual(drawn["endings"], {"adjudication: drawn scores": 2})
        resigned = self.match(*pair, "--resign", "2,-900")
        self.assertEqual(resigned["endings"], {"adjudication: resigned": 2})

    def test_engines_ponder_on_request(self):
        (self.folder / "ponders.py").write_text(PONDERING_ENGINE)

        def play(opponent, name, seconds, *more, clock="100+1"):
            engine = f"name={name},tc={clock},cmd={sys.executable} ponders.py {seconds} {name}.told"
            result = self.match(
                *opponent, "--engine", engine, "--limit", "2", "--tc", "100+1", "--max-plies", "12", *more,
            )
            return result["faults"][name]["time loss"], (self.folder / f"{name}.told").read_text()

        # Both engines play the first legal move, and each expects the other to.
        same = ["--engine", f"name=same,cmd={sys.executable} ponders.py 0 same.told"]
        losses, told = play(same, "hit", 0, "--ponder")
        self.assertEqual(losses, 0)
        self.assertIn("\ngo ponder\nponderhit\n", told)
        # The other engine plays a different move.
        losses, told = play(self.engine("other"), "miss", 0, "--ponder")
        self.assertEqual(losses, 0)
        self.assertIn("\ngo ponder\nstop\nposition", told)
        # The engine's clock runs while it ends the futile search.
        losses, told = play(self.engine("other"), "slow", 2, "--ponder", clock="1+0.5")
        self.assertEqual(losses, 2)
        losses, told = play(self.engine("other"), "off", 2)
        self.assertEqual(losses, 0)
        self.assertNotIn("go ponder", told)

    def test_mistakes_get_one_line(self):
        good = self.engine("good")
        for arguments, expected in (
            ([*good, *good, "--nodes", "1"], "both engines are named"),
            ([*good, "--engine", "name=x,cmd=/nonexistent", "--nodes", "1"], "x does not start"),
            ([*good, *self.engine("x", extra=",option.No=1"), "--nodes", "1"], "does not support option No"),
            ([*good, *self.engine("x")], "needs time, nodes, depth or tc"),
            ([*good, *self.engine("x"), "--tc", "fast"], "not a time control"),
            ([*good, *self.engine("x"), "--nodes", "1", "--openings", "no.epd"], "no.epd"),
        ):
            with self.subTest(expected):
                said = self.match(*arguments, status=2)
                self.assertIn(expected, said)
                self.assertEqual(len(said.splitlines()), 1, said)

    def test_stockfish_plays_itself_on_a_clock(self):
        stockfish = shutil.which("stockfish", path=os.environ["PATH"] + ":/usr/games")
        if stockfish is None:
            lack("stockfish")
        result = self.match(
            # The overhead allows for a busy machine.
            "--engine", f"name=weak,cmd={stockfish},option.Skill Level=0", "--engine", f"name=strong,cmd={stockfish}",
            "--each", "tc=10+0.1,option.Move Overhead=5000", "--limit", "2", "--pgn", "games.pgn",
        )
        self.assertEqual(sum(n for faults in result["faults"].values() for n in faults.values()), 0)
        self.assertEqual(result["wins"] + result["draws"] + result["losses"], 2)
        self.assertEqual([game.errors for game in self.games()], [[], []])


class PartsTest(unittest.TestCase):
    def test_entrant(self):
        words = ["name=A,cmd=sh -c 'x, y',option.Move Overhead=5,option.Net=a,b.pt", "tc=40/60+0.5"]
        entrant = Entrant.parse(words, Thinking(nodes=1))
        self.assertEqual(entrant.command, ["sh", "-c", "x, y"])
        self.assertEqual(entrant.options, {"Move Overhead": "5", "Net": "a,b.pt"})
        self.assertEqual(entrant.thinking.clock, TimeControl(60, 0.5, 40))

    def test_entrant_with_shared_settings(self):
        each = ["cmd=engine,dir=there,option.Hash=8,option.Threads=1,nodes=400"]
        entrant = Entrant.parse(["name=A,option.Hash=16"], Thinking(depth=1), each)
        self.assertEqual((entrant.command, entrant.directory), (["engine"], "there"))
        self.assertEqual(entrant.options, {"Hash": "16", "Threads": "1"})
        self.assertEqual(entrant.thinking, Thinking(nodes=400))
        # The engine's own limits replace all others, and `st` means `time`.
        self.assertEqual(Entrant.parse(["name=A,st=0.5"], Thinking(), each).thinking, Thinking(time=0.5))

    def test_elo_of_known_scores(self):
        self.assertAlmostEqual(elo(0.75), 190.8485, places=4)
        self.assertAlmostEqual(elo(0.5), 0)
        self.assertIsNone(elo(1.0))

    def test_standings_of_pairs_and_of_single_games(self):
        scores = dict(enumerate([1, 0.5, 1, 1, 0.5, 0.5, 0, 1]))
        paired = Standings.of(scores)
        self.assertEqual((paired.wins, paired.draws, paired.losses), (4, 3, 1))
        self.assertEqual(paired.pentanomial, [0, 0, 2, 1, 1])
        # The pairs' means are ½, ¾, 1 and ½: their mean is 11/16 and their sample variance 0.05729.
        deviation = math.sqrt(0.057291667 / 4)
        expected = (elo(0.6875 + 1.959964 * deviation) - elo(0.6875 - 1.959964 * deviation)) / 2
        self.assertAlmostEqual(paired.elo_error, expected, places=4)
        single = Standings.of({0: 1, 1: 0.5, 2: 0})
        self.assertIsNone(single.pentanomial)
        self.assertAlmostEqual(single.elo, 0)
        self.assertIsNone(Standings.of({}).score)
        self.assertIsNone(Standings.of({0: 1, 1: 1}).elo)

    def test_books(self):
        data = ROOT.parent / "shared/data/books"
        if not data.is_dir():
            lack("../shared/data/books")
        for name, chess960 in (
            ("8moves_v3.pgn.zip", False), ("UHO_4060_v3.epd.zip", False), ("FRC_openings.epd.zip", True),
        ):
            book = Openings(data / name, seed=1, chess960=chess960)
            boards = [book.board(number) for number in range(20)]
            self.assertEqual(len({board.fen() for board in boards}), 20)
            self.assertEqual(boards[0].fen(), Openings(data / name, 1, chess960).board(0).fen())


if __name__ == "__main__":
    unittest.main()

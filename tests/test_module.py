"""The Python package with PyTorch: networks as modules that equal the engine, and the examples.

PyTorch is gigabytes, so only tools/test --torch installs it. Without it, one test compares the code with that which
passed: after a change, run `TESSERA_GOLDEN=write tools/test --torch`.
"""

import base64
import hashlib
import importlib.util
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from patience import PATIENCE
from tool_test import ROOT, binaries

sys.path.insert(0, str(ROOT / "python"))

import chess

PACKAGE = ROOT / "python/tessera_chess"
GOLDEN = ROOT / "tests/golden/python.json"
# The code that only PyTorch can test.
TESTED = sorted(
    [*PACKAGE.glob("chessformer/*.py"), *PACKAGE.glob("examples/*.py"), PACKAGE / "files.py", PACKAGE / "network.py"]
)
HAS_TORCH = importlib.util.find_spec("torch") is not None
NETS = {name: ROOT / f"nets/tessera-{name}.pt" for name in ("xs", "s", "human", "gpt", "world", "diffusion")}

# One position for each side to move.
WHITE = "r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 2 4"
BLACK = "r3k2r/pp3ppp/2n5/1B1pP3/3P4/2N2N2/P4PPP/R3K2R b KQkq - 1 12"
TOLERANCE = 1e-5

if HAS_TORCH:
    import torch

    import tessera_chess


class GoldenTest(unittest.TestCase):
    def test_the_code_has_passed_with_pytorch(self):
        found = {str(path.relative_to(PACKAGE)): hashlib.sha256(path.read_bytes()).hexdigest() for path in TESTED}
        if HAS_TORCH and os.environ.get("TESSERA_GOLDEN") == "write":
            GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
        self.assertEqual(found, json.loads(GOLDEN.read_text()), "only PyTorch can test a change: see tests/test_module.py")


def tessera(*arguments):
    """Runs `tessera` with --json; returns what it prints."""
    done = subprocess.run(
        [binaries() / "tessera", *arguments, "--json"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def lens(path):
    """Returns the maps in a lens's file, each with a matrix and a bias."""
    stored = json.loads(path.read_text())
    width, maps = stored["width"], []
    for text in stored["maps"]:
        numbers = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.float16).float()
        maps.append((numbers[: width * width].view(width, width), numbers[width * width :]))
    return maps


def played(count):
    """Returns boards after random moves, all with at least one legal move."""
    draw, boards = random.Random(1), []
    while len(boards) < count:
        board = chess.Board()
        for _ in range(draw.randrange(80)):
            board.push(draw.choice(list(board.legal_moves)))
            if board.is_game_over():
                break
        else:
            boards.append(board)
    return boards


@unittest.skipUnless(HAS_TORCH, "PyTorch is gigabytes, and tools/test --torch installs it; GoldenTest has the code that passed")
class TorchTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def assert_close(self, found, expected, tolerance=TOLERANCE, what=""):
        """Differences are relative beyond ±1."""
        self.assertEqual(found.shape, expected.shape, what)
        off = ((found - expected).abs() / expected.abs().clamp(min=1)).max().item()
        self.assertLessEqual(off, tolerance, what)

    def start_python(self, *arguments, **environment):
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE,
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment}, check=False,
        )

    def run_python(self, *arguments, **environment):
        done = self.start_python(*arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done


class Array:
    """Rows as NumPy's arrays hold them."""

    def __init__(self, rows):
        self.rows, self.ndim = rows.tolist(), rows.ndim

    def __iter__(self):
        return iter(self.rows)

    def __repr__(self):
        return repr(torch.tensor(self.rows))


class ModuleTest(TorchTest):
    def setUp(self):
        super().setUp()
        self.model = tessera_chess.load(NETS["xs"], trainable=True)

    def test_outputs_equal_the_files_own(self):
        boards = played(50)
        draw = random.Random(2)
        ratings = [[draw.choice([0, draw.randrange(600, 6000)]) for _ in boards] for _ in range(2)]
        for name in ("xs", "s", "human"):
            rows = tessera_chess.encode(boards, *ratings)
            model = tessera_chess.load(NETS[name], trainable=True)
            expected = tessera_chess.load(NETS[name]).raw(rows)
            with torch.no_grad():
                found = model(rows)
                of_planes = model(tessera_chess.planes(rows), rows[:, -2:])
            self.assertEqual(found.keys(), expected.keys())
            for output, values in expected.items():
                # f32 rounds logits beyond 10 to 1e-6, and eight layers add up.
                self.assert_close(found[output], values, 3e-5, f"{name} {output}")
                if output in ("policy", "wdl"):
                    self.assert_close(found[output].softmax(1), values.softmax(1), what=f"{name} {output}")
                self.assertTrue(torch.equal(found[output], of_planes[output]), output)

    def test_evaluations_equal_the_engines(self):
        for name, [elo, opponent] in (("xs", [0, 0]), ("s", [0, 0]), ("human", [1100, 1900])):
            model = tessera_chess.load(NETS[name], trainable=True)
            boards = [chess.Board(WHITE), chess.Board(BLACK)]
            found = model.evaluate(boards, elo, opponent)
            policies = tessera_chess.policy(boards, found.policy)
            for number, board in enumerate(boards):
                position = ["--fen", board.fen(), "--self-elo", str(elo), "--opponent-elo", str(opponent)]
                expected = tessera("eval", "--net", NETS[name], "--precision", "f32", *position)
                for field, key in (("wdl", "wdl"), ("q", "value"), ("error", "error"), ("moves_left", "moves_left")):
                    self.assert_close(getattr(found, field)[number], torch.tensor(expected[key]), what=field)
                self.assertEqual({move.uci() for move in policies[number]}, set(expected["policy"]))
                if name == "human":  # the engine corrects its policy
                    continue
                for move, chance in policies[number].items():
                    self.assertAlmostEqual(chance, expected["policy"][move.uci()], delta=TOLERANCE)

    def test_attention_and_layers_equal_explain(self):
        kept = {}

        def keep(name, module):
            module.register_forward_hook(lambda _module, _inputs, output: kept.__setitem__(name, output.detach()))

        for number in range(len(self.model.encoder)):
            layer = self.model.encoder[number]
            keep(f"tokens {number + 1}", layer)
            for name in ("products", "bias", "weights"):
                keep(f"{name} {number}", getattr(layer.attention, name))
        keep("tokens 0", self.model.embedding)
        for fen in (WHITE, BLACK):
            self.model(tessera_chess.encode(fen))
            [explained] = tessera("explain", "--fen", fen, "--net", NETS["xs"])["explanations"]
            # The explanation numbers the squares from a1, whichever side is to move.
            seen = torch.arange(64) ^ (0 if fen.split()[1] == "w" else 56)
            layers = explained["attention"]["layers"]
            self.assertEqual(len(layers), 4)
            for number, layer in enumerate(layers):
                for name in ("products", "bias", "weights"):
                    expected = torch.tensor(layer[name]).view(-1, 64, 64)
                    found = kept[f"{name} {number}"][0][:, seen][:, :, seen]
                    self.assert_close(found, expected, what=f"{name} of layer {number + 1}")
            board = chess.Board(fen)
            indices = [tessera_chess.policy_index(board, chess.Move.from_uci(it["uci"])) for it in explained["moves"]]
            maps = lens(ROOT / "nets/tessera-xs.lens.json")
            for number, layer in enumerate(explained["lens"]["layers"]):
                tokens = kept[f"tokens {number}"]
                if number < len(maps):
                    matrix, bias = maps[number]
                    tokens = tokens @ matrix + bias
                policy = self.model.policy(tokens)[0, indices].softmax(0)
                self.assert_close(policy.detach(), torch.tensor(layer["policy"]), what=f"lens {number}")

    def test_gradients_reach_weights_and_inputs(self):
        planes = tessera_chess.planes([WHITE, BLACK]).requires_grad_()
        outputs = self.model(planes)
        sum(output.square().mean() for output in outputs.values()).backward()
        without = {name for name, parameter in self.model.named_parameters() if parameter.grad is None}
        # These layers are trained, but not part of the outputs.
        self.assertEqual({name.split(".")[2] for name in without}, {"categorical"})
        self.assertGreater(planes.grad.abs().max(), 0)

    def test_it_is_a_plain_module(self):
        self.assertIsInstance(self.model, torch.nn.Module)
        names = dict(tessera_chess.load(NETS["xs"]).module.named_parameters())
        self.assertEqual(self.model.state_dict().keys(), names.keys())
        for name, parameter in names.items():
            self.assertTrue(torch.equal(self.model.state_dict()[name], parameter), name)
        double = tessera_chess.load(NETS["xs"], trainable=True).to(torch.float64)
        rows = tessera_chess.encode(WHITE)
        self.assertEqual(double(rows)["policy"].dtype, torch.float64)
        self.assert_close(double(rows)["policy"].float(), self.model(rows)["policy"], 1e-4)
        other = tessera_chess.load(NETS["xs"], trainable=True)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        other.load_state_dict(self.model.state_dict())
        self.assertTrue(torch.equal(other(rows)["policy"], self.model(rows)["policy"]))
        file = io.BytesIO()
        torch.save(self.model, file)
        file.seek(0)
        self.assertTrue(torch.equal(torch.load(file, weights_only=False)(rows)["q"], self.model(rows)["q"]))

    def test_the_engine_plays_a_saved_network(self):
        self.model.save(self.folder / "same.pt")
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.model(tessera_chess.encode([WHITE, BLACK]))["q"].sum().backward()
        optimizer.step()
        self.model.save(self.folder / "changed.pt", "another name")
        shipped = tessera_chess.load(NETS["xs"], trainable=True)
        for file, model, name in (("same", shipped, "same"), ("changed", self.model, "another name")):
            path = self.folder / f"{file}.pt"
            described = tessera("describe", path)
            self.assertEqual((described["name"], described["training"]["changed"]["name"]), (name, "tessera-xs"))
            for fen in (WHITE, BLACK):
                expected = tessera("eval", "--net", path, "--precision", "f32", "--fen", fen)
                found = model.evaluate(fen)
                self.assert_close(found.q, torch.tensor([expected["value"]]))
                self.assert_close(found.wdl, torch.tensor([expected["wdl"]]))
                for move, chance in tessera_chess.policy(fen, found.policy[0]).items():
                    self.assertAlmostEqual(chance, expected["policy"][move.uci()], delta=TOLERANCE)
            # The program in the file also computes the new weights.
            rows = tessera_chess.encode([WHITE, BLACK])
            self.assert_close(tessera_chess.load(path).raw(rows)["policy"], model(rows)["policy"].detach())
            again = tessera_chess.load(path, trainable=True)
            self.assertTrue(torch.equal(again(rows)["q"], model(rows)["q"]))
        self.assertGreater((self.model.evaluate(WHITE).q - shipped.evaluate(WHITE).q).abs().item(), 0.01)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["changed.pt", "same.pt"])
        # A network can be saved in place of the file from which it was loaded.
        again.save(path)
        self.assertTrue(torch.equal(tessera_chess.load(path, trainable=True)(rows)["q"], again(rows)["q"]))
        commands = f"setoption name Net value {path}\nposition startpos\ngo nodes 1\nquit\n"
        done = subprocess.run(
            [binaries() / "tessera"], input=commands, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        self.assertIn("\nbestmove ", done.stdout)

    def test_a_batch_is_its_positions(self):
        """Boards with and without a history, FENs, and different ratings."""
        model = tessera_chess.load(NETS["human"], trainable=True)
        positions = [*played(3), WHITE, BLACK]
        ratings = [800, 0, 1500, 2200, 1100], [0, 1900, 1500, 600, 2500]
        whole = model.evaluate(positions, *ratings)
        policies = tessera_chess.policy(positions, whole.policy)
        self.assertEqual(len(policies), len(positions))
        for number, position in enumerate(positions):
            alone = model.evaluate(position, *(rating[number] for rating in ratings))
            self.assert_close(whole.q[number : number + 1], alone.q)
            for move, chance in tessera_chess.policy(position, alone.policy[0]).items():
                self.assertAlmostEqual(policies[number][move], chance, delta=TOLERANCE)
        network = tessera_chess.load(NETS["human"])
        self.assert_close(network(positions, *ratings).q, whole.q)

    def test_numpy_is_accepted_and_not_needed(self):
        if importlib.util.find_spec("numpy") is not None:
            import numpy

            expected = tessera_chess.encode([WHITE, BLACK], [1500, 1600], 1700)
            found = tessera_chess.encode([WHITE, BLACK], numpy.array([1500, 1600]), numpy.int64(1700))
            self.assertTrue(torch.equal(found, expected))
        program = (
            "import sys\nsys.modules['numpy'] = None\nimport chess, tessera_chess\n"
            f"for trainable in (False, True):\n    network = tessera_chess.load({str(NETS['xs'])!r}, trainable=trainable)\n"
            "print(tessera_chess.encode(chess.Board()).shape[1], network.evaluate(chess.Board()).q.tolist()[0] > -1)\n"
        )
        done = self.run_python("-c", program)
        self.assertEqual((done.stdout, done.stderr), ("113 True\n", ""))

    def test_mistakes_are_named(self):
        load, encode = tessera_chess.load, tessera_chess.encode
        for name in ("gpt", "world", "diffusion"):
            with self.assertRaisesRegex(tessera_chess.UnsupportedFamily, f"tessera-{name} is of the family {name}"):
                load(NETS[name], trainable=True)
        for inputs, error in (
            (torch.zeros(1, 5), r"not \[1, 5\]"), (torch.zeros(1, 110, dtype=torch.int64), r"not torch.int64 \[1, 110\]"),
        ):
            with self.assertRaisesRegex(ValueError, error):
                self.model(inputs)
        with self.assertRaisesRegex(TypeError, "evaluate reads boards and FENs"):
            self.model(WHITE)
        with self.assertRaisesRegex(ValueError, "the board is empty"):
            encode(chess.Board(None))
        with self.assertRaisesRegex(ValueError, "2 ratings were given for 1 positions"):
            encode(WHITE, [1, 2])
        policy, rows = tessera_chess.policy, encode([WHITE, BLACK])
        network = load(NETS["xs"])
        for call, kind, error in (
            (lambda: policy([WHITE, BLACK], torch.zeros(1, 1858)), ValueError, "1 rows of logits were given for 2 positions"),
            (lambda: policy(WHITE, torch.zeros(5)), ValueError, r"logits must be \[1858\] or \[B, 1858\], .*, not \[5\]"),
            (lambda: policy(WHITE, [0.0] * 1858), TypeError, "logits must be a tensor, not an object of type list: "),
            (lambda: self.model.evaluate(rows), TypeError, "not an object of type Tensor: for rows, call the network itself"),
            (lambda: network(Array(rows)), TypeError, "not an object of type Array: for rows, call the network itself"),
            (lambda: network(rows.tolist()), TypeError, "a chess.Board or a FEN, not an object of type list"),
            (lambda: network.raw(rows.tolist()), ValueError, "as encode returns them, not an object of type list"),
            # No machine has as many.
            (lambda: load(NETS["xs"], "cuda:97"), RuntimeError, "PyTorch cannot use the device 'cuda:97' here"),
            (lambda: load(NETS["xs"], "cuda:97", trainable=True), RuntimeError, "cannot use the device 'cuda:97' here"),
        ):
            with self.assertRaisesRegex(kind, error) as raised:
                call()
            self.assertNotIn("\n", str(raised.exception))

    def test_no_positions_have_an_empty_evaluation(self):
        for name in ("xs", "s", "human"):
            for network in (tessera_chess.load(NETS[name], trainable=True).evaluate, tessera_chess.load(NETS[name])):
                evaluation = network([])
                self.assertEqual((len(evaluation.q), evaluation.wdl.shape, evaluation.policy.shape), (0, (0, 3), (0, 1858)))
                self.assertEqual(tessera_chess.policy([], evaluation.policy), [])

    def test_a_saved_file_is_as_readable_as_others(self):
        path = self.folder / "saved.pt"
        for mask in (0o022, 0o077):
            before = os.umask(mask)
            try:
                self.model.save(path)
            finally:
                os.umask(before)
            self.assertEqual(path.stat().st_mode & 0o777, 0o666 & ~mask)
            self.assertEqual(sorted(self.folder.iterdir()), [path])
        with self.assertRaises(FileNotFoundError) as raised:
            self.model.save(self.folder / "none/saved.pt")
        self.assertEqual(raised.exception.filename, str(self.folder / "none/saved.pt"))

    def test_a_network_is_saved_in_a_file_whose_name_is_not_unicode(self):
        path = self.folder / os.fsdecode(b"\xff.pt")
        with self.assertRaisesRegex(ValueError, r"name must be valid Unicode, not '\\udcff': .*save\(path, name\)"):
            self.model.save(path)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.model.save(path, "named")
        self.assertEqual(tessera_chess.load(path).metadata["name"], "named")

    def test_types_are_strict(self):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("tools/venv --torch installs mypy")
        self.run_python("-m", "mypy", "--strict", PACKAGE)


class ExamplesTest(TorchTest):
    def run_example(self, name, *arguments):
        done = self.run_python("-m", f"tessera_chess.examples.{name}", NETS["xs"], *arguments)
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def percent(self, line):
        """The percentages in a line."""
        return [float(number) for number in re.findall(r"([-+]?[\d.]+)%", line)]

    def test_the_command_line_is_explained_and_checked(self):
        for name, most in (("attribute", 1), ("fine_tune", 2), ("patch", 1), ("probe", 1), ("steer", 1)):
            command = ["-m", f"tessera_chess.examples.{name}"]
            self.assertIn(f"python -m tessera_chess.examples.{name} [-h] [network]", self.run_python(*command, "--help").stdout)
            for arguments, error in (([NETS["xs"]] * (most + 1), "unrecognized arguments"), (["none"], "no network 'none'")):
                done = self.start_python(*command, *arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(error, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_numpy_is_not_missed(self):
        program = "import sys, runpy\nsys.modules['numpy'] = None\nsys.argv[1:] = sys.argv[2:]\n"
        for name in ("attribute", "fine_tune", "patch", "probe", "steer"):
            module = f"tessera_chess.examples.{name}"
            # Imports the example as `python -m` does, and ends with its help.
            run = program + f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
            self.assertEqual(self.run_python("-c", run, "-", "--help").stderr, "")

    def test_layers_know_the_probed_concept(self):
        base, embedding, *layers = self.run_example("probe")
        self.assertEqual(len(layers), 4)
        [base], [embedding] = self.percent(base), self.percent(embedding)
        best = max(self.percent(layer)[0] for layer in layers)
        self.assertGreater(best, base + 5)
        self.assertGreater(best, embedding)

    def test_a_patch_of_all_squares_is_the_other_position(self):
        heading, *layers = self.run_example("patch")
        mate, check = self.percent(heading)
        self.assertGreater(mate, check)
        self.assertEqual(len(layers), 4)
        for line in layers:
            self.assertEqual(self.percent(line)[-1], 100)

    def test_attributions_are_those_of_explain(self):
        program = (PACKAGE / "examples/attribute.py").read_text()
        fen, move = re.search('FEN = "(.*)"', program)[1], re.search(r'from_uci\("(.*)"\)', program)[1]
        heading, *squares, remainder = self.run_example("attribute")
        [explained] = tessera("explain", "--fen", fen, "--move", move, "--net", NETS["xs"])["explanations"]
        expected = explained["gradients"]["move"]
        self.assertAlmostEqual(self.percent(heading)[0], 100 * explained["moves"][explained["chosen"]]["prior"], delta=0.1)
        for line in squares:
            square, _, value = line.split()
            self.assertAlmostEqual(float(value), expected["squares"][chess.parse_square(square)], delta=0.05)
        self.assertLess(abs(self.percent(remainder)[0]), 2)

    def test_a_head_steers_the_move(self):
        heading, *heads = self.run_example("steer")
        [whole] = self.percent(heading)
        self.assertEqual(len(heads), 5)
        off, double = self.percent(heads[0])
        self.assertGreater(abs(off - whole), 1)
        self.assertNotEqual(off, double)

    def test_a_fine_tuned_network_captures_and_plays(self):
        heading, *steps, saved = self.run_example("fine_tune", "tuned.pt")
        self.assertEqual([int(line.split()[1].rstrip(":")) for line in steps], [0, 25, 50, 75, 100])
        losses = [float(re.search(r"loss ([\d.]+)", line)[1]) for line in steps]
        self.assertLess(losses[-1], losses[0] / 4)
        [wanted], [before], [after] = (self.percent(line) for line in (heading, steps[0], steps[-1]))
        self.assertGreater(wanted, before + 5)
        self.assertAlmostEqual(after, wanted, delta=(wanted - before) / 3)
        self.assertTrue(saved.startswith("saved as tuned.pt"), saved)
        tuned = self.folder / "tuned.pt"
        likings = [tessera("eval", "--net", net, "--fen", WHITE)["policy"]["b5c6"] for net in (NETS["xs"], tuned)]
        self.assertGreater(likings[1], 1.5 * likings[0])
        commands = f"setoption name Net value {tuned}\nposition startpos\ngo nodes 1\nquit\n"
        done = subprocess.run(
            [binaries() / "tessera"], input=commands, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        self.assertIn("\nbestmove ", done.stdout)
        self.assertNotIn("ERROR", done.stdout)


if __name__ == "__main__":
    unittest.main()

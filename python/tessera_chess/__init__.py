"""Tessera in Python: the engine, and its networks for notebooks.

    import chess, tessera_chess

    board = chess.Board()
    network = tessera_chess.load("tessera-xs")
    evaluation = network(tessera_chess.encode(board))
    print(tessera_chess.policy(board, evaluation.policy[0]), evaluation.wdl[0])

`engine` starts the engine for python-chess. `program` returns the paths of the binaries, which
the console scripts `tessera` and `tessera-train` run.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import logging
import math
import os
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    # Imported on first use, because the engine starts without them.
    import chess
    import chess.engine
    import torch

__all__ = [
    "NETS", "SCALARS", "WIDTH", "Evaluation", "Network", "__version__", "encode", "engine", "load", "policy",
    "policy_index", "policy_move", "program",
]

_HERE = Path(__file__).resolve().parent
# The version of PyTorch against whose libtorch the binaries are linked.
_TORCH = "2.11"

NETS = _HERE / "nets"
"""The folder that contains the shipped networks, and configurations for `tessera-train`."""


def __getattr__(name: str) -> str:
    """Returns the version, which is looked up only when it is asked for."""
    if name == "__version__":
        return importlib.metadata.version("tessera-chess")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ------------------------------------------------------------------- programs

_PROGRAMS = ("tessera", "tessera-train")
# The time limit for the engine to load its network, and python-chess's own for its other answers.
_START_SECONDS = 120.0
_ANSWER_SECONDS = 10.0


def program(name: str = "tessera") -> str:
    """Returns the path of a binary, `tessera` or `tessera-train`."""
    if name not in _PROGRAMS:
        raise ValueError(f"there is no program {name!r}: name one of {', '.join(_PROGRAMS)}")
    return str(_HERE / name)


def engine(**options: str | int | bool | None) -> chess.engine.SimpleEngine:
    """Starts the engine for python-chess, with UCI options such as `UCI_Elo=1500`, and loads its network.

    Use it in a `with` statement, or call its `quit`. Raises `chess.engine.EngineError` if the engine does not play as
    told, for example because a network cannot be read or an option's value is invalid. Errors that it reports later
    are logged by the logger `tessera_chess`.
    """
    import chess.engine

    problems: list[str] = []
    logger = logging.getLogger(__name__)

    class Protocol(chess.engine.UciProtocol):
        def line_received(self, line: str) -> None:
            _, is_problem, text = line.partition("info string ERROR: ")
            if is_problem:
                problems.append(text)
                if is_started:
                    logger.error(text)

    is_started = False
    started = chess.engine.SimpleEngine.popen(Protocol, program(), timeout=_START_SECONDS, env=_environment())
    try:
        started.configure(options)
        # Loads the network. A ping would, too, but python-chess warns of the messages that come with it.
        started.play(chess.Board(), chess.engine.Limit(nodes=1), game=object())
        if problems:
            raise chess.engine.EngineError("; ".join(dict.fromkeys(problems)))
    except BaseException:
        started.close()
        raise
    started.timeout, is_started = _ANSWER_SECONDS, True
    return started


def _environment() -> dict[str, str]:
    """Returns the environment in which the binaries find libtorch.

    By default, the binaries look for libtorch in the folder that contains this package, but PyTorch may be
    elsewhere, for example if a virtual environment includes the system's packages.

    Raises `ModuleNotFoundError` if the right PyTorch is missing.
    """
    environment = dict(os.environ)
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"PyTorch is missing: pip install 'torch=={_TORCH}.*'", name="torch")
    version = importlib.metadata.version("torch")
    if not version.startswith(f"{_TORCH}."):
        raise ModuleNotFoundError(
            f"PyTorch {version} is installed, and Tessera needs {_TORCH}: pip install 'torch=={_TORCH}.*'", name="torch"
        )
    libraries = Path(spec.origin).resolve().parent / "lib"
    path = environment.get("LD_LIBRARY_PATH")
    # LD_LIBRARY_PATH takes precedence over the folders that the binaries name, so it may lead to another libtorch.
    if path or libraries != _HERE.parent / "torch/lib":
        environment["LD_LIBRARY_PATH"] = f"{libraries}:{path}" if path else str(libraries)
    return environment


def _become(name: str) -> NoReturn:
    """Replaces this process with the binary of this name, with the same arguments."""
    try:
        environment = _environment()
    except ModuleNotFoundError as error:
        sys.exit(f"{name}: error: {error}")
    os.execve(program(name), [name, *sys.argv[1:]], environment)


def _tessera() -> NoReturn:
    _become("tessera")


def _train() -> NoReturn:
    _become("tessera-train")


# ----------------------------------------------------------------------- rows

_HISTORY = 8
_PLANES = 13
_BOARDS = _HISTORY * _PLANES

SCALARS = (
    "castling_us_queenside", "castling_us_kingside", "castling_them_queenside", "castling_them_kingside",
    "black_to_move", "rule50", "en_passant", "self_elo", "opponent_elo",
)
"""The words that follow the bitboards in a row."""

WIDTH = _BOARDS + len(SCALARS)
"""The number of words in a row."""


def encode(
    boards: chess.Board | Iterable[chess.Board], self_elo: int = 0, opponent_elo: int = 0
) -> torch.Tensor:
    """Returns the rows that networks read, one for each board: int64 [B, `WIDTH`], on the CPU.

    A row is Lc0's input format 1 followed by `SCALARS` (the guide's page on file formats describes both). The
    moves on a board's stack are its history. `self_elo` and `opponent_elo` are the ratings of the side to move
    and of the opponent, or 0 if unknown.
    """
    import chess
    import torch

    boards = [boards] if isinstance(boards, chess.Board) else boards
    for rating in (self_elo, opponent_elo):
        if not isinstance(rating, int) or rating < 0:
            raise ValueError(f"a rating must be a whole number of at least 0, not {rating!r}")
    rows = [[*_words(board), self_elo, opponent_elo] for board in boards]
    # A row's words are unsigned, but PyTorch's integers are signed.
    signed = [[word - (1 << 64) if word >> 63 else word for word in row] for row in rows]
    return torch.tensor(signed, dtype=torch.int64).reshape(-1, WIDTH)


def _words(board: chess.Board) -> list[int]:
    """Returns a row without its ratings."""
    us = board.turn
    words: list[int] = []
    past = board.copy()
    for _ in range(_HISTORY):
        words += [_orient(squares, us) for squares in _pieces(past, us)]
        words.append((1 << 64) - 1 if past.is_repetition(2) else 0)
        if not past.move_stack:
            break
        past.pop()
    # The history before a custom start position is unknown, so the position itself fills it.
    if len(words) < _BOARDS and not _is_initial(past):
        oldest = [_orient(squares, us) for squares in _pieces(_before_double_push(past), us)]
        while len(words) < _BOARDS:
            words += [*oldest, 0]
    words += [0] * (_BOARDS - len(words))
    passed = _en_passant(board)
    reachable = passed is not None and board.has_pseudo_legal_en_passant()
    return [
        *words,
        *(_orient(_rook(board, colour, kingside), us) for colour in (us, not us) for kingside in (False, True)),
        int(not us),
        board.halfmove_clock,
        _orient(1 << passed, us) if passed is not None and reachable else 0,
    ]


def _orient(squares: int, us: bool) -> int:
    """Returns a bitboard from the perspective of the side to move. For Black, it is flipped vertically."""
    return squares if us else int.from_bytes(squares.to_bytes(8, "little"), "big")


def _pieces(board: chess.Board, us: bool) -> list[int]:
    """Returns the bitboards of our pawns, knights, bishops, rooks, queens and king, and then the opponent's."""
    return [board.pieces_mask(kind, colour) for colour in (us, not us) for kind in range(1, 7)]


def _is_initial(board: chess.Board) -> bool:
    import chess

    initial = board.board_fen() == chess.STARTING_BOARD_FEN and board.turn
    return initial and board.castling_rights == chess.BB_CORNERS


def _rook(board: chess.Board, colour: bool, kingside: bool) -> int:
    """Returns the bitboard of the rook with which a side may still castle, or 0."""
    king = board.king(colour)
    rank = 0xFF if colour else 0xFF << 56
    rooks = board.clean_castling_rights() & rank
    if king is None:
        return 0
    beyond = ~((2 << king) - 1) if kingside else (1 << king) - 1
    return rooks & beyond


def _en_passant(board: chess.Board) -> int | None:
    """Returns the en-passant square, or None without one or if the FEN names an impossible one."""
    import chess

    return None if board.status() & chess.STATUS_INVALID_EP_SQUARE else board.ep_square


def _before_double_push(board: chess.Board) -> chess.Board:
    """Returns the board before the double push that an en-passant square implies."""
    square = _en_passant(board)
    if square is not None:
        back = -8 if board.turn else 8
        board = board.copy()
        pawn = board.remove_piece_at(square + back)
        board.set_piece_at(square - back, pawn)
    return board


# --------------------------------------------------------------------- policy

# The promotions that have separate entries. A knight promotion uses the entry for its pair of squares.
_PROMOTIONS = (5, 4, 3)


@functools.cache
def _entries() -> dict[tuple[int, int, int | None], int]:
    """Returns the policy's entries by origin, target and promotion, from the perspective of the side to move."""
    pairs = [(origin, target) for origin in range(64) for target in range(64) if _is_travelled(origin, target)]
    entries: dict[tuple[int, int, int | None], int] = {(*pair, None): index for index, pair in enumerate(pairs)}
    for file in range(8):
        for target in range(max(file - 1, 0), min(file + 2, 8)):
            for kind in _PROMOTIONS:
                entries[48 + file, 56 + target, kind] = len(entries)
    return entries


def _is_travelled(origin: int, target: int) -> bool:
    """Returns whether a queen or a knight could move between these squares on an empty board."""
    files, ranks = abs(origin % 8 - target % 8), abs(origin // 8 - target // 8)
    return origin != target and (0 in (files, ranks) or files == ranks or files * ranks == 2)


def policy_index(board: chess.Board, move: chess.Move) -> int:
    """Returns the index of a legal move in `Evaluation.policy`.

    The 1858 entries are in Lc0's order, from the perspective of the side to move. Castling is encoded as the king
    taking its own rook.
    """
    origin, target = move.from_square, move.to_square
    if board.is_castling(move):
        target = _rook(board, board.turn, target % 8 > origin % 8).bit_length() - 1
    if not board.turn:
        origin, target = origin ^ 56, target ^ 56
    kind = move.promotion if move.promotion in _PROMOTIONS else None
    return _entries()[origin, target, kind]


def policy_move(board: chess.Board, index: int) -> chess.Move | None:
    """Returns the legal move at `index` of `Evaluation.policy`, or `None`."""
    return next((move for move in board.legal_moves if policy_index(board, move) == index), None)


def policy(board: chess.Board, logits: torch.Tensor) -> dict[chess.Move, float]:
    """Returns the probability of each legal move, likeliest first, from one row of `Evaluation.policy`."""
    moves = list(board.legal_moves)
    chances = logits[[policy_index(board, move) for move in moves]].float().softmax(-1).tolist()
    return dict(sorted(zip(moves, chances), key=lambda entry: -entry[1]))


# ------------------------------------------------------------------- networks


@dataclass(frozen=True)
class Evaluation:
    """A batch of positions as the engine evaluates them, from the perspective of the side to move."""

    policy: torch.Tensor
    """The logits of the moves, [B, 1858]; `policy` turns a row into probabilities."""
    wdl: torch.Tensor
    """The probabilities of a win, a draw and a loss, [B, 3], on the CPU. They agree with `q`."""
    q: torch.Tensor
    """The expected result, [B], from -1 (loss) to 1 (win), on the CPU."""
    moves_left: torch.Tensor | None
    """The plies to the end of the game, [B], at least 0, on the CPU; `None` if the network does not predict them."""
    error: torch.Tensor | None
    """The expected squared error of `q`, [B], at least 0, on the CPU; `None` if the network does not predict it."""
    raw: dict[str, torch.Tensor]
    """The network's outputs by name, unadjusted. `wdl` holds logits, whose expected result may differ from `q`."""


def _values(outputs: dict[str, list[Any]], search_value: str) -> dict[str, list[Any]]:
    """Returns the fields of an `Evaluation` other than `policy` and `raw`, without those that the network lacks.

    `outputs` holds the raw outputs, as lists, and `search_value` names the one that ranks moves.
    """
    ranks = {"q": ("q", "q_error"), "st": ("st", "st_error")}
    value, squared = ranks.get(search_value, (None, None))
    count = len(outputs["wdl"])
    columns = [outputs.get(name) if name else None for name in (value, "moves_left", squared)]
    filled = [[None] * count if column is None else column for column in columns]
    adjusted = [_adjusted(*row) for row in zip(outputs["wdl"], *filled, strict=True)]
    fields = {"wdl": True, "q": True, "moves_left": columns[1] is not None, "error": columns[2] is not None}
    return {name: [row[at] for row in adjusted] for at, (name, has) in enumerate(fields.items()) if has}


def _adjusted(
    logits: list[float], q: float | None, moves_left: float | None, error: float | None
) -> tuple[list[float], float, float, float]:
    """Returns the probabilities of a win, a draw and a loss, `q`, moves left and the error of one position.

    This is the engine's `Value::of_outputs`: `q` decides between win and loss, and `wdl` only states how likely a draw
    is. A test compares the two.
    """
    if not all(math.isfinite(number) for number in (*logits, q or 0, moves_left or 0, error or 0)):
        raise ValueError("the network returned a number that is not finite")
    most = max(logits)
    weights = [math.exp(logit - most) for logit in logits]
    win, draw, loss = (weight / sum(weights) for weight in weights)
    result = min(max(win - loss if q is None else q, -1.0), 1.0)
    draw = min(draw, 1 - abs(result))
    wdl = [max((1 - draw + result) / 2, 0.0), draw, max((1 - draw - result) / 2, 0.0)]
    return wdl, result, max(moves_left or 0.0, 0.0), max(error or 0.0, 0.0)


class Network:
    """A network file: TorchScript, with named inputs and outputs.

    Call the object with rows from `encode`; it returns an `Evaluation`.
    """

    def __init__(self, module: torch.jit.ScriptModule, metadata: dict[str, Any], device: str) -> None:
        self.module = module
        """The TorchScript module, with the additional methods of some families, such as `represent`."""
        self.metadata = metadata
        """The file's metadata; the guide's page on file formats lists the fields."""
        self.device = device
        encoder = metadata["encoder"]
        if encoder["kind"] == "planes" and encoder["format"] not in (1, 2):
            raise ValueError(f"{metadata['name']} reads input format {encoder['format']}, and encode writes format 1")
        self._columns = [*range(_BOARDS), *(_BOARDS + SCALARS.index(name) for name in encoder.get("scalars", ()))]

    def __call__(self, rows: torch.Tensor) -> Evaluation:
        """Evaluates rows as the engine does. A move-token model has only `raw` outputs."""
        if self.metadata["encoder"]["kind"] != "planes":
            raise TypeError(f"{self.metadata['name']} does not read rows: call raw with the inputs that its metadata lists")
        import torch

        raw = self.raw(rows)
        lists = {name: output.tolist() for name, output in raw.items() if name != "policy"}
        values = _values(lists, self.metadata.get("search_value") or "wdl")
        tensors = {name: torch.tensor(value, dtype=torch.float32) for name, value in values.items()}
        return Evaluation(
            policy=raw["policy"], wdl=tensors["wdl"].reshape(-1, 3), q=tensors["q"],
            moves_left=tensors.get("moves_left"), error=tensors.get("error"), raw=raw,
        )

    def raw(self, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """Returns the outputs by name, unadjusted, for rows or, in a move-token model, the inputs of `forward`."""
        import torch

        if self.metadata["encoder"]["kind"] == "planes":
            [rows] = inputs
            if rows.ndim != 2 or rows.shape[1] != WIDTH:
                raise ValueError(f"rows must be [B, {WIDTH}], as encode returns them, not {list(rows.shape)}")
            inputs = (rows[:, self._columns],)
        with torch.inference_mode():
            outputs = self.module(*(tensor.to(self.device) for tensor in inputs))
        names = [output["name"] for output in self.metadata["methods"]["forward"]["outputs"]]
        return dict(zip(names, outputs, strict=True))

    def __repr__(self) -> str:
        return f"Network({self.metadata['name']!r}, {self.metadata['parameters']:,} parameters, {self.device})"


def load(network: str | os.PathLike[str], device: str = "cpu") -> Network:
    """Loads a shipped network by its name, or a network file by its path, in f32.

    A network file contains code, which this function, unlike the engine, does not check. Load only files that you
    trust.

    Raises `FileNotFoundError` if there is no such network, and `ValueError` if the file is damaged or not a
    Tessera network.
    """
    path = Path(network)
    if not path.is_file():
        path = NETS / path.with_suffix(".pt").name if path.name == os.fspath(network) else path
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in NETS.glob("*.pt")))
        raise FileNotFoundError(f"no network {os.fspath(network)!r}: name one of {names}, or a file")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except zipfile.BadZipFile:
        raise ValueError(f"{path} is damaged, or not a network") from None
    if damaged is not None:
        raise ValueError(f"{path} is damaged: the checksum of {damaged} is wrong")
    import torch

    files = {"metadata.json": ""}
    module = torch.jit.load(os.fspath(path), map_location="cpu", _extra_files=files)  # type: ignore[no-untyped-call]
    metadata = json.loads(files["metadata.json"] or "null")
    if not isinstance(metadata, dict) or "encoder" not in metadata:
        raise ValueError(f"{path} is TorchScript, but not a Tessera network: its metadata is missing")
    # The files hold fp16, in which a CPU is slow, and which not all operators accept.
    return Network(module.float().eval().to(device), metadata, device)

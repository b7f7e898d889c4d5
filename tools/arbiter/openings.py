"""The positions that games begin from: EPD, FEN or PGN, plain or zipped."""

import io
import random
import re
import zipfile
from pathlib import Path

import chess
import chess.pgn

from . import MatchError


def read_text(path):
    """The file's text; of a zip archive, its first EPD, FEN or PGN file."""
    try:
        data, name = path.read_bytes(), path.name
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                names = [n for n in archive.namelist() if n.lower().endswith((".epd", ".fen", ".pgn"))]
                if not names:
                    raise MatchError(f"{path} holds no .epd, .fen or .pgn file")
                data, name = archive.read(names[0]), names[0]
    except (OSError, zipfile.BadZipFile) as error:
        raise MatchError(f"openings {path}: {error}") from None
    return data.decode("utf-8-sig", errors="replace"), name.lower().endswith(".pgn")


class Openings:
    """Openings in the file's order, or shuffled by a seed."""

    def __init__(self, path=None, seed=None, chess960=False, plies=None):
        self.path, self.seed, self.chess960, self.plies = path, seed, chess960, plies
        self.texts, self.is_pgn = [chess.STARTING_FEN], False
        if path:
            text, self.is_pgn = read_text(Path(path))
            split = re.split(r"^(?=\[Event )", text, flags=re.MULTILINE) if self.is_pgn else text.splitlines()
            self.texts = [part for part in map(str.strip, split) if part and not part.startswith("#")]
            if not self.texts:
                raise MatchError(f"openings {path}: the file is empty")
        self.order = list(range(len(self.texts)))
        if seed is not None:
            random.Random(seed).shuffle(self.order)

    def __len__(self):
        return len(self.texts)

    def board(self, number):
        """The opening's position, its moves on the stack; begins again after the last."""
        index = self.order[number % len(self.order)]
        text = self.texts[index]
        try:
            board = self.from_pgn(text) if self.is_pgn else self.from_epd(text)
        except (ValueError, IndexError) as error:
            raise MatchError(f"openings {self.path}, number {index + 1}: {error}") from None
        if not board.is_valid() or board.is_game_over():
            raise MatchError(f"openings {self.path}, number {index + 1}: no position to play from")
        return board

    def from_epd(self, text):
        fields = text.split()
        if len(fields) >= 6 and fields[4].isdigit() and fields[5].isdigit():
            return chess.Board(" ".join(fields[:6]), chess960=self.chess960)
        board = chess.Board(chess960=self.chess960)
        board.set_epd(text)
        return board

    def from_pgn(self, text):
        game = chess.pgn.read_game(io.StringIO(text))
        if game is None or game.errors:
            raise ValueError(game.errors[0] if game else "no game")
        board = game.board()
        board.chess960 = board.chess960 or self.chess960
        for move in list(game.mainline_moves())[: self.plies]:
            board.push(move)
        return board

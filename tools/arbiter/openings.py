"""Starting positions of games: EPD, FEN or PGN, plain or compressed."""

import gzip
import io
import random
import zipfile
import zlib
from pathlib import Path

import chess

from . import MatchError, pgn


def read_text(path):
    """Returns the text of a plain or gzip file, or of the first EPD, FEN or PGN file in a zip archive."""
    try:
        data = path.read_bytes()
        if data.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                names = [n for n in archive.namelist() if n.lower().endswith((".epd", ".fen", ".pgn"))]
                if not names:
                    raise MatchError(f"{path} contains no .epd, .fen or .pgn file")
                data = archive.read(names[0])
        elif data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise MatchError(f"openings {path}: {error}") from None
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        raise MatchError(f"openings {path}: it is compressed with zstd: decompress it first")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise MatchError(f"openings {path}: the text is in UTF-16: save it in UTF-8")
    return data.decode("utf-8-sig", errors="replace")


class Openings:
    """Openings in the file's order, or shuffled by a seed."""

    def __init__(self, path=None, seed=None, chess960=False, plies=None):
        self.path, self.seed, self.chess960, self.plies = path, seed, chess960, plies
        self.texts, self.is_pgn = [(1, chess.STARTING_FEN)], False
        if path:
            text = read_text(Path(path))
            self.is_pgn = pgn.is_pgn(text)
            lines = enumerate(map(str.strip, text.splitlines()), 1)
            positions = [(number, line) for number, line in lines if line and not line.startswith("#")]
            self.texts = pgn.split(text) if self.is_pgn else positions
            if not self.texts:
                raise MatchError(f"openings {path}: the file is empty")
        self.order = list(range(len(self.texts)))
        if seed is not None:
            random.Random(seed).shuffle(self.order)

    def __len__(self):
        return len(self.texts)

    def board(self, number):
        """Returns the position of an opening, with its moves on the stack. After the last opening, starts over."""
        index = self.order[number % len(self.order)]
        line, text = self.texts[index]
        place = f"openings {self.path}, number {index + 1}, line {line}"
        try:
            board = pgn.main_line(text, self.chess960, self.plies) if self.is_pgn else self.from_epd(text)
        except (ValueError, IndexError) as error:
            raise MatchError(f"{place}: {error}") from None
        if not board.is_valid() or board.is_game_over():
            raise MatchError(f"{place}: the position is invalid or the game is over")
        return board

    def from_epd(self, text):
        fields = text.split()
        if len(fields) >= 6 and fields[4].isdigit() and fields[5].isdigit():
            return chess.Board(" ".join(fields[:6]), chess960=self.chess960)
        board = chess.Board(chess960=self.chess960)
        board.set_epd(text)
        return board

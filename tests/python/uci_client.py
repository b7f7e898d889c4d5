"""Plays the engine through python-chess, as match tools and clients do.

Usage: uci_client.py ENGINE. Needs python-chess; uses no network. Any protocol
error is an exception of python-chess or a failed assertion, and so a non-zero
exit status.
"""

import logging
import sys

import chess
import chess.engine

TIMEOUT = 600


class Complaints(logging.Handler):
    """Collects python-chess's warnings about the engine's output."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        text = record.getMessage()
        if "stderr >>" not in text:
            self.texts.append(text)


def started(path, **options):
    engine = chess.engine.SimpleEngine.popen_uci(path, timeout=TIMEOUT)
    engine.configure({"Backend": "random", **options})
    return engine


def plays_a_game(path, agent):
    """Plays forty plies against itself by the clock, every move legal, without a line
    that python-chess does not understand."""
    with started(path, Agent=agent) as engine:
        assert engine.id["name"].startswith("Tessera ")
        board = chess.Board()
        limit = chess.engine.Limit(
            white_clock=2, black_clock=2, white_inc=0.02, black_inc=0.02
        )
        while not board.is_game_over() and board.ply() < 40:
            result = engine.play(board, limit, game=agent)
            assert result.move in board.legal_moves
            board.push(result.move)


def ponders(path):
    with started(path) as engine:
        board = chess.Board()
        for _ in range(4):
            result = engine.play(board, chess.engine.Limit(nodes=200), ponder=True)
            board.push(result.move)
            assert result.ponder in board.legal_moves
            # The first reply is the expected one; the others are not.
            replies = list(board.legal_moves)
            expected = board.ply() == 1
            reply = result.ponder if expected else replies[-1]
            board.push(reply)


def analyses(path):
    with started(path, UCI_ShowWDL=True) as engine:
        board = chess.Board("r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4")
        lines = engine.analyse(board, chess.engine.Limit(nodes=500), multipv=4)
        assert [line["multipv"] for line in lines] == [1, 2, 3, 4]
        assert len({line["pv"][0] for line in lines}) == 4
        for line in lines:
            assert line["pv"][0] in board.legal_moves
            assert line["nodes"] > 0 and "depth" in line and "nps" in line
            assert line["wdl"].relative.total() == 1000

        with engine.analysis(board, root_moves=[chess.Move.from_uci("d2d3")]) as analysis:
            for info in analysis:
                if "pv" in info:
                    assert info["pv"][0] == chess.Move.from_uci("d2d3")
                    break
        assert analysis.wait().move == chess.Move.from_uci("d2d3")


def castles_in_chess960(path):
    with started(path) as engine:
        for number in (0, 518, 959):
            board = chess.Board.from_chess960_pos(number)
            while not board.is_game_over() and board.ply() < 30:
                # Castling whenever available, to try both sides.
                castling = list(board.generate_castling_moves())
                result = engine.play(
                    board,
                    chess.engine.Limit(nodes=20),
                    root_moves=castling or None,
                    game=number,
                )
                assert result.move in (castling or board.legal_moves)
                board.push(result.move)


def main():
    complaints = Complaints()
    logging.getLogger("chess.engine").addHandler(complaints)
    path = sys.argv[1]
    for agent in ("mcts", "policy", "value"):
        plays_a_game(path, agent)
    ponders(path)
    analyses(path)
    castles_in_chess960(path)
    assert not complaints.texts, complaints.texts


if __name__ == "__main__":
    main()

"""A typical Python server for comparison: a network file behind FastAPI, one position per call.

NET=nets/tessera-xs.pt uvicorn --app-dir bench/serve peer:app --workers 2

The server takes a FEN and responds like `/v1/eval` of `tessera serve`. `python3 peer.py FEN`
prints a single response, like a server that starts a process for each request.
"""

import json
import os
import sys

import chess
import torch

HISTORY = 8
# The order of the piece planes in each board of the network's input.
PIECES = [(kind, mine) for mine in (True, False) for kind in chess.PIECE_TYPES]


def moves():
    """Returns the 1858 moves of the policy as origin, target and promotion."""

    def leaps(origin, target):
        files = abs(chess.square_file(origin) - chess.square_file(target))
        ranks = abs(chess.square_rank(origin) - chess.square_rank(target))
        return origin != target and (files == 0 or ranks == 0 or files == ranks or {files, ranks} == {1, 2})

    pairs = [(origin, target, None) for origin in chess.SQUARES for target in chess.SQUARES if leaps(origin, target)]
    for origin in chess.SquareSet(chess.BB_RANK_7):
        for target in range(origin + 7, origin + 10):
            if abs(chess.square_file(origin) - chess.square_file(target)) <= 1 and target < 64:
                pairs += [(origin, target, kind) for kind in (chess.QUEEN, chess.ROOK, chess.BISHOP)]
    return {move: index for index, move in enumerate(pairs)}


torch.set_num_threads(1)
extra = {"metadata.json": ""}
network = torch.jit.load(os.environ["NET"], _extra_files=extra).eval()
metadata = json.loads(extra["metadata.json"])
scalars = metadata["encoder"]["scalars"]
outputs = [output["name"] for output in metadata["methods"]["forward"]["outputs"]]
MOVES = moves()


def row(board):
    """Returns the network's input. The history is unknown, so it is filled with the position itself."""

    def word(squares):
        turned = chess.flip_vertical(squares) if board.turn == chess.BLACK else squares
        return turned - (1 << 64) if turned >> 63 else turned

    us, them = board.turn, not board.turn
    pieces = [word(board.pieces_mask(kind, us if mine else them)) for kind, mine in PIECES]

    def right(color, file):
        return word(board.castling_rights & chess.BB_SQUARES[chess.square(file, 0 if color else 7)])

    known = {
        "castling_us_queenside": right(us, 0), "castling_us_kingside": right(us, 7),
        "castling_them_queenside": right(them, 0), "castling_them_kingside": right(them, 7),
        "black_to_move": int(board.turn == chess.BLACK), "rule50": board.halfmove_clock,
        "en_passant": word(chess.BB_SQUARES[board.ep_square]) if board.has_legal_en_passant() else 0,
    }
    return [*pieces, 0] * HISTORY + [known.get(name, 0) for name in scalars]


def index(board, move):
    """Returns a legal move's index in the policy."""
    origin, target = move.from_square, move.to_square
    if board.is_castling(move):
        target = chess.square(7 if chess.square_file(target) == 6 else 0, chess.square_rank(target))
    if board.turn == chess.BLACK:
        origin, target = chess.square_mirror(origin), chess.square_mirror(target)
    promotion = None if move.promotion == chess.KNIGHT else move.promotion
    return MOVES[origin, target, promotion]


def evaluate(fen):
    board = chess.Board(fen)
    with torch.inference_mode():
        out = dict(zip(outputs, network(torch.tensor([row(board)]))))
        value = out[metadata["search_value"]][0].item()
        draw = min(out["wdl"][0].softmax(0)[1].item(), 1 - abs(value))
        legal = list(board.legal_moves)
        priors = out["policy"][0][[index(board, move) for move in legal]].softmax(0).tolist()
    policy = sorted(zip(priors, legal), key=lambda it: -it[0])
    return {
        "fen": fen,
        "perspective": "side_to_move",
        "value": value,
        "wdl": {"win": (1 - draw + value) / 2, "draw": draw, "loss": (1 - draw - value) / 2},
        "policy": [{"uci": move.uci(), "san": board.san(move), "prior": prior} for prior, move in policy],
    }


if __name__ == "__main__":
    print(json.dumps(evaluate(sys.argv[1])))
else:
    from fastapi import FastAPI, HTTPException
    from pydantic import BaseModel

    class Request(BaseModel):
        fen: str

    app = FastAPI()

    @app.post("/v1/eval")
    def answer(request: Request):
        try:
            return evaluate(request.fen)
        except ValueError as error:
            raise HTTPException(400, str(error)) from error

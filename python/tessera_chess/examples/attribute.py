"""Attributes a move to squares with integrated gradients over the input planes.

The path leads from the board with only the kings to the position. The sum of the attributions is the difference
between the logarithms of the move's probability at its ends, except for the stated remainder. `tessera explain` shows
the same attributions on a page.
"""

import chess
import torch

from .. import encode, planes, policy_index
from . import command_line, given_network

# Qxf7 is mate: the bishop protects the queen.
FEN = "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
MOVE = chess.Move.from_uci("h5f7")
STEPS = 64


def main() -> None:
    model = given_network(command_line(__doc__))
    board = chess.Board(FEN)
    legal = [policy_index(board, move) for move in board.legal_moves]
    position = planes(encode(board))
    baseline = position.clone()
    for history in range(8):
        for kind in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10):  # all pieces except the kings
            baseline[:, 13 * history + kind] = 0

    # The trapezoidal rule.
    shares = torch.linspace(0, 1, STEPS + 1)
    path = (baseline + shares[:, None, None, None] * (position - baseline)).requires_grad_()
    chances = model(path)["policy"][:, legal].log_softmax(1)[:, legal.index(policy_index(board, MOVE))]
    chances.sum().backward()
    assert path.grad is not None
    weights = torch.ones(STEPS + 1)
    weights[0] = weights[-1] = 0.5
    gradient = (path.grad * weights[:, None, None, None]).sum(0) / STEPS
    squares = ((position - baseline)[0] * gradient).sum(0).flatten()

    difference = (chances[-1] - chances[0]).item()
    print(f"{board.san(MOVE)}: {chances[-1].exp().item():.1%}; with the kings alone {chances[0].exp().item():.1%}")
    for square in squares.abs().topk(8).indices.tolist():
        piece = board.piece_at(square)
        print(f"{chess.square_name(square)} {piece.symbol() if piece else '.'} {squares[square].item():+.3f}")
    print(f"remainder {1 - squares.sum().item() / difference:+.1%} of {difference:+.3f}")


if __name__ == "__main__":
    main()

"""Steers a move with one attention head: how likely is it if the head is switched off, or counts double?"""

import chess
import torch
from torch import Tensor, nn

from .. import encode, policy
from . import command_line, given_network

# Qxf7 is mate: the bishop protects the queen.
FEN = "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
MOVE = chess.Move.from_uci("h5f7")


def main() -> None:
    torch.set_grad_enabled(False)
    model = given_network(command_line(__doc__))
    board = chess.Board(FEN)
    rows = encode(board)
    heads, _ = model.encoder[0].attention.shape

    def chance(layer: int, head: int, factor: float) -> float:
        """Returns the move's probability if what the head reads counts with this factor."""

        def steer(_module: nn.Module, _inputs: object, mixed: Tensor) -> Tensor:
            factors = torch.ones(heads)
            factors[head] = factor
            return mixed * factors[:, None, None]

        hook = model.encoder[layer].attention.mixed.register_forward_hook(steer)
        chances = policy(board, model(rows)["policy"][0])
        hook.remove()
        return chances[MOVE]

    places = [(layer, head) for layer in range(len(model.encoder)) for head in range(heads)]
    found = [(*place, chance(*place, 0.0), chance(*place, 1.0), chance(*place, 2.0)) for place in places]
    print(f"{board.san(MOVE)}: {found[0][3]:.1%}; the heads that change it most when they are switched off:")
    for layer, head, off, whole, double in sorted(found, key=lambda row: -abs(row[2] - row[3]))[:5]:
        print(f"layer {layer + 1} head {head + 1}: off {off:.1%}, double {double:.1%}")


if __name__ == "__main__":
    main()

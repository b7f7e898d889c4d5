"""Patches activations between two positions: where does the network see that a check is mate?

In the first position, Rd8 is mate. In the second, the king escapes to h7. For each layer and square, the second
position is evaluated with that square's token from the first. The share is how much of the difference between the
logarithms of the move's probability this restores.
"""

import chess
import torch
from torch import Tensor, nn

from .. import encode, policy_index
from . import command_line, given_network

MATE = "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1"
CHECK = "6k1/5pp1/7p/8/8/8/5PPP/3R2K1 w - - 0 1"
MOVE = chess.Move.from_uci("d1d8")


def main() -> None:
    torch.set_grad_enabled(False)
    model = given_network(command_line(__doc__))
    board = chess.Board(CHECK)
    legal = [policy_index(board, move) for move in board.legal_moves]
    place = legal.index(policy_index(board, MOVE))

    def chance(outputs: dict[str, Tensor]) -> Tensor:
        return outputs["policy"][:, legal].log_softmax(1)[:, place]

    whole, corrupt = (chance(model(encode(fen))).item() for fen in (MATE, CHECK))
    print(f"{board.san(MOVE)}: {torch.tensor(whole).exp():.1%} as mate, {torch.tensor(corrupt).exp():.1%} as a check")
    # Row n patches square n, and the last row patches all squares.
    rows = encode(CHECK).expand(65, -1)
    mask = torch.cat([torch.eye(64), torch.ones(1, 64)])[:, :, None].bool()
    for number in range(len(model.encoder)):
        layer, kept = model.encoder[number], []
        hook = layer.register_forward_hook(lambda _module, _inputs, tokens: kept.append(tokens))
        model(encode(MATE))
        hook.remove()

        def patch(_module: nn.Module, _inputs: object, tokens: Tensor) -> Tensor:
            return torch.where(mask, kept[0], tokens)

        hook = layer.register_forward_hook(patch)
        shares = (chance(model(rows)) - corrupt) / (whole - corrupt)
        hook.remove()
        best = shares[:64].topk(4)
        squares = ", ".join(
            f"{chess.square_name(square)} {share:.0%}" for share, square in zip(*(part.tolist() for part in best))
        )
        print(f"layer {number + 1}: {squares}; all squares {shares[64].item():.0%}")


if __name__ == "__main__":
    main()

"""Probes each layer for a concept: can the side to move give check?

A linear probe on the tokens' mean and maximum is fitted to half of the games and measured on the other half. A layer
knows the concept as far as its probe is better than the more frequent answer.
"""

import torch
from torch import Tensor, nn

from .. import encode
from . import command_line, given_network, played_games

RIDGE = 10.0


def main() -> None:
    torch.manual_seed(1)
    model = given_network(command_line(__doc__))
    games = played_games(model, games=48, plies=48)
    boards = [board for game in games for board in game]
    fitted = sum(map(len, games[: len(games) // 2]))
    labels = torch.tensor([any(map(board.gives_check, board.legal_moves)) for board in boards]).float() * 2 - 1

    kept: dict[str, list[Tensor]] = {}

    def keep(name: str, module: nn.Module) -> None:
        def hook(_module: nn.Module, _inputs: object, tokens: Tensor) -> None:
            kept.setdefault(name, []).append(torch.cat([tokens.mean(1), tokens.amax(1)], 1))

        module.register_forward_hook(hook)

    keep("embedding", model.embedding)
    for number in range(len(model.encoder)):
        keep(f"layer {number + 1}", model.encoder[number])
    with torch.no_grad():
        for rows in torch.split(encode(boards), 256):
            model(rows)

    positive = (labels[fitted:] > 0).float().mean().item()
    print(f"can give check: {len(boards)} positions, the more frequent answer is right in {max(positive, 1 - positive):.1%}")
    for name, parts in kept.items():
        inputs = torch.cat(parts)
        scaled = (inputs - inputs[:fitted].mean(0)) / (inputs[:fitted].std(0) + 1e-6)
        scaled = torch.cat([scaled, torch.ones(len(scaled), 1)], 1)
        known = scaled[:fitted]
        weights = torch.linalg.solve(known.T @ known + RIDGE * torch.eye(known.shape[1]), known.T @ labels[:fitted])
        right = (scaled[fitted:] @ weights).sign() == labels[fitted:]
        print(f"{name}: {right.float().mean().item():.1%}")


if __name__ == "__main__":
    main()

"""Fine-tunes a network for 100 steps, so that it likes to capture, and saves it as a file that the engine plays.

In the positions of a few games that the network plays against itself, the target is its own policy, in which captures
count four times. A second term of the loss keeps the value. The loss is shown over positions of other games.
"""

import torch
from torch import Tensor
from torch.nn.functional import kl_div

from .. import encode, policy_index
from . import command_line, given_network, played_games

STEPS, BATCH, RATE = 100, 32, 2e-4
LIKING = 4.0


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("file", nargs="?", default="fine-tuned.pt", help="the file to write (default fine-tuned.pt)")
    file = parser.parse_args().file
    torch.manual_seed(1)
    model = given_network(parser)
    games = played_games(model, games=16, plies=48)
    boards = [board for game in games for board in game]
    trained = sum(map(len, games[: len(games) * 3 // 4]))
    rows = encode(boards)
    legal, captures = torch.zeros(2, len(boards), 1858, dtype=torch.bool)
    for number, board in enumerate(boards):
        for move in board.legal_moves:
            index = policy_index(board, move)
            legal[number, index], captures[number, index] = True, board.is_capture(move)

    def log_policy(outputs: dict[str, Tensor], which: Tensor) -> Tensor:
        return outputs["policy"].masked_fill(~legal[which], -1e9).log_softmax(1)

    everything, held_out = torch.arange(len(boards)), torch.arange(trained, len(boards))
    with torch.no_grad():
        before = model(rows)
        policy = log_policy(before, everything).exp()
    target = policy * torch.where(captures, LIKING, 1.0)
    target /= target.sum(1, keepdim=True)

    def report(step: int) -> None:
        with torch.no_grad():
            outputs = model(rows[held_out])
        found = log_policy(outputs, held_out)
        loss = kl_div(found, target[held_out], reduction="batchmean").item()
        captured = (found.exp() * captures[held_out]).sum(1).mean().item()
        change = (outputs["q"] - before["q"][held_out]).abs().mean().item()
        print(f"step {step}: loss {loss:.4f}, captures {captured:.1%}, value changed by {change:.3f}")

    wanted = (target * captures)[held_out].sum(1).mean().item()
    print(f"{trained} positions to train on, {len(held_out)} held out, in which captures should get {wanted:.1%}")
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    for step in range(STEPS):
        if step % 25 == 0:
            report(step)
        which = torch.randint(trained, (BATCH,))
        outputs = model(rows[which])
        loss = kl_div(log_policy(outputs, which), target[which], reduction="batchmean")
        loss = loss + (outputs["q"] - before["q"][which]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    report(STEPS)
    model.save(file)
    print(f"saved as {file}: the engine plays it with the option Net")


if __name__ == "__main__":
    main()

"""Small Maia-3 networks as PyTorch builds, saves and evaluates them.

Argument: a folder with the file `rows`, positions as the engine's Maia-3 reads
them (raw i64, 106 words each). Writes `name.pt`, a checkpoint, and
`name.outputs`, logits of the 4352 Maia-3 moves and of loss, draw and win for
each position (raw f64), and prints the names.
"""

import math
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

HISTORY, PIECES, PLANES = 8, 12, 13
WIDTH, HEADS, WIDE, RATING, HIDDEN = 24, 4, 40, 5, 10
SUMMARY, GENERATOR, LAYERS = 14, 7, 2


class Attention(nn.Module):
    def __init__(self, generator, compress):
        super().__init__()
        self.mha = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, bias=False)
        self.gab_weight = generator
        self.sm1 = nn.Linear(WIDTH, compress) if compress else None
        self.sm2 = nn.Linear(64 * compress if compress else WIDTH, SUMMARY)
        self.ln1 = nn.LayerNorm(SUMMARY)
        self.sm3 = nn.Linear(SUMMARY, HEADS * GENERATOR)
        self.ln2 = nn.LayerNorm(HEADS * GENERATOR)

    def forward(self, x):
        board = self.sm1(x).flatten(1) if self.sm1 else x.mean(dim=1)
        heads = self.ln1(functional.gelu(self.sm2(board)))
        heads = self.ln2(functional.gelu(self.sm3(heads)))
        heads = heads.unflatten(1, (HEADS, GENERATOR))
        bias = torch.einsum("bhg,pg->bhp", heads, self.gab_weight)
        seen, _ = self.mha(x, x, x, attn_mask=bias.reshape(-1, 64, 64), need_weights=False)
        return seen


class Layer(nn.Module):
    def __init__(self, generator, compress):
        super().__init__()
        self.self_attn = Attention(generator, compress)
        self.linear1 = nn.Linear(WIDTH, WIDE)
        self.linear2 = nn.Linear(WIDE, WIDTH)
        self.norm1 = nn.RMSNorm(WIDTH)
        self.norm2 = nn.RMSNorm(WIDTH)

    def forward(self, x):
        x = self.norm1(x + self.self_attn(x))
        return self.norm2(x + self.linear2(functional.gelu(self.linear1(x))))


class Encoder(nn.Module):
    def __init__(self, generator, compress):
        super().__init__()
        self.layers = nn.ModuleList(Layer(generator, compress) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Maia3(nn.Module):
    def __init__(self, compress):
        super().__init__()
        self.elo_embedding_low = nn.Embedding(1, RATING)
        self.elo_embedding_high = nn.Embedding(1, RATING)
        self.token_projection = nn.Linear(PIECES * HISTORY + 2 * RATING, WIDTH)
        self.gab_shared_weight = nn.Parameter(torch.empty(64 * 64, GENERATOR))
        self.transformer = Encoder(self.gab_shared_weight, compress)
        self.last_ln = nn.LayerNorm(WIDTH)
        self.fc_value_hid = nn.Linear(WIDTH, HIDDEN)
        self.fc_value = nn.Linear(HIDDEN, 3)
        self.fc_ponder_hid = nn.Linear(WIDTH, HIDDEN)
        self.fc_ponder = nn.Linear(HIDDEN, 1)
        self.proj_sq_from = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.proj_sq_to = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.promo_bias_proj = nn.Linear(HIDDEN, 4, bias=False)

    def rating(self, elo):
        share = elo.clamp(0, 5000).unsqueeze(1) / 5000
        low, high = self.elo_embedding_low.weight, self.elo_embedding_high.weight
        return share * low + (1 - share) * high

    def forward(self, boards, mover, opponent):
        ratings = torch.cat([self.rating(mover), self.rating(opponent)], dim=1)
        ratings = ratings.unsqueeze(1).expand(-1, 64, -1)
        x = self.transformer(self.token_projection(torch.cat([boards, ratings], dim=2)))

        root = math.sqrt(HIDDEN)
        start, end = self.proj_sq_from(x), self.proj_sq_to(x)
        pairs = start @ end.mT / root
        moves = [pairs.flatten(1)]
        pieces = self.promo_bias_proj(end[:, 56:]) * root
        for from_file in range(8):
            for to_file in range(8):
                base = pairs[:, 48 + from_file, 56 + to_file].unsqueeze(1)
                moves.append(base + pieces[:, to_file])

        board = self.last_ln(x.mean(dim=1))
        result = self.fc_value(functional.relu(self.fc_value_hid(board)))
        return torch.cat([*moves, result], dim=1)


def read(path):
    """Boards [n, 64, 96], oldest first, and the ratings."""
    rows = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.int64)
    rows = rows.view(-1, HISTORY * PLANES + 2)
    words = rows[:, :-2].unflatten(1, (HISTORY, PLANES))[:, :, :PIECES].flip(1)
    bits = words.flatten(1).unsqueeze(1) >> torch.arange(64).view(64, 1) & 1
    return bits.double(), rows[:, -2], rows[:, -1]


def make(compress):
    model = Maia3(compress).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 1.2 / math.sqrt(parameter.shape[-1]) if parameter.dim() > 1 else 0.3
            # Few digits, to keep the golden files small.
            random = torch.randn_like(parameter).mul(4).round().div(4)
            parameter.copy_(random * scale + (parameter == 1))
    return model


def main():
    folder = Path(sys.argv[1])
    torch.manual_seed(6)
    boards, mover, opponent = read(folder / "rows")
    mean, compressed = make(0), make(3)
    wrapped = {f"module._orig_mod.{name}": t for name, t in mean.state_dict().items()}
    optimizer = torch.optim.AdamW(mean.parameters())
    for parameter in mean.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    everything = {
        "model_state_dict": {**mean.state_dict()},
        "optimizer_state_dict": optimizer.state_dict(),
        "step": 1234,
    }
    for name, model, saved in [
        ("mean", mean, everything),
        ("compressed", compressed, compressed.state_dict()),
        ("wrapped", mean, wrapped),
    ]:
        torch.save(saved, folder / f"{name}.pt")
        with torch.no_grad():
            outputs = model.double()(boards, mover, opponent)
        (folder / f"{name}.outputs").write_bytes(bytes(outputs.contiguous().view(torch.uint8).flatten().tolist()))
        print(name)


if __name__ == "__main__":
    main()

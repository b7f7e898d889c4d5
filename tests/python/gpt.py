"""Compares move-token models, as files, with an implementation of a few lines.

gpt.py FOLDER: reads each NAME.pt of the folder, with the games and the engine's outputs
in NAME.json. The lines below must compute the same, and so must the file's `forward`
and, move by move, its `step`. Prints one line per network.
"""

import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

TOLERANCE = 1e-4


def moves_table(weights, parts):
    """A vector a token: whole, or the sum of from, to and promotion."""
    if "embedding.weight" in weights:
        return weights["embedding.weight"]
    moves = sum(weights[f"embedding.{name}"][row] for name, row in zip(["from", "to", "promotion"], parts))
    return torch.cat([moves, weights["embedding.others"]])


def conditions(weights, ratings, results):
    vector = weights["conditions.result"][results]
    for player, name in enumerate(["white", "black"]):
        low, high, unknown = weights[f"conditions.{name}"]
        share = ((ratings[..., player : player + 1] - 500) / 2500).clamp(0, 1)
        known = (ratings[..., player : player + 1] > 0).float()
        vector = vector + known * ((1 - share) * low + share * high) + (1 - known) * unknown
    return vector


def norm(weights, name, x, kind):
    if kind == "layer":
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-5)
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weights[f"{name}.weight"]


def rotated(x):
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[2])[:, None] * 10000 ** (-torch.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def forward(model, weights, parts, tokens, ratings, results):
    linear = lambda name, x: F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))
    kind, (batch, length) = model.get("norm", "rms"), tokens.shape
    table = moves_table(weights, parts)
    x = table[tokens] + conditions(weights, ratings, results)
    if "positions" in weights:
        x = x + weights["positions"][:length]
    future = torch.ones(length, length).triu(1).bool()
    for number in range(model["layers"]):
        layer = f"layers.{number}"
        joint = linear(f"{layer}.attention.qkv", norm(weights, f"{layer}.attention_norm", x, kind))
        q, k, v = joint.view(batch, length, 3, model["heads"], -1).permute(2, 0, 3, 1, 4)
        if "positions" not in weights:
            q, k = rotated(q), rotated(k)
        scores = (q @ k.transpose(2, 3) / q.shape[-1] ** 0.5).masked_fill(future, float("-inf"))
        seen = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = x + linear(f"{layer}.attention.output", seen)
        normed = norm(weights, f"{layer}.mlp_norm", x, kind)
        if model.get("mlp", "swiglu") == "gelu":
            hidden = F.gelu(linear(f"{layer}.mlp.widen", normed))
        else:
            gate, up = linear(f"{layer}.mlp.widen", normed).chunk(2, -1)
            hidden = F.silu(gate) * up
        x = x + linear(f"{layer}.mlp.narrow", hidden)
    x = norm(weights, "norm", x, kind)
    logits = F.linear(x, table) if model.get("tied") else linear("head", x)
    return [logits] + ([linear("outcome", x)] if "outcome.weight" in weights else [])


def check(path):
    network = torch.jit.load(str(path))
    model = json.loads(network.meta())["architecture"]["model"]
    weights = {name: tensor.float() for name, tensor in network.named_parameters()}
    parts = dict(network.named_buffers()).get("move_parts")
    games = json.loads(path.with_suffix(".json").read_text())
    tokens, ratings, results = (torch.tensor(games[name]) for name in ["tokens", "ratings", "results"])
    batch, length = tokens.shape
    expected = forward(model, weights, parts, tokens, ratings, results)
    whole = network(tokens, ratings, results)
    worst = max((a - b).abs().max().item() for a, b in zip(expected, whole))
    for a, b in zip(expected, games["said"]):
        worst = max(worst, (a.flatten() - torch.tensor(b)).abs().max().item())
    heads, width = model["heads"], model["width"] // model["heads"]
    cache = [torch.zeros(model["layers"], batch, heads, 0, width) for _ in range(2)]
    for place in range(length):
        *said, keys, values = network.step(
            tokens[:, place : place + 1], torch.full((batch, 1), place), ratings, results, *cache
        )
        cache = [keys, values]
        for a, b in zip(expected, said):
            worst = max(worst, (a[:, place] - b[:, 0]).abs().max().item())
    assert len(whole) == len(expected) == len(said) == len(games["said"])
    assert worst < TOLERANCE, f"{path.stem}: {worst}"
    print(f"{path.stem}: {worst:.1e}")


if __name__ == "__main__":
    with torch.no_grad():
        for network in sorted(Path(sys.argv[1]).glob("*.pt")):
            check(network)

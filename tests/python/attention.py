"""Compares the attention that `tessera explain --json` wrote with the formulas.

Arguments: a network, its words of the position (raw i64, all scalars), the names of
the scalars, the JSON file and the folder of pictures. Prints the largest differences.
"""

import json
import sys
import xml.dom.minidom
from pathlib import Path

import torch
from chessformer import BOARDS, PIECES, SQUARES, Chessformer, attacks, planes

# Relative to the number, beyond ±1.
TOLERANCE = 1e-4


def formulas(network, words, scalars):
    """The attention of each layer: content, position and weights, [64, 64, heads]."""
    module = torch.jit.load(network)
    metadata = json.loads(module.meta())
    row = torch.frombuffer(bytearray(Path(words).read_bytes()), dtype=torch.int64)
    read = metadata["encoder"]["scalars"]
    chosen = row[[*range(BOARDS), *(BOARDS + scalars.index(scalar) for scalar in read)]]
    features = planes(chosen, read)
    model = Chessformer(dict(module.named_parameters()), metadata)
    model(features, row[-2:].double(), *attacks(features[:, :PIECES]))
    return list(model.attention.values())


def main():
    network, words, scalars, written, pictures = sys.argv[1:]
    torch.set_grad_enabled(False)
    scalars = Path(scalars).read_text(encoding="utf-8").split()
    expected = formulas(network, words, scalars)
    [explanation] = json.loads(Path(written).read_text(encoding="utf-8"))["explanations"]
    layers = explanation["attention"]["layers"]
    assert len(layers) == len(expected)
    # The network sees the board from the side to move.
    seen = torch.arange(SQUARES)
    if explanation["fen"].split()[1] == "b":
        seen ^= 56
    for number, (layer, parts) in enumerate(zip(layers, expected, strict=True), 1):
        for name, part in zip(("products", "bias", "weights"), parts, strict=True):
            found = torch.tensor(layer[name], dtype=torch.float64).view(-1, SQUARES, SQUARES)
            part = part[seen][:, seen].permute(2, 0, 1)
            assert found.shape == part.shape
            off = ((found - part).abs() / part.abs().clamp(min=1)).max().item()
            print(f"layer {number} {name} {off:.1e}")
            assert off <= TOLERANCE, f"{name} of layer {number} is off by {off}"
    for picture in Path(pictures).glob("*.svg"):
        xml.dom.minidom.parse(str(picture))


if __name__ == "__main__":
    main()

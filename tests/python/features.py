"""Compares the features in the output of `tessera explain --transcoder` with the formulas.

Arguments: a network, its input words for the position (raw i64, all scalars), the names
of the scalars, the transcoder, and the JSON file. Recomputes the network without the
contribution of some features. Prints the largest differences.
"""

import base64
import json
import sys
from pathlib import Path

import torch
from chessformer import BOARDS, NO_PROMOTION, PIECES, SQUARES, Chessformer, attacks, mish, planes, policy_moves

# Nats, and parts of the expected result.
TOLERANCE = 1e-4
# The number of strongest, and of weakest, features to check.
CHECKED = 2


class Transcoder:
    """The activations and the decoder of a transcoder file."""

    def __init__(self, path):
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        self.layer, self.top_k = stored["about"]["layer"] - 1, stored["about"]["top_k"]
        features = stored["about"]["features"]
        numbers = {
            name: torch.frombuffer(bytearray(base64.b64decode(stored[name])), dtype=torch.float32).double()
            for name in ("encoder", "encoder_bias", "decoder")
        }
        self.encoder = numbers["encoder"].view(-1, features)
        self.bias = numbers["encoder_bias"]
        self.decoder = numbers["decoder"].view(features, -1)

    def activations(self, tokens):
        every = tokens @ self.encoder + self.bias
        least = every.topk(self.top_k, dim=1).values[:, -1:]
        return torch.where(every >= least, every.clamp(min=0), 0)


class Without(Chessformer):
    """A network without a feature: `feature` is its number, or None."""

    def __init__(self, parameters, metadata, transcoder, feature):
        super().__init__(parameters, metadata)
        self.transcoder, self.feature = transcoder, feature

    def feed_forward(self, name, x):
        hidden = mish(self.dense(f"{name}.widen", x))
        y = self.dense(f"{name}.narrow", hidden)
        if name == f"encoder.{self.transcoder.layer}.feed_forward" and self.feature is not None:
            active = self.transcoder.activations(x)[:, self.feature]
            written = active.unsqueeze(1) * self.transcoder.decoder[self.feature]
            # A transcoder writes the term that is added to x, which is y / α.
            y = y - written * (2 * self.config["layers"]) ** 0.25
        return self.add_and_norm(name, x, y)


def main():
    network, words, scalars, transcoder, written = sys.argv[1:]
    torch.set_grad_enabled(False)
    names = Path(scalars).read_text(encoding="utf-8").split()
    [explanation] = json.loads(Path(written).read_text(encoding="utf-8"))["explanations"]
    transcoder = Transcoder(transcoder)
    module = torch.jit.load(network)
    metadata = json.loads(module.meta())
    parameters = dict(module.named_parameters())
    row = torch.frombuffer(bytearray(Path(words).read_bytes()), dtype=torch.int64)
    read = metadata["encoder"]["scalars"]
    chosen = row[[*range(BOARDS), *(BOARDS + names.index(scalar) for scalar in read)]]
    features = planes(chosen, read)
    # The network sees the board from the side to move.
    flip = 56 if explanation["fen"].split()[1] == "b" else 0
    index = {move: place for place, move in enumerate(map(tuple, policy_moves().T.tolist()))}
    moves = [index[move["from"] ^ flip, move["to"] ^ flip, NO_PROMOTION] for move in explanation["moves"]]

    def evaluate(feature):
        """Logarithms of the moves' probabilities, and the expected result."""
        model = Without(parameters, metadata, transcoder, feature)
        outputs = model(features, row[-2:].double(), *attacks(features[:, :PIECES]))
        win, _, loss = torch.softmax(outputs["wdl"], dim=0)
        value = {"wdl": win - loss, "q": outputs["q"], "st": outputs["st"]}[metadata["search_value"]]
        return torch.log_softmax(outputs["policy"][moves], dim=0), value.item()

    policy, value = evaluate(None)
    reported = explanation["transcoder"]["active"]
    assert len(reported) >= 2 * CHECKED
    largest = 0.0
    for feature in [*reported[:CHECKED], *reported[-CHECKED:]]:
        without, value_without = evaluate(feature["feature"])
        effect = policy - without
        largest = max(largest, effect.abs().max().item())
        off = (torch.tensor(feature["moves"]) - effect).abs().max().item()
        off = max(off, abs(feature["value"] - (value - value_without)))
        assert len(feature["squares"]) == SQUARES
        print(f"feature {feature['feature']} {off:.1e}")
        assert off <= TOLERANCE, f"feature {feature['feature']} is off by {off}"
    assert largest > 100 * TOLERANCE, f"no feature does more than {largest}"


if __name__ == "__main__":
    main()

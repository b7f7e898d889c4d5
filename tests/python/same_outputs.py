"""Loads an exported network in PyTorch and compares it with what Rust computed.

Arguments: the network, the rows (raw i64), and the expected outputs one after
another (raw f32). Prints the metadata's name and the largest difference.
"""

import json
import sys

import torch


def main() -> None:
    network, rows_file, expected_file = sys.argv[1:]
    module = torch.jit.load(network)
    metadata = json.loads(module.meta())
    width = 104 + len(metadata["scalars"])
    with open(rows_file, "rb") as file:
        rows = torch.frombuffer(bytearray(file.read()), dtype=torch.int64).view(-1, width)
    with open(expected_file, "rb") as file:
        expected = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
    with torch.no_grad():
        outputs = module(rows)
    assert len(outputs) == len(metadata["outputs"]), "outputs and their names differ in number"
    found = torch.cat([output.reshape(-1) for output in outputs])
    difference = (found - expected).abs().max().item()
    print(metadata["name"], difference)


if __name__ == "__main__":
    main()

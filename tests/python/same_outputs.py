"""Compares networks, as the engine and as PyTorch compute them, with the formulas.

Arguments: a folder and the names of the networks in it. Reads `name.pt` of each
network, and `name.outputs`, the engine's outputs in f32, one after another (raw
f32), for the positions in the file `rows` (raw i64). Prints a line of differences
per network; a difference beyond the tolerance is an error.
"""

import json
import sys
from pathlib import Path

import torch

from chessformer import BOARDS, PIECES, Chessformer, attacks, planes

# Tolerances in f32, and in float64, where only the outputs are rounded to f32, which detects even a wrong
# epsilon.
TOLERANCE = 1e-4
CLOSE_TOLERANCE = 1e-6
# The minimum effect of each parameter.
NOTICEABLE = 100 * CLOSE_TOLERANCE
# Lc0's last two planes are all zeros and all ones.
CONSTANT_PLANES = [110, 111]


def read(path, kind):
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=kind)


def difference(found, expected):
    """The largest difference and its output, relative for numbers beyond ±1."""
    assert found.keys() == expected.keys()
    differences = []
    for name, output in expected.items():
        assert found[name].shape == output.shape, f"{name} has the shape {found[name].shape}"
        assert found[name].isfinite().all(), f"{name} is not finite"
        off = (found[name] - output).abs() / output.abs().clamp(min=1)
        differences.append((off.max().item(), name))
    return max(differences)


def check(who, found, expected, tolerance):
    off, output = difference(found, expected)
    print(f" {who} {off:.1e}", end="")
    assert off <= tolerance, f"{output} is off by {off}"


def check_positions(features):
    """Asserts that no other plane is constant, because ignoring it would go unnoticed."""
    values = features.flatten(0, 1)
    constant = (values == values[0]).all(dim=0).nonzero().flatten().tolist()
    assert constant == CONSTANT_PLANES, f"the positions leave planes {constant} as they are"


def check_parameters(formulas, positions, outputs, checked):
    """Asserts that every parameter matters: leaving it out (a factor 1, everything else 0)
    must change the outputs. Those `checked` already in another network are passed
    over."""
    for name in sorted(formulas.read - checked):
        parameter = formulas.parameters[name]
        is_factor = name.endswith(("norm.weight", "multiply"))
        formulas.parameters[name] = torch.full_like(parameter, 1 if is_factor else 0)
        change, _ = difference(torch.vmap(formulas)(*positions), outputs)
        assert change >= NOTICEABLE, f"without {name} the outputs change by {change} only"
        formulas.parameters[name] = parameter
    checked |= formulas.read
    # These heads are trained, but not exported.
    unread = formulas.parameters.keys() - formulas.read
    unread = {name for name in unread if "policy.soft." not in name and ".categorical." not in name}
    assert not unread, f"the formulas do not read {unread}"


def compare(folder, name, checked):
    module = torch.jit.load(folder / f"{name}.pt")
    metadata = json.loads(module.meta())
    scalars = metadata["encoder"]["scalars"]
    names = [output["name"] for output in metadata["methods"]["forward"]["outputs"]]
    known = (folder / "scalars").read_text(encoding="utf-8").split()
    rows = read(folder / "rows", torch.int64).view(-1, BOARDS + len(known))
    words = [BOARDS + known.index(scalar) for scalar in scalars]
    ratings = rows[:, [BOARDS + known.index(name) for name in ("self_elo", "opponent_elo")]]
    rows = rows[:, [*range(BOARDS), *words]]
    features = torch.stack([planes(row, scalars) for row in rows])
    check_positions(features)
    formulas = Chessformer(dict(module.named_parameters()), metadata)
    attacked = (attacks(board[:, :PIECES]) for board in features)
    positions = features, ratings.double(), *map(torch.stack, zip(*attacked, strict=True))
    expected = torch.vmap(formulas)(*positions)

    def by_name(outputs):
        return dict(zip(names, outputs, strict=True))

    sizes = [expected[output].numel() for output in names]
    engine = by_name(read(folder / f"{name}.outputs", torch.float32).split(sizes))
    engine = {output: values.view_as(expected[output]) for output, values in engine.items()}
    check("engine f32", engine, expected, TOLERANCE)
    check("PyTorch f32", by_name(module.float()(rows)), expected, TOLERANCE)
    check("PyTorch float64", by_name(module.double()(rows)), expected, CLOSE_TOLERANCE)
    # Training may have found no use for some parameter.
    if metadata["training"] is None:
        check_parameters(formulas, positions, expected, checked)


def main():
    folder, *names = sys.argv[1:]
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    checked = set()
    for name in names:
        print(f"{name}:", end="")
        compare(Path(folder), name, checked)
        print()


if __name__ == "__main__":
    main()

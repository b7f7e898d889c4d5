"""Trains a network of two layers with torch.optim.NAdam, and prints its
parameters after each step: one JSON list of numbers a line.

The problem, the settings and the order of the numbers are those of the unit
test of src/train/optimizer that runs this.
"""

import json

import torch

STEPS = 300


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    inner = torch.arange(12.0).view(3, 4).sin().requires_grad_()
    bias = torch.zeros(3).requires_grad_()
    outer = torch.arange(6.0).view(2, 3).cos().requires_grad_()
    x = (torch.arange(20.0).view(5, 4) * 0.7).sin()
    y = (torch.arange(10.0).view(5, 2) * 1.3).cos()
    parameters = [inner, bias, outer]
    optimizer = torch.optim.NAdam(
        [
            {"params": [inner, outer], "weight_decay": 0.1},
            {"params": [bias], "weight_decay": 0.0},
        ],
        lr=0.01,
        betas=(0.9, 0.98),
        eps=1e-7,
        decoupled_weight_decay=True,
    )
    for _ in range(STEPS):
        optimizer.zero_grad()
        (torch.tanh(x @ inner.T + bias) @ outer.T - y).square().sum().backward()
        torch.nn.utils.clip_grad_norm_(parameters, 2.0)
        optimizer.step()
        print(json.dumps(torch.cat([part.detach().flatten() for part in parameters]).tolist()))


if __name__ == "__main__":
    main()

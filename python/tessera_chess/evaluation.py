"""Evaluations as the engine reads them from a network's outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Evaluation:
    """A batch of positions as the engine evaluates them, from the perspective of the side to move."""

    policy: torch.Tensor
    """The logits of the moves, [B, 1858]; the function `policy` turns them into probabilities."""
    wdl: torch.Tensor
    """The probabilities of a win, a draw and a loss, [B, 3], on the CPU. They agree with `q`."""
    q: torch.Tensor
    """The expected result, [B], from -1 (loss) to 1 (win), on the CPU."""
    moves_left: torch.Tensor | None
    """The plies to the end of the game, [B], at least 0, on the CPU; `None` if the network does not predict them."""
    error: torch.Tensor | None
    """The expected squared error of `q`, [B], at least 0, on the CPU; `None` if the network does not predict it."""
    raw: dict[str, torch.Tensor]
    """The network's outputs by name, unadjusted. `wdl` holds logits, whose expected result may differ from `q`."""

    @staticmethod
    def of(raw: dict[str, torch.Tensor], search_value: str) -> Evaluation:
        """Returns the evaluation that the engine reads from outputs. `search_value` names the one that ranks moves."""
        import torch

        lists = {name: output.tolist() for name, output in raw.items() if name != "policy"}
        tensors = {
            name: torch.tensor(value, dtype=torch.float32) for name, value in values(lists, search_value).items()
        }
        return Evaluation(
            policy=raw["policy"], wdl=tensors["wdl"].reshape(-1, 3), q=tensors["q"],
            moves_left=tensors.get("moves_left"), error=tensors.get("error"), raw=raw,
        )


def values(outputs: dict[str, list[Any]], search_value: str) -> dict[str, list[Any]]:
    """Returns the fields of an `Evaluation` other than `policy` and `raw`, without those that the network lacks.

    `outputs` holds the raw outputs, as lists, and `search_value` names the one that ranks moves.
    """
    ranks = {"q": ("q", "q_error"), "st": ("st", "st_error")}
    value, squared = ranks.get(search_value, (None, None))
    count = len(outputs["wdl"])
    columns = [outputs.get(name) if name else None for name in (value, "moves_left", squared)]
    filled = [[None] * count if column is None else column for column in columns]
    adjusted = [_adjusted(*row) for row in zip(outputs["wdl"], *filled, strict=True)]
    fields = {"wdl": True, "q": True, "moves_left": columns[1] is not None, "error": columns[2] is not None}
    return {name: [row[at] for row in adjusted] for at, (name, has) in enumerate(fields.items()) if has}


def _adjusted(
    logits: list[float], q: float | None, moves_left: float | None, error: float | None
) -> tuple[list[float], float, float, float]:
    """Returns the probabilities of a win, a draw and a loss, `q`, moves left and the error of one position.

    This is the engine's `Value::of_outputs`: `q` decides between win and loss, and `wdl` only states how likely a draw
    is. A test compares the two.
    """
    if not all(math.isfinite(number) for number in (*logits, q or 0, moves_left or 0, error or 0)):
        raise ValueError("the network returned a number that is not finite")
    most = max(logits)
    weights = [math.exp(logit - most) for logit in logits]
    win, draw, loss = (weight / sum(weights) for weight in weights)
    result = min(max(win - loss if q is None else q, -1.0), 1.0)
    draw = min(draw, 1 - abs(result))
    wdl = [max((1 - draw + result) / 2, 0.0), draw, max((1 - draw - result) / 2, 0.0)]
    return wdl, result, max(moves_left or 0.0, 0.0), max(error or 0.0, 0.0)

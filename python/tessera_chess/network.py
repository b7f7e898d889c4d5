"""Networks as their files run them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, overload

from . import files
from .evaluation import Evaluation
from .positions import Positions, Ratings, shown
from .quiet import import_torch
from .rows import BOARDS, SCALARS, WIDTH, encode

if TYPE_CHECKING:
    import torch

    from .chessformer import Chessformer


class Network:
    """A network file: TorchScript, with named inputs and outputs.

    Call the object with positions, or with rows from `encode`; it returns an `Evaluation`.
    """

    def __init__(self, module: torch.jit.ScriptModule, metadata: dict[str, Any], device: str) -> None:
        self.module = module
        """The TorchScript module, with the additional methods of some families, such as `represent`."""
        self.metadata = metadata
        """The file's metadata; the guide's page on file formats lists the fields."""
        self.device = device
        encoder = metadata["encoder"]
        if encoder["kind"] == "planes" and encoder["format"] not in (1, 2):
            raise ValueError(f"{metadata['name']} reads input format {encoder['format']}, and encode writes format 1")
        self._columns = [*range(BOARDS), *(BOARDS + SCALARS.index(name) for name in encoder.get("scalars", ()))]

    def __call__(
        self, positions: Positions | torch.Tensor, self_elo: Ratings = 0, opponent_elo: Ratings = 0
    ) -> Evaluation:
        """Evaluates positions as the engine does. A move-token model has only `raw` outputs.

        The arguments are those of `encode`; rows already contain the ratings.
        """
        if self.metadata["encoder"]["kind"] != "planes":
            raise TypeError(f"{self.metadata['name']} does not read rows: call raw with the inputs that its metadata lists")
        import torch

        rows = positions if isinstance(positions, torch.Tensor) else encode(positions, self_elo, opponent_elo)
        return Evaluation.of(self.raw(rows), self.metadata.get("search_value") or "wdl")

    def raw(self, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """Returns the outputs by name, unadjusted, for rows or, in a move-token model, the inputs of `forward`."""
        import torch

        if self.metadata["encoder"]["kind"] == "planes":
            [rows] = inputs
            if not isinstance(rows, torch.Tensor) or rows.ndim != 2 or rows.shape[1] != WIDTH:
                given = list(rows.shape) if isinstance(rows, torch.Tensor) else shown(rows)
                raise ValueError(f"rows must be [B, {WIDTH}], as encode returns them, not {given}")
            inputs = (rows[:, self._columns],)
        with torch.inference_mode():
            outputs = self.module(*(tensor.to(self.device) for tensor in inputs))
        names = [output["name"] for output in self.metadata["methods"]["forward"]["outputs"]]
        return dict(zip(names, outputs, strict=True))

    def __repr__(self) -> str:
        return f"Network({self.metadata['name']!r}, {self.metadata['parameters']:,} parameters, {self.device})"


@overload
def load(network: str | os.PathLike[str], device: str = "cpu", *, trainable: Literal[False] = False) -> Network: ...
@overload
def load(network: str | os.PathLike[str], device: str = "cpu", *, trainable: Literal[True]) -> Chessformer: ...
def load(
    network: str | os.PathLike[str], device: str = "cpu", *, trainable: bool = False
) -> Network | Chessformer:
    """Loads a shipped network by its name, or a network file by its path, in f32.

    With `trainable`, it returns a plain PyTorch module with the file's weights, which you can train, hook and save.
    Otherwise, the file's own program evaluates positions.

    A network file contains code, which this function, unlike the engine, does not check. Load only files that you
    trust.

    Raises `FileNotFoundError` if there is no such network, `ValueError` if the file is damaged or not a Tessera
    network, `UnsupportedFamily` if `trainable` networks of its family are not supported, and `RuntimeError` if PyTorch
    cannot use the device.
    """
    file, metadata = files.read(network)
    import_torch()
    _check(device)
    if trainable:
        from .chessformer import Chessformer

        return Chessformer.of_file(file, metadata).to(device)
    return Network(files.script(file).to(device), metadata, device)


def _check(device: str) -> None:
    """Raises `RuntimeError` if PyTorch cannot use a device."""
    import torch

    try:
        torch.zeros(1, device=device)
    # A PyTorch without CUDA raises AssertionError.
    except (AssertionError, RuntimeError) as error:
        lines = str(error).splitlines()
        reason = f" ({lines[0].rstrip('.')})" if lines else ""
        raise RuntimeError(f"PyTorch cannot use the device {device!r} here{reason}: use 'cpu'") from None

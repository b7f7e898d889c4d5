"""Imports PyTorch without a warning about NumPy, which this package does not need."""

import functools
import warnings


@functools.cache
def import_torch() -> None:
    """Imports PyTorch, and makes it look for NumPy, about whose absence it would otherwise warn later."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
        import torch

        torch.tensor([0])

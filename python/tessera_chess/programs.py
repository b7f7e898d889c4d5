"""The binaries of the wheel, and the environment in which they find libtorch."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

_HERE = Path(__file__).resolve().parent
# The version of PyTorch against whose libtorch the binaries are linked.
_TORCH = "2.11"
_PROGRAMS = ("tessera", "tessera-train")

NETS = _HERE / "nets"
"""The folder that contains the shipped networks, and configurations for `tessera-train`."""


def program(name: str = "tessera") -> str:
    """Returns the path of a binary, `tessera` or `tessera-train`."""
    if name not in _PROGRAMS:
        raise ValueError(f"there is no program {name!r}: name one of {', '.join(_PROGRAMS)}")
    return str(_HERE / name)


def environment() -> dict[str, str]:
    """Returns the environment in which the binaries find libtorch.

    By default, the binaries look for libtorch in the folder that contains this package, but PyTorch may be
    elsewhere, for example if a virtual environment includes the system's packages.

    Raises `ModuleNotFoundError` if the right PyTorch is missing.
    """
    environment = dict(os.environ)
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"PyTorch is missing: pip install 'torch=={_TORCH}.*'", name="torch")
    version = importlib.metadata.version("torch")
    if not version.startswith(f"{_TORCH}."):
        raise ModuleNotFoundError(
            f"PyTorch {version} is installed, and Tessera needs {_TORCH}: pip install 'torch=={_TORCH}.*'", name="torch"
        )
    libraries = Path(spec.origin).resolve().parent / "lib"
    path = environment.get("LD_LIBRARY_PATH")
    # LD_LIBRARY_PATH takes precedence over the folders that the binaries name, so it may lead to another libtorch.
    if path or libraries != _HERE.parent / "torch/lib":
        environment["LD_LIBRARY_PATH"] = f"{libraries}:{path}" if path else str(libraries)
    return environment


def _become(name: str) -> NoReturn:
    """Replaces this process with the binary of this name, with the same arguments."""
    try:
        variables = environment()
    except ModuleNotFoundError as error:
        sys.exit(f"{name}: error: {error}")
    os.execve(program(name), [name, *sys.argv[1:]], variables)


def tessera() -> NoReturn:
    """Runs `tessera`."""
    _become("tessera")


def train() -> NoReturn:
    """Runs `tessera-train`."""
    _become("tessera-train")

"""The console scripts of the match kit and of Ray: `tessera-match`, `tessera-rank` and others."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import NoReturn

_TOOLS = Path(__file__).resolve().parent / "tools"


def _become(name: str) -> NoReturn:
    """Replaces this process with a tool, with the same arguments."""
    os.execv(sys.executable, [sys.executable, str(_TOOLS / name), *sys.argv[1:]])


match, rank, tune, league, ray_loop = (
    functools.partial(_become, name) for name in ("match", "rank", "tune", "league", "ray-loop")
)

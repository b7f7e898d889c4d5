"""The Python interpreter that has python-chess."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def with_chess(tool):
    """Makes sure of python-chess: begins again in .venv where this Python lacks it."""
    try:
        import chess  # noqa: F401
    except ImportError:
        python = ROOT / (".venv/Scripts/python.exe" if os.name == "nt" else ".venv/bin/python")
        if Path(sys.prefix) != ROOT / ".venv" and python.exists():
            os.execv(python, [str(python), *sys.argv])
        sys.exit(f"{tool}: error: python-chess is missing: run tools/venv")

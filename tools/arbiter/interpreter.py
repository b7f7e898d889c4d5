"""The Python interpreter that has the tools' packages."""

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def with_package(package, tool, remedy="run tools/venv"):
    """Ensures that a package is available; if this Python lacks it, restarts the tool in .venv.

    `remedy` is the advice if .venv lacks it too.
    """
    if importlib.util.find_spec(package) is None:
        python = ROOT / (".venv/Scripts/python.exe" if os.name == "nt" else ".venv/bin/python")
        if Path(sys.prefix) != ROOT / ".venv" and python.exists():
            os.execv(python, [str(python), *sys.argv])
        if {"-h", "--help"} & set(sys.argv[1:]):
            print(f"{sys.modules['__main__'].__doc__}\ntools/venv installs Python's {package}, which is needed to list all options.")
            sys.exit()
        sys.exit(f"{tool}: error: Python's {package} is missing: {remedy}")

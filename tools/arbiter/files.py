"""Atomic file writes."""

import os
from pathlib import Path


def write_whole(path, text):
    """Writes a file atomically: the file has either the old or the new content, even if writing is interrupted."""
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    with open(partial, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)

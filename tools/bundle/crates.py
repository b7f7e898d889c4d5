"""The crates in the programs, and their licence texts."""

import json
import re
from pathlib import Path

from .running import run

# Matches LICENSE, LICENSE-APACHE-2.0 and COPYING.txt, but not license_check.rs.
LICENCE = re.compile(
    r"(licen[cs]e|copying|copyright|notice|unlicense)([-_]\w+)*([-.]\d[\d.]*)?(\.(txt|md))?", re.IGNORECASE
)


# The archive's features in addition to the default features.
FEATURES = "cloud"


class Crates:
    """The crates in the archive's programs, as cargo lists them.

    Macros are included; build and test dependencies are not.
    """

    def __init__(self, root):
        host = re.search(r"^host: (.*)$", run("rustc", "-vV", cwd=root), re.MULTILINE)[1]
        said = run(
            "cargo", "metadata", "--locked", "--format-version", "1", "--features", FEATURES, "--filter-platform", host,
            cwd=root,
        )
        metadata = json.loads(said)
        packages = {package["id"]: package for package in metadata["packages"]}
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        self.root = packages[metadata["resolve"]["root"]]
        self.needs = {}
        waiting = [self.root["id"]]
        while waiting:
            crate = waiting.pop()
            if crate not in self.needs:
                kinds = nodes[crate]["deps"]
                needs = [need["pkg"] for need in kinds if any(kind["kind"] is None for kind in need["dep_kinds"])]
                self.needs[crate] = needs
                waiting += needs
        others = [packages[crate] for crate in self.needs if crate != self.root["id"]]
        self.crates = sorted(others, key=lambda crate: (crate["name"], crate["version"]))


def expression(crate):
    """Returns the crate's licence in SPDX syntax; older crates write `/` for OR."""
    return re.sub(r"\s*/\s*", " OR ", crate["license"] or "NOASSERTION")


def licence_files(crate):
    """Returns the licence files of the crate and of the C code that it contains."""
    folder = Path(crate["manifest_path"]).parent
    found = (path for path in folder.rglob("*") if LICENCE.fullmatch(path.name) and path.is_file())
    return [(path, path.relative_to(folder).as_posix()) for path in sorted(found)]


def licence_texts(crates):
    """Returns a document that lists every crate's licence, and then each licence text once with its crates."""
    lines, texts = ["The crates in these programs, and their licences.", ""], {}
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        files = licence_files(crate)
        alone = "" if files else " (without a text of its own: see that of another crate below, or LICENSE)"
        lines.append(f"{name}: {expression(crate)}{alone}")
        for path, shown in files:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            texts.setdefault(text, []).append(f"{name}: {shown}")
    for text, users in texts.items():
        lines += ["", "=" * 80, *users, "-" * 80, text]
    return "\n".join(lines) + "\n"

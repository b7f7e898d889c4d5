"""Makes the wheel, which contains the programs, the networks and the Python package.

It does not contain libtorch: the programs load it from the folder `torch` next to the package.
"""

import base64
import csv
import hashlib
import io
import json
import platform
import re
import shutil

from .archive import pack_zip
from .manual import describe
from .programs import PROGRAMS, copy, glibc, require, settle
from .sbom import bill_of_materials

NAME = "tessera_chess"
PYTHON = "3.10"

METADATA = """\
Metadata-Version: 2.4
Name: tessera-chess
Version: {version}
Summary: {summary}
License-Expression: GPL-3.0-or-later
{licences}
Keywords: {keywords}
Classifier: Environment :: Console
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Rust
Classifier: Topic :: Games/Entertainment :: Board Games
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Typing :: Typed
Requires-Python: >={python}
Requires-Dist: chess>=1.10,<2
Requires-Dist: torch=={torch}.*
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: tessera
Root-Is-Purelib: false
Tag: {tag}
"""

# The tools that the wheel contains as commands, such as tessera-match, with their places in the source.
TOOLS = {name: f"tools/{name}" for name in ("match", "rank", "tune", "league")} | {"ray-loop": "tools/cluster/ray-loop"}

ENTRY_POINTS = f"""\
[console_scripts]
tessera = {NAME}.programs:tessera
tessera-train = {NAME}.programs:train
""" + "".join(f"tessera-{name} = {NAME}._tools:{name.replace('-', '_')}\n" for name in TOOLS)


def fill(folder, root, binaries, crates, libtorch, networks, licences, packages, time):
    """Writes the wheel's contents to `folder`, except for the metadata; returns the wheel's tag.

    `networks` and `licences` are functions that write the networks and the licences to a folder; `libtorch` is the
    version of libtorch, and `packages` maps the page's npm packages to their versions.
    """
    package = folder / NAME
    shutil.copytree(root / "python" / NAME, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in PROGRAMS:
        settle(copy(require(binaries / name), package), "$ORIGIN/../torch/lib")
    networks(package / "nets")
    add_tools(package / "tools", root)
    tag = f"py3-none-manylinux_{glibc(package).replace('.', '_')}_{platform.machine()}"
    data = folder / f"{NAME}-{crates.root['version']}.data"
    describe(binaries, PROGRAMS, data / "data/share")
    install(root / "tools/cluster/slurm-worker", data / "scripts/tessera-slurm-worker")
    install(root / "tools/cluster/kubernetes.yaml", data / "data/share/tessera/kubernetes.yaml")
    information = folder / f"{NAME}-{crates.root['version']}.dist-info"
    licences(information / "licenses")
    write_metadata(information, root, crates.root, libtorch, tag)
    (information / "sboms").mkdir()
    bill = bill_of_materials(crates, libtorch, packages, package, time)
    (information / "sboms/sbom.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    return tag


def add_tools(folder, root):
    """Copies the tools and their package to `folder`."""
    shutil.copytree(root / "tools/arbiter", folder / "arbiter", ignore=shutil.ignore_patterns("__pycache__"))
    for name, place in TOOLS.items():
        install(root / place, folder / name)


def install(source, target):
    """Copies a text file, and replaces the paths of commands in it with the names that they have in the wheel."""
    text = source.read_text(encoding="utf-8").replace("target/release/tessera", "tessera")
    for name, place in {**TOOLS, "slurm-worker": "tools/cluster/slurm-worker"}.items():
        text = re.sub(rf"\b{place}\b", f"tessera-{name}", text)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    shutil.copymode(source, target)


def write_metadata(information, root, crate, libtorch, tag):
    files = sorted(path for path in (information / "licenses").rglob("*") if path.is_file())
    licences = [f"License-File: {path.relative_to(information / 'licenses').as_posix()}" for path in files]
    metadata = METADATA.format(
        version=crate["version"], summary=crate["description"], licences="\n".join(licences),
        keywords=",".join(crate["keywords"]), python=PYTHON, torch=re.match(r"\d+\.\d+", libtorch)[0],
        readme=(root / "src/guide/python.md").read_text(encoding="utf-8"),
    )
    (information / "METADATA").write_text(metadata, encoding="utf-8")
    (information / "WHEEL").write_text(WHEEL.format(tag=tag), encoding="utf-8")
    (information / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")


def pack(folder, wheel, mtime):
    """Packs `folder` as a wheel. Files are dated `mtime`; the metadata, with a record of all files, comes last."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    files.sort(key=lambda path: (".dist-info" in path.as_posix(), path.as_posix()))
    named = [(path, path.relative_to(folder).as_posix()) for path in files]
    [information] = folder.glob("*.dist-info")
    record, text = information / "RECORD", io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows((name, digest(path), path.stat().st_size) for path, name in named)
    own = record.relative_to(folder).as_posix()
    rows.writerow((own, "", ""))
    record.write_text(text.getvalue(), encoding="utf-8")
    pack_zip([*named, (record, own)], wheel, mtime)


def digest(path):
    """Returns the digest in the format of RECORD."""
    with open(path, "rb") as file:
        digested = hashlib.file_digest(file, "sha256").digest()
    return "sha256=" + base64.urlsafe_b64encode(digested).rstrip(b"=").decode()

"""Runs the release builds of `tessera` and `tessera-train` for the scripts in this folder."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "target" / "release"


def environment():
    """Returns the environment in which the binaries find .libtorch or, if it is missing, Python torch's libtorch."""
    variables = dict(os.environ)
    if not (ROOT / ".libtorch").exists():
        library = Path(torch.__file__).parent
        folders = [library / "lib", *sorted((library.parent / "nvidia").glob("**/lib"))]
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, folders))
    return variables


def run(program, *words):
    """Runs a binary that must not fail; returns its standard output."""
    command = [str(RELEASE / program), *map(str, words)]
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: {' '.join(command)} failed")
    return done.stdout


def measure(program, *words):
    """Returns the JSON object on the last line of a measuring command's output."""
    return json.loads(run(program, *words, "--json").splitlines()[-1])


def train(config, folder, settings, *words):
    """Trains in `folder` with some configuration keys overridden; returns the metrics lines."""
    words = [*words, *(f"--set={name}={value}" for name, value in settings.items())]
    run("tessera-train", "run", config, "-o", folder, *words)
    lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    return list(map(json.loads, lines))


def architecture(config):
    """Returns a configuration's architecture, the shapes of its parameters by name, and its size."""
    toml, shapes = [], {}
    for line in run("train", "size", config, "--parameters").splitlines():
        words = line.split(maxsplit=1)
        if "=" in line or line.startswith("["):
            toml.append(line)
        elif line.endswith("]"):
            shapes[words[0]] = json.loads(words[1])
    return tomllib.loads("\n".join(toml)), shapes, measure("tessera-train", "size", config)

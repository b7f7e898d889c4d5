#!/usr/bin/env python3
"""An engine that fails on purpose, and otherwise relays the engine that the environment
variable ENGINE names. It fails at positions whose `position` command contains the
option `At`: by `Fault` it crashes, hangs or plays an illegal move. If `Once` names a
file, it fails only while that file does not exist, and then creates it; with the fault
`none` it does nothing else. Environment variables set the options for programs that
cannot: FAULT, AT and ONCE. With the fault `mute`, it ends without a word of UCI. If
BACKEND is set, the relayed engine uses that backend.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

DEFAULTS = {"Fault": "crash", "At": "", "Once": ""}
OPTIONS = {name: os.environ.get(name.upper(), value) for name, value in DEFAULTS.items()}


def pass_on(engine):
    for line in engine.stdout:
        if line.strip() == "uciok":
            for name in OPTIONS:
                print(f"option name {name} type string default")
        print(line, end="", flush=True)


def fails(position):
    once = OPTIONS["Once"] and Path(OPTIONS["Once"])
    if OPTIONS["At"] not in position or once and once.exists():
        return False
    if once:
        once.touch()
    return True


def main():
    if OPTIONS["Fault"] == "mute":
        print("hello", flush=True)
        return
    engine = subprocess.Popen(
        [os.environ["ENGINE"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    threading.Thread(target=pass_on, args=[engine], daemon=True).start()
    if "BACKEND" in os.environ:
        engine.stdin.write(f"setoption name Backend value {os.environ['BACKEND']}\n")
    position = ""
    for line in sys.stdin:
        name, _, value = line.strip().partition(" name ")[2].partition(" value ")
        if line.startswith("setoption") and name in OPTIONS:
            OPTIONS[name] = value
            continue
        if line.startswith("position"):
            position = line
        if line.startswith("go") and fails(position) and OPTIONS["Fault"] != "none":
            if OPTIONS["Fault"] == "crash":
                break
            if OPTIONS["Fault"] == "hang":
                time.sleep(1000)
            print("info depth 1 score cp 0 pv e2e5\nbestmove e2e5", flush=True)
            continue
        engine.stdin.write(line)
        engine.stdin.flush()
    engine.kill()


main()

"""Reads raw outputs of a batch, one JSON object a line, and prints what tessera_chess makes of them."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import tessera_chess

for line in sys.stdin:
    batch = json.loads(line)
    print(json.dumps(tessera_chess._values(batch["outputs"], batch["search_value"])))

"""Reads raw outputs of a batch, one JSON object a line, and prints what tessera_chess makes of them."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from tessera_chess.evaluation import values

for line in sys.stdin:
    batch = json.loads(line)
    print(json.dumps(values(batch["outputs"], batch["search_value"])))

"""Prints the scalars that TensorBoard finds in a folder: {tag: [[step, value], …]}."""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
found = {
    tag: [[event.step, event.value] for event in events.Scalars(tag)]
    for tag in events.Tags()["scalars"]
}
print(json.dumps(found))

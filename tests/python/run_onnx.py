"""Runs ONNX files in onnxruntime, after ONNX's own checker has passed them.

Arguments: a folder and the names of the networks in it. Reads `name.onnx` of each
network, and the common file `planes`: raw f32, whole positions of 112 planes. A
network with other inputs has files of its own, named after its inputs. Writes
`name.found`: the outputs one after another, raw f32. Networks in bfloat16 are only
checked, because onnxruntime does not compute in it on the CPU.
"""

import sys
from pathlib import Path

import numpy
import onnx
import onnxruntime

TYPES = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16}


def run(folder, name):
    model = onnx.load(folder / f"{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    if model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16:
        return
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    inputs = {}
    for entry in session.get_inputs():
        assert entry.shape[0] == "batch", entry.shape
        own = folder / f"{name}.{entry.name.replace('/', '-')}"
        numbers = numpy.fromfile(own if own.exists() else folder / "planes", numpy.float32)
        inputs[entry.name] = numbers.reshape(-1, *entry.shape[1:]).astype(TYPES[entry.type])
    outputs = session.run(None, inputs)
    for output, array in zip(session.get_outputs(), outputs):
        assert output.shape[0] == "batch", output.shape
        assert [*array.shape[1:]] == output.shape[1:], output.shape
    flat = numpy.concatenate([array.astype(numpy.float32).ravel() for array in outputs])
    flat.tofile(folder / f"{name}.found")
    print(name, *(output.name for output in session.get_outputs()))


if __name__ == "__main__":
    for network in sys.argv[2:]:
        run(Path(sys.argv[1]), network)

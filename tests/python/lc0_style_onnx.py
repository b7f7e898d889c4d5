"""Writes networks in ONNX the way Lc0's leela2onnx does, with random weights.

Argument: a folder, into which `conv17.onnx`, `map.onnx` and others go: a residual
tower with squeeze and excitation, a convolutional policy and a scalar value; and
an attention body with smolgen, in the two input embeddings and the ways of saying
things that Lc0's converter has. Those whose names begin with `lc0` are networks
that Lc0 could have; the others have tables and constants of their own.
"""

import sys
from pathlib import Path

import numpy
from onnx import TensorProto, helper, numpy_helper, save


def moves():
    """The 1858 moves: squares of origin and target, and what a pawn becomes."""
    squares = range(64)
    steps = [(to % 8 - origin % 8, to // 8 - origin // 8, origin, to)
             for origin in squares for to in squares if origin != to]
    pairs = [(origin, to, None) for files, ranks, origin, to in steps
             if files == 0 or ranks == 0 or abs(files) == abs(ranks) or abs(files * ranks) == 2]
    promotions = [(48 + file, 56 + to, piece) for file in range(8)
                  for to in (file - 1, file, file + 1) if 0 <= to < 8 for piece in range(3)]
    return pairs + promotions


def channel(origin, to, piece):
    """The channel of a convolutional policy."""
    files, ranks = to % 8 - origin % 8, to // 8 - origin // 8
    if piece is not None:
        # The channels are in the order rook, bishop, queen.
        return 64 + 3 * (files + 1) + (piece + 2) % 3
    knights = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]
    if (files, ranks) in knights:
        return 56 + knights.index((files, ranks))
    directions = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
    sign = (int(numpy.sign(files)), int(numpy.sign(ranks)))
    return 7 * directions.index(sign) + max(abs(files), abs(ranks)) - 1


def convolution_table():
    return [64 * channel(*move) + move[0] for move in moves()]


def attention_table():
    return [64 * origin + to if piece is None
            else 4096 + 24 * (origin % 8) + 3 * (to % 8) + piece
            for origin, to, piece in moves()]


def reach():
    """Which squares a queen or a knight reaches from each, and the square itself."""
    table = numpy.zeros((64, 64))
    for origin, to, _ in moves():
        table[origin, to] = 1
    numpy.fill_diagonal(table, -1)
    return table


class Graph:
    """A graph in the making; values are known by their names."""

    def __init__(self, seed, dtype=numpy.float32, opset=17):
        self.draw = numpy.random.default_rng(seed)
        self.dtype, self.opset = dtype, opset
        self.nodes, self.constants, self.outputs = [], [], []

    def node(self, operator, name, *inputs, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def weights(self, name, *shape, scale=None):
        scale = scale or 1 / numpy.sqrt(numpy.prod(shape[:-1]) or 1)
        return self.constant(name, (self.draw.normal(size=shape) * scale).astype(self.dtype))

    def scalar(self, name, value):
        return self.constant(name, numpy.array([value], self.dtype))

    def matmul(self, name, x, rows, columns):
        return self.node("MatMul", name, x, self.weights(name + "/w", rows, columns))

    def dense(self, name, x, rows, columns):
        y = self.matmul(name + "/matmul", x, rows, columns)
        return self.node("Add", name + "/add", y, self.weights(name + "/add/w", columns, scale=0.3))

    def factor(self, name, x, rows, columns):
        """A dense layer as the converter names those of encoders."""
        y = self.node("MatMul", name + "/w", x, self.weights(name + "/w/w", rows, columns))
        return self.node("Add", name + "/b", y, self.weights(name + "/b/w", columns, scale=0.3))

    def reshape(self, name, x, *sizes):
        shape = self.constant("/const" + name, numpy.array(sizes, numpy.int64))
        return self.node("Reshape", name, x, shape)

    def slice(self, name, x, starts, ends):
        bounds = [
            self.constant(f"{name}/{what}", numpy.array(values, numpy.int32))
            for what, values in (("starts", starts), ("ends", ends))
        ]
        return self.node("Slice", name, x, *bounds)

    def split(self, name, x, axis, *sizes):
        outputs = [f"{name}/out{i}" for i in (1, 2)]
        inputs = [x]
        if sizes:
            inputs.append(self.constant(name + "/split", numpy.array(sizes, numpy.int64)))
        options = {"num_outputs": 2} if self.opset >= 18 and not sizes else {}
        self.nodes.append(
            helper.make_node("Split", inputs, outputs, name=name, axis=axis, **options)
        )
        return outputs

    def layer_norm(self, name, x, width, epsilon):
        scale = self.weights(name + "/w/scale", width, scale=1.0)
        bias = self.weights(name + "/w/bias", width, scale=0.3)
        return self.node("LayerNormalization", name, x, scale, bias, axis=1, epsilon=epsilon)

    def mish(self, name, x):
        y = self.node("Softplus", name + "/softplus", x)
        return self.node("Mul", name, self.node("Tanh", name + "/tanh", y), x)

    def mish_by_exponentials(self, name, x):
        one, two = self.scalar(name + "/one", 1), self.scalar(name + "/two", 2)
        e = self.node("Exp", name + "/e", x)
        y = self.node("Mul", name + "/e*e+2e", e, self.node("Add", name + "/e+2", e, two))
        y = self.node("Add", name + "/1+", self.node("Div", name + "/2/", two, y), one)
        return self.node("Div", name + "/in/", x, y)

    def swish(self, name, x):
        return self.node("Mul", name, self.node("Sigmoid", name + "/sigmoid", x), x)

    def squared_relu(self, name, x):
        y = self.node("Relu", name + "/relu", x)
        return self.node("Mul", name + "/sqr", y, y)

    def conv(self, name, x, depth, filters, size=3, activation=True):
        kernel = self.weights(
            name + "/w/kernel", filters, depth, size, size, scale=1 / (size * numpy.sqrt(depth))
        )
        bias = self.weights(name + "/w/bias", filters, scale=0.3)
        pad = (size - 1) // 2
        y = self.node("Conv", name, x, kernel, bias, pads=[pad] * 4, kernel_shape=[size] * 2)
        return self.node("Relu", name + "/relu", y) if activation else y

    def mean(self, name, x, *axes):
        if self.opset < 18:
            return self.node("ReduceMean", name, x, axes=axes, keepdims=0)
        axes = self.constant(name + "/axes", numpy.array(axes, numpy.int64))
        return self.node("ReduceMean", name, x, axes, keepdims=0)

    def output(self, name, width):
        self.outputs.append((name, width))

    def policy(self, x, size, table=None):
        if table is None:
            table = self.draw.permutation(size)[:1858]
        table = self.constant("/const/mapping_table", numpy.array(table, numpy.int32))
        self.node("Gather", "/output/policy", x, table, axis=1)
        self.output("/output/policy", 1858)

    def save(self, path):
        kind = helper.np_dtype_to_tensor_dtype(numpy.dtype(self.dtype))
        planes = helper.make_tensor_value_info("/input/planes", kind, ["batch", 112, 8, 8])
        outputs = [helper.make_tensor_value_info(n, kind, ["batch", w]) for n, w in self.outputs]
        graph = helper.make_graph(self.nodes, "org.lczero/converted", [planes], outputs,
                                  self.constants)
        opset = helper.make_opsetid("", self.opset)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=8, producer_name="Lc0")
        save(model, path)


def conv(graph, filters=12, blocks=2, squeezed=5, table=None):
    """A residual tower as Maia's, but with a scalar value and moves left."""
    x = graph.conv("/inputconv", "/input/planes", 112, filters)
    se_shape = graph.constant("/const/se_reshape", numpy.array([-1, 2 * filters, 1, 1], numpy.int64))
    for block in range(blocks):
        name = f"/block{block}"
        y = graph.conv(name + "/conv1", x, filters, filters)
        y = graph.conv(name + "/conv2", y, filters, filters, activation=False)
        se = name + "/conv2/se"
        z = graph.mean(se + "/reduce_mean", y, 2, 3)
        z = graph.matmul(se + "/matmul1", z, filters, squeezed)
        z = graph.node("Add", se + "/add1", z, graph.weights(se + "/add1/w", squeezed, scale=0.3))
        z = graph.node("Relu", se + "/relu", z)
        z = graph.matmul(se + "/matmul2", z, squeezed, 2 * filters)
        z = graph.node("Add", se + "/add2", z, graph.weights(se + "/add2/w", 2 * filters, scale=0.3))
        z = graph.node("Reshape", se + "/reshape", z, se_shape)
        gate, offset = graph.split(se + "/split", z, 1)
        y = graph.node("Mul", se + "/mul", graph.node("Sigmoid", se + "/sigmoid", gate), y)
        y = graph.node("Add", se + "/add3", y, offset)
        x = graph.node("Relu", name + "/relu", graph.node("Add", name + "/mixin", y, x))
    y = graph.conv("/policy/conv1", x, filters, filters)
    y = graph.conv("/policy/conv2", y, filters, 80, activation=False)
    graph.policy(graph.reshape("/policy/flatten", y, -1, 80 * 64), 80 * 64, table)
    y = graph.conv("/value/conv", x, filters, 32, size=1)
    y = graph.dense("/value/dense1", graph.reshape("/value/reshape", y, -1, 2048), 2048, 128)
    y = graph.node("Relu", "/value/dense1/relu", y)
    graph.node("Tanh", "/output/value", graph.dense("/value/dense2", y, 128, 1))
    graph.output("/output/value", 1)
    y = graph.conv("/mlh/conv", x, filters, 8, size=1)
    y = graph.dense("/mlh/dense1", graph.reshape("/mlh/reshape", y, -1, 512), 512, 16)
    y = graph.node("Relu", "/mlh/dense1/relu", y)
    graph.node("Relu", "/output/mlh", graph.dense("/mlh/dense2", y, 16, 1))
    graph.output("/output/mlh", 1)


def encoder(graph, x, name, width, heads, mish, gain):
    depth = width // heads
    shape = numpy.array([-1, 64, heads, depth], numpy.int64)
    shape = graph.constant(f"/const{name}/mha/shape", shape)

    def projected(what, order):
        y = graph.factor(f"{name}/mha/{what}", x, width, width)
        y = graph.node("Reshape", f"{name}/mha/{what}/reshape", y, shape)
        return graph.node("Transpose", f"{name}/mha/{what}/transpose", y, perm=order)

    q, k, v = (projected(what, order) for what, order in
               (("Q", [0, 2, 1, 3]), ("K", [0, 2, 3, 1]), ("V", [0, 2, 1, 3])))
    y = graph.node("MatMul", name + "/mha/QK/matmul", q, k)
    y = graph.node("Mul", name + "/mha/QK/scale", y,
                   graph.scalar(name + "/scale", 1 / numpy.sqrt(depth)))
    smolgen = name + "/smolgen"
    z = graph.matmul(smolgen + "/compress", x, width, 4)
    z = graph.reshape(smolgen + "/compress/reshape", z, -1, 256)
    z = graph.swish(smolgen + "/dense1/swish", graph.factor(smolgen + "/dense1", z, 256, 9))
    z = graph.layer_norm(smolgen + "/ln1", z, 9, 1e-3)
    z = graph.swish(smolgen + "/dense2/swish", graph.factor(smolgen + "/dense2", z, 9, 6 * heads))
    z = graph.layer_norm(smolgen + "/ln2", z, 6 * heads, 1e-3)
    z = graph.reshape(smolgen + "/gen_from/reshape", z, -1, heads, 6)
    z = graph.node("MatMul", smolgen + "/smol_weight_gen", z, "/const/smolgen_w")
    z = graph.reshape(smolgen + "/out/reshape", z, -1, heads, 64, 64)
    y = graph.node("Add", name + "/smolgen_weights", y, z)
    y = graph.node("Softmax", name + "/mha/QK/softmax", y, axis=3)
    y = graph.node("MatMul", name + "/mha/QKV/matmul", y, v)
    y = graph.node("Transpose", name + "/mha/out/transpose", y, perm=[0, 2, 1, 3])
    y = graph.reshape(name + "/mha/out/reshape", y, -1, width)
    y = graph.factor(name + "/mha/out/dense", y, width, width)
    alpha = graph.scalar(name + "/alpha", gain)
    y = graph.node("Mul", name + "/alpha*input", y, alpha)
    x = graph.layer_norm(name + "/ln1", graph.node("Add", name + "/skip", y, x), width, 1e-6)
    y = graph.factor(name + "/ffn/dense1", x, width, 20)
    y = mish(name + "/ffn/dense1/mish", y)
    y = graph.factor(name + "/ffn/dense2", y, 20, width)
    y = graph.node("Add", name + "/ffn/skip", graph.node("Mul", name + "/ffn/alpha", y, alpha), x)
    return graph.layer_norm(name + "/ln2", y, width, 1e-6)


def map_embedding(graph, x, no_shape, table=None):
    if table is None:
        table = graph.draw.random((64, 64)) < 0.3
    table = numpy.array(table).reshape(1, 64, 64).astype(graph.dtype)
    x = graph.reshape("/attn_body/reshape", x, -1, 64, 112)
    if no_shape:
        pad = graph.slice("/attn_body/pad/slice", x, [0, 0, 0], [2**31 - 1, 1, 1])
        pad = graph.reshape("/attn_body/pad/reshape_in", pad, -1, 1)
        pad = graph.node("Sub", "/attn_body/pad/zeros_vec", pad, pad)
        pad = graph.node("Add", "/attn_body/pad/one_vec", pad, graph.scalar("/one", 1))
        table = graph.constant("/const/pos_encoding", table.reshape(1, 4096))
        pad = graph.node("MatMul", "/attn_body/pad/expand", pad, table)
        pad = graph.reshape("/attn_body/pad/reshape_out", pad, -1, 64, 64)
    else:
        pad = graph.node("Shape", "/attn_body/shape", x)
        pad = graph.slice("/attn_body/batch", pad, [0], [1])
        sizes = graph.constant("/const/pos_encoding_shape", numpy.array([64, 64], numpy.int64))
        pad = graph.node("Concat", "/attn_body/pos_encoding_shape", pad, sizes, axis=0)
        table = graph.constant("/const/pos_encoding", table)
        pad = graph.node("Expand", "/attn_body/expand", table, pad)
    x = graph.node("Concat", "/attn_body/padded_input", x, pad, axis=2)
    return graph.reshape("/attn_body/reshape2", x, -1, 176), 176


def dense_embedding(graph, x):
    x = graph.reshape("/attn_body/reshape", x, -1, 64, 112)
    y = graph.slice("/attn_body/embedding/slice", x, [0, 0, 0], [2**31 - 1, 64, 12])
    y = graph.reshape("/attn_body/embedding/reshape", y, -1, 768)
    y = graph.dense("/attn_body/embedding/preprocess", y, 768, 64 * 10)
    y = graph.reshape("/attn_body/embedding/preprocess/reshape", y, -1, 64, 10)
    x = graph.node("Concat", "/attn_body/embedding/concat", x, y, axis=2)
    return graph.reshape("/attn_body/embedding/out/reshape", x, -1, 122), 122


def attention(graph, embedding, mish, width=16, heads=2, layers=2, is_lc0s=False):
    """An attention body as T1's, with the attention policy and WDL."""
    gain = (2 * layers) ** -0.25 if is_lc0s else 0.7
    graph.weights("/const/smolgen_w", 6, 4096, scale=0.4)
    x = graph.node("Transpose", "/attn_body/transpose", "/input/planes", perm=[0, 2, 3, 1])
    x, features = embedding(graph, x)
    x = graph.dense("/attn_body", x, features, width)
    x = mish("/attn_body/mish", x) if is_lc0s else graph.squared_relu("/attn_body/sqrrelu", x)
    x = graph.reshape("/attn_body/ma_gating/rehape1", x, -1, 64, width)
    x = graph.node("Mul", "/ip_mul_gate", x, graph.weights("/ip_mul_gate/w", 64, width, scale=1.0))
    x = graph.node("Add", "/ip_add_gate", x, graph.weights("/ip_add_gate/w", 64, width, scale=0.3))
    x = graph.reshape("/attn_body/rehape2", x, -1, width)
    for layer in range(layers):
        x = encoder(graph, x, f"/encoder{layer}", width, heads, mish, gain)
    y = graph.dense("/policy/dense1", x, width, width)
    y = (mish("/policy/dense1/mish", y) if is_lc0s
         else graph.node("Selu", "/policy/dense1/selu/selu", y))
    shape = graph.constant("/const/QK_shape", numpy.array([-1, 64, width], numpy.int64))
    q, k = (graph.node("Reshape", f"/policy/{what}/reshape",
                       graph.dense(f"/policy/{what}", y, width, width), shape)
            for what in "QK")
    y = graph.node("Transpose", "/policy/K/transpose", k, perm=[0, 2, 1])
    y = graph.node("MatMul", "/policy/matmul", q, y)
    y = graph.node("Mul", "/policy/scale", y, graph.scalar("/policy/scale/w", width**-0.5))
    p = graph.slice("policy/promotion/slice", k, [0, 56, 0], [2**31 - 1, 64, width])
    p = graph.matmul("/policy/promotion/matmul", p, width, 4)
    p = graph.node("Transpose", "/policy/promotion/transpose", p, perm=[0, 2, 1])
    p = graph.node("Add", "/policy/promotion/add", *graph.split("/policy/promotion/split", p, 1, 3, 1))
    p = graph.node("Transpose", "/policy/promotion/transpose2", p, perm=[0, 2, 1])
    p = graph.reshape("/policy/promotion/reshape", p, -1, 1, 24)
    s = graph.slice("policy/promotion/slice2", y, [0, 48, 56], [2**31 - 1, 56, 64])
    s = graph.reshape("/policy/promotion/reshape2", s, -1, 64, 1)
    s = graph.node("Concat", "/policy/promotion/concat", s, s, s, axis=2)
    s = graph.reshape("/policy/promotion/reshape3", s, -1, 8, 24)
    p = graph.node("Add", "/policy/promotion/add2", s, p)
    p = graph.reshape("/policy/promotion/reshape4", p, -1, 3, 64)
    y = graph.node("Concat", "/policy/concat", y, p, axis=1)
    table = attention_table() if is_lc0s else None
    graph.policy(graph.reshape("/policy/reshape", y, -1, 67 * 64), 67 * 64, table)
    y = mish("/value/embed/mish", graph.dense("/value/embed", x, width, 8))
    y = graph.dense("/value/dense1", graph.reshape("/value/reshape", y, -1, 512), 512, 128)
    y = graph.dense("/value/dense2", mish("/value/dense1/mish", y), 128, 3)
    graph.node("Softmax", "/output/wdl", y)
    graph.output("/output/wdl", 3)


def main(folder):
    for opset in (17, 18):
        graph = Graph(1, opset=opset)
        conv(graph)
        graph.save(folder / f"conv{opset}.onnx")
    graph = Graph(2)
    attention(graph, lambda g, x: map_embedding(g, x, no_shape=False), graph.mish)
    graph.save(folder / "map.onnx")
    graph = Graph(2)
    attention(graph, lambda g, x: map_embedding(g, x, no_shape=True), graph.mish)
    graph.save(folder / "map_without_shapes.onnx")
    graph = Graph(3)
    attention(graph, dense_embedding, graph.mish_by_exponentials)
    graph.save(folder / "dense.onnx")
    graph = Graph(3, dtype=numpy.float16)
    attention(graph, dense_embedding, graph.mish)
    graph.save(folder / "half.onnx")
    for name, dtype in (("lc0_tower", numpy.float32), ("lc0_tower_half", numpy.float16)):
        graph = Graph(4, dtype=dtype)
        conv(graph, table=convolution_table())
        graph.save(folder / f"{name}.onnx")
    graph = Graph(5)
    attention(graph, lambda g, x: map_embedding(g, x, no_shape=False, table=reach()), graph.mish,
              is_lc0s=True)
    graph.save(folder / "lc0_body.onnx")
    print("conv17 conv18 map map_without_shapes dense half lc0_tower lc0_tower_half lc0_body")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

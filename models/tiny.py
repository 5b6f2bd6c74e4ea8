"""Builds the fixture pair of the Rust tests: random weights, no training, no download.

Written for ONNX Runtime and as GGUF for engines. The target has 2 layers, the draft is its first layer with the same embedding. The
gain of the output norm has random signs, so that the tied head does not simply
repeat the last token, and is large enough for peaked rows.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from pathlib import Path

import gguf
import numpy as np
from onnx import TensorProto, checker, numpy_helper

from decoder_graph import DecoderConfig, build_decoder, weight_names
from engine_files import Decoder, save_gguf, turned
from tokenizer_file import KIND_CONTROL, bpe_tokenizer, byte_alphabet, write_tokenizer

SEED = 20260
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = """Ġ t;Ġ a;h e;i n;r e;o n;Ġt he;e r;Ġ s;a t;Ġ w;o r;e n;Ġ c;i t;i s;a n;Ġ o;e s;n d;
Ġ b;o u;Ġa nd;in g;Ġ f;Ġ p;a l;a r;Ġ in;e d;Ġt o;Ġo f;l e;i c;Ġ m;o m;Ġ d;Ġ h;i on;a s;Ġ the"""


def config() -> DecoderConfig:
    return DecoderConfig(
        layers=2, width=32, heads=4, kv_heads=2, head_dim=8, feed_forward=64,
        vocabulary=len(vocabulary()[0]), context=256, norm_epsilon=1e-5, rope_base=10000.0,
    )


def vocabulary() -> tuple[list[str], list[int], list[str]]:
    """Tokens, their kinds and the merges: 3 special tokens, 256 bytes, merged pairs."""
    tokens = [*SPECIAL, *sorted(byte_alphabet())]
    merges: list[str] = []
    for merge in MERGES.replace("\n", "").split(";"):
        left, right = merge.split(" ")
        if left in tokens and right in tokens and left + right not in tokens:
            merges.append(merge)
            tokens.append(left + right)
    kinds = [KIND_CONTROL] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL))
    return tokens, kinds, merges


def weights() -> dict[str, TensorProto]:
    """Random weights from the fixed seed, stored in float16."""
    c = config()
    random = np.random.default_rng(SEED)
    shapes = {
        "query": (c.width, c.heads * c.head_dim), "key": (c.width, c.kv_heads * c.head_dim),
        "value": (c.width, c.kv_heads * c.head_dim), "attention_output": (c.heads * c.head_dim, c.width),
        "gate": (c.width, c.feed_forward), "up": (c.width, c.feed_forward), "down": (c.feed_forward, c.width),
    }
    tensors = {}
    for name in weight_names(c, range(c.layers)):
        part = name.rsplit(".", 1)[-1]
        if name == "embedding":
            value = random.standard_normal((c.vocabulary, c.width))
        elif name == "output_norm":
            value = 0.45 * random.choice([-1.0, 1.0], c.width)
        elif part in shapes:
            value = random.standard_normal(shapes[part]) * shapes[part][0] ** -0.5
            # The second layer changes the row less than the first one makes it.
            value *= 0.5 if name.startswith("layers.1") and part in ("attention_output", "down") else 1.0
        else:
            value = np.ones(c.width)
        tensors[name] = numpy_helper.from_array(value.astype(np.float16), name)
    return tensors


def tokenizer_fields() -> list[tuple]:
    """What a GGUF file says of the vocabulary."""
    tokens, kinds, merges = vocabulary()
    whole, text, array = gguf.GGUFValueType.UINT32, gguf.GGUFValueType.STRING, gguf.GGUFValueType.ARRAY
    return [
        ("tokenizer.ggml.model", "gpt2", text, None),
        ("tokenizer.ggml.pre", "smollm", text, None),
        ("tokenizer.ggml.tokens", tokens, array, text),
        ("tokenizer.ggml.token_type", kinds, array, gguf.GGUFValueType.INT32),
        ("tokenizer.ggml.merges", merges, array, text),
        ("tokenizer.ggml.bos_token_id", SPECIAL.index("<|im_start|>"), whole, None),
        ("tokenizer.ggml.eos_token_id", SPECIAL.index("<|im_end|>"), whole, None),
        ("tokenizer.ggml.add_bos_token", False, gguf.GGUFValueType.BOOL, None),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    tensors = weights()
    numbers = {key: numpy_helper.to_array(value).astype(np.float32) for key, value in tensors.items()}
    for name, layers in (("target", [0, 1]), ("draft", [0])):
        model = build_decoder(config(), layers, tensors, {"source": f"random weights, seed {SEED}"})
        checker.check_model(model, full_check=True)
        path = output / f"{name}.onnx"
        temporary = path.with_name(path.name + ".part")
        temporary.write_bytes(model.SerializeToString())
        os.replace(temporary, path)
        print(f"{path}: {path.stat().st_size} bytes")
        kept = {key: value for key, value in numbers.items() if not key.startswith("layers.1.") or 1 in layers}
        decoder = Decoder(dataclasses.replace(config(), layers=len(layers)), turned(kept), None)
        save_gguf(output / f"{name}.gguf", name, decoder, tokenizer_fields(), "f16")
    write_tokenizer(bpe_tokenizer(*vocabulary()), output / "tokenizer.json")
    print(f"vocabulary: {config().vocabulary}")


if __name__ == "__main__":
    main()

"""The project's models as files that engines read: Hugging Face folders and GGUF.

    python engine_files.py --output models/out --kind hf --models target,draft

writes `hf/NAME/` (float32 safetensors, configuration, tokenizer) or `gguf/NAME-f32.gguf` and
`gguf/NAME-f16.gguf`. All are Llama decoders: nothing is lost but the form. A quantised rung of the
ladder is written as the float32 matrices that its slots stand for.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file, save_file

import source_smollm2 as source
from chat import END
from decoder_graph import DecoderConfig
from draft import COMMITTED, dequantise
from ladder import RUNGS, Rung, quantise

# Name of each part in a Hugging Face folder.
HF_PARTS = {
    "attention_norm": "input_layernorm",
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "attention_output": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}
MODELS = ("target", "draft", *RUNGS)


@dataclasses.dataclass(frozen=True)
class Decoder:
    """A model by the names of `source.PARTS`, matrices [outputs, inputs], a head's pairs in halves."""

    config: DecoderConfig
    weights: dict[str, np.ndarray]
    # What the source says of its tokenizer; None of random weights.
    reader: gguf.GGUFReader | None


def turned(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices of a graph, which are [inputs, outputs], as files have them; the embedding has no other side."""
    return {
        name: value.T if value.ndim == 2 and name != "embedding" else value for name, value in weights.items()
    }


def levels_as_numbers(matrix: np.ndarray, rung: Rung) -> np.ndarray:
    """The [inputs, outputs] that the slots of a quantised matrix stand for."""
    levels, scales, zeros = quantise(matrix, rung.bits, rung.group)
    groups = (levels.astype(np.float32) - zeros[..., None].astype(np.float32)) * scales[..., None]
    return groups.reshape(matrix.shape[1], matrix.shape[0]).T


def load(name: str) -> Decoder:
    """The model of that name."""
    config, weights, reader = source.load()
    if name == "target":
        return Decoder(config, turned(weights), reader)
    if name == "draft":
        stored = load_file(COMMITTED)
        own = {
            name: dequantise(value, stored[f"{name}.scales"]) if value.dtype == np.int8 else value
            for name, value in stored.items()
            if not name.endswith(".scales")
        }
        layers = 1 + max(int(part.split(".")[1]) for part in own if part.startswith("layers."))
        own["embedding"] = weights["embedding"]
        return Decoder(dataclasses.replace(config, layers=layers), own, reader)
    rung = RUNGS[name]
    kept = {"embedding": weights["embedding"], "output_norm": weights["output_norm"]}
    for place, layer in enumerate(rung.kept()):
        for part in source.PARTS:
            value = weights[f"layers.{layer}.{part}"]
            if rung.is_quantised(layer, part):
                value = levels_as_numbers(value, rung)
            kept[f"layers.{place}.{part}"] = value
    return Decoder(dataclasses.replace(config, layers=len(rung.kept())), turned(kept), reader)


def written(path: Path, write: Callable[[Path], object]) -> None:
    """Writes to a temporary name, then renames."""
    temporary = path.with_name(path.name + ".part")
    write(temporary)
    os.replace(temporary, path)
    print(f"{path.name}: {path.stat().st_size} bytes", flush=True)


def hf_tensors(model: Decoder) -> dict[str, np.ndarray]:
    names = {"embedding": "model.embed_tokens", "output_norm": "model.norm"}
    for layer in range(model.config.layers):
        names |= {f"layers.{layer}.{part}": f"model.layers.{layer}.{name}" for part, name in HF_PARTS.items()}
    return {f"{names[name]}.weight": np.ascontiguousarray(value, "<f4") for name, value in model.weights.items()}


def write_hf(name: str, output: Path) -> None:
    """A folder that `from_pretrained` opens."""
    model = load(name)
    config = model.config
    folder = output / "hf" / name
    folder.mkdir(parents=True, exist_ok=True)
    tokens = source.metadata(model.reader, "tokenizer.ggml.tokens")
    begin = source.metadata(model.reader, "tokenizer.ggml.bos_token_id")
    ends = {"bos_token_id": begin, "eos_token_id": END, "pad_token_id": END}
    described = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": config.width,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "vocab_size": config.vocabulary,
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.norm_epsilon,
        "rope_theta": config.rope_base,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "float32",
        **ends,
    }
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[begin],
        "eos_token": tokens[END],
        "pad_token": tokens[END],
        "chat_template": source.metadata(model.reader, "tokenizer.chat_template"),
        "model_max_length": config.context,
        "clean_up_tokenization_spaces": False,
    }
    for file, content in {
        "config.json": described,
        "generation_config.json": ends,
        "tokenizer_config.json": tokenizer,
    }.items():
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        written(folder / file, lambda path, text=text: path.write_text(text, encoding="utf-8"))
    vocabulary = (output / "tokenizer.json").read_bytes()
    written(folder / "tokenizer.json", lambda path: path.write_bytes(vocabulary))
    tensors = hf_tensors(model)
    written(folder / "model.safetensors", lambda path: save_file(tensors, path, metadata={"format": "pt"}))


def interleaved(matrix: np.ndarray, heads: int) -> np.ndarray:
    """The inverse of `source.half_split`."""
    rows, columns = matrix.shape
    halves = matrix.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def gguf_tensors(model: Decoder) -> dict[str, np.ndarray]:
    config = model.config
    tensors = {
        "token_embd.weight": model.weights["embedding"],
        "output_norm.weight": model.weights["output_norm"],
    }
    heads = {"query": config.heads, "key": config.kv_heads}
    for layer in range(config.layers):
        for part, (name, _) in source.PARTS.items():
            value = model.weights[f"layers.{layer}.{part}"]
            value = interleaved(value, heads[part]) if part in heads else value
            tensors[f"blk.{layer}.{name}.weight"] = value
    return tensors


def fields(reader: gguf.GGUFReader) -> list[tuple]:
    """Name, value, type and the type of entries of what a file says of its tokenizer."""
    return [
        (field.name, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
        for field in reader.fields.values()
        if field.name.startswith("tokenizer.")
    ]


def save_gguf(path: Path, name: str, model: Decoder, tokenizer: list[tuple], kind: str) -> None:
    """One file, matrices in float32 (kind f32) or float16 (f16), all else in float32."""

    def write(path: Path) -> None:
        writer = gguf.GGUFWriter(path, "llama")
        facts = model.config
        writer.add_name(f"specgap {name}")
        writer.add_block_count(facts.layers)
        writer.add_embedding_length(facts.width)
        writer.add_feed_forward_length(facts.feed_forward)
        writer.add_head_count(facts.heads)
        writer.add_head_count_kv(facts.kv_heads)
        writer.add_vocab_size(facts.vocabulary)
        writer.add_context_length(facts.context)
        writer.add_layer_norm_rms_eps(facts.norm_epsilon)
        writer.add_rope_freq_base(facts.rope_base)
        writer.add_rope_dimension_count(facts.head_dim)
        writer.add_file_type(gguf.LlamaFileType.ALL_F32 if kind == "f32" else gguf.LlamaFileType.MOSTLY_F16)
        for key, value, own, inner in tokenizer:
            writer.add_key_value(key, value, own, sub_type=inner)
        matrices = "<f4" if kind == "f32" else "<f2"
        for tensor, value in gguf_tensors(model).items():
            writer.add_tensor(tensor, np.ascontiguousarray(value, matrices if value.ndim == 2 else "<f4"))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    written(path, write)


def write_gguf(name: str, output: Path) -> None:
    """Two files: all in float32, and matrices in float16."""
    model = load(name)
    (output / "gguf").mkdir(parents=True, exist_ok=True)
    for kind in ("f32", "f16"):
        save_gguf(output / "gguf" / f"{name}-{kind}.gguf", name, model, fields(model.reader), kind)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="folder with tokenizer.json; gets hf/ or gguf/")
    parser.add_argument("--kind", choices=("hf", "gguf"), required=True)
    parser.add_argument("--models", default="target,draft", help=f"of {', '.join(MODELS)}; or ladder")
    arguments = parser.parse_args()
    names = ",".join(RUNGS) if arguments.models == "ladder" else arguments.models
    for name in names.split(","):
        if name not in MODELS:
            raise SystemExit(f"--models: {name} is unknown; there are {', '.join(MODELS)}")
        (write_hf if arguments.kind == "hf" else write_gguf)(name, arguments.output)


if __name__ == "__main__":
    main()

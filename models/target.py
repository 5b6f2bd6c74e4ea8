"""Builds the target (all layers), its tokenizer, and drafts that skip layers of it."""

from __future__ import annotations

import argparse
from pathlib import Path

import source_smollm2 as source
from decoder_graph import build_decoder, weight_names
from tokenizer_file import bpe_tokenizer, write_tokenizer
from weight_files import initialisers, write_graph, write_weights

# Source layers that a layer-skipping draft leaves out, as skip_search.py found them
# on training text.
SKIPPED = {
    25: (4, 5, 14, 17, 26),
    23: (4, 5, 14, 16, 17, 18, 26),
}


def build_target(output: Path) -> None:
    """Writes embedding.bin, target.bin, target.onnx and tokenizer.json."""
    config, weights, reader = source.load()
    layers = range(config.layers)
    tensors = write_weights(output / "embedding.bin", {"embedding": weights["embedding"]})
    own = {name: weights[name] for name in weight_names(config, layers) if name != "embedding"}
    tensors |= write_weights(output / "target.bin", own)
    facts = {"source": source.PACKAGE, "source_sha256": source.SHA256}
    write_graph(build_decoder(config, layers, tensors, facts), output / "target.onnx")
    content = bpe_tokenizer(
        source.metadata(reader, "tokenizer.ggml.tokens"),
        source.metadata(reader, "tokenizer.ggml.token_type"),
        source.metadata(reader, "tokenizer.ggml.merges"),
    )
    write_tokenizer(content, output / "tokenizer.json")


def build_skip(output: Path, name: str, kept: list[int]) -> None:
    """Writes a graph of the kept layers; its weights are those of the target."""
    config, _, _ = source.load()
    tensors = initialisers(output / "target.onnx")
    facts = {"source": source.PACKAGE, "source_sha256": source.SHA256}
    write_graph(build_decoder(config, kept, tensors, facts), output / f"{name}.onnx")


def parse_layers(text: str, layers: int) -> list[int]:
    """`0-4,7,9` as a list."""
    kept: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        kept.extend(range(int(first), int(last or first) + 1))
    wrong = [layer for layer in kept if layer >= layers]
    if wrong:
        raise SystemExit(f"--keep: layer {wrong[0]} does not exist; the target has layers 0 to {layers - 1}")
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--skip", type=int, choices=sorted(SKIPPED), help="layers that the draft keeps")
    parser.add_argument("--keep", help="layers to keep, such as 0-11,18-29; writes keep.onnx")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    if arguments.keep:
        build_skip(arguments.output, "keep", parse_layers(arguments.keep, 30))
    elif arguments.skip:
        kept = [layer for layer in range(30) if layer not in SKIPPED[arguments.skip]]
        build_skip(arguments.output, f"skip-{arguments.skip}", kept)
    else:
        build_target(arguments.output)


if __name__ == "__main__":
    main()

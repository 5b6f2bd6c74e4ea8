"""The distilled draft: from a checkpoint to committed weights, from those to a graph.

Matrices are committed as int8 with one float16 scale for each group of 64 inputs
of an output row: value = int8 * scale. Gains are float32.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

import source_smollm2 as source
from decoder_graph import build_decoder, weight_names
from weight_files import initialisers, write_graph, write_weights

GROUP = 64
COMMITTED = Path(__file__).parent / "draft" / "draft.safetensors"


def quantise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int8 [outputs, inputs], float16 scales [outputs, inputs / GROUP])."""
    groups = matrix.reshape(len(matrix), -1, GROUP).astype(np.float32)
    scales = (np.abs(groups).max(-1) / 127).astype(np.float16)
    scales = np.maximum(scales, np.float16(6e-8))
    whole = np.rint(groups / scales[..., None].astype(np.float32)).clip(-127, 127)
    return whole.astype(np.int8).reshape(matrix.shape), scales


def dequantise(whole: np.ndarray, scales: np.ndarray) -> np.ndarray:
    groups = whole.reshape(len(whole), -1, GROUP).astype(np.float32)
    return (groups * scales[..., None].astype(np.float32)).reshape(whole.shape)


def commit(checkpoint: Path, path: Path) -> None:
    """Writes the committed weights from a checkpoint of distil.py."""
    import torch

    state = torch.load(checkpoint, map_location="cpu")["model"]
    tensors: dict[str, np.ndarray] = {}
    for name, value in state.items():
        array = value.float().numpy()
        if array.ndim == 2:
            tensors[name], tensors[f"{name}.scales"] = quantise(array)
        else:
            tensors[name] = array
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    save_file(tensors, temporary, metadata={"format": f"int8, one float16 scale for each {GROUP} inputs of a row"})
    os.replace(temporary, path)
    print(f"{path.name}: {path.stat().st_size} bytes, sha256 {source.sha256(path)}")


def build(output: Path, committed: Path) -> None:
    """Writes draft.bin and draft.onnx; the embedding is that of the target."""
    if not committed.exists():
        raise SystemExit(f"{committed.name}: missing; check out models/draft or train with models/build distil")
    stored = load_file(committed)
    weights = {}
    for name, value in stored.items():
        if value.dtype == np.int8:
            # The graph multiplies from the right: [inputs, outputs].
            value = dequantise(value, stored[f"{name}.scales"]).T
        if not name.endswith(".scales"):
            weights[name] = value
    count = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
    config, _, _ = source.load()
    config = dataclasses.replace(config, layers=count)
    names = [name for name in weight_names(config, range(count)) if name != "embedding"]
    tensors = write_weights(output / "draft.bin", {name: weights[name] for name in names})
    tensors["embedding"] = initialisers(output / "target.onnx")["embedding"]
    facts = {"source": "distilled from " + source.PACKAGE, "source_sha256": source.sha256(committed)}
    write_graph(build_decoder(config, range(count), tensors, facts), output / "draft.onnx")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="build the graph into this folder")
    parser.add_argument("--commit", type=Path, help="checkpoint to turn into the committed weights")
    parser.add_argument("--weights", type=Path, default=COMMITTED)
    arguments = parser.parse_args()
    if arguments.commit:
        commit(arguments.commit, arguments.weights)
    if arguments.output:
        build(arguments.output, arguments.weights)


if __name__ == "__main__":
    main()

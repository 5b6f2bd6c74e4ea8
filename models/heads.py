"""The draft's heads: from checkpoints to committed weights, from those to a graph.

`draft-heads.onnx` is the draft's graph with two outputs more, `acceptance` and `overlap`;
its rows are those of `draft.onnx`, whose weights it shares. Matrices are committed as
the draft's are, in int8; what is left in float32.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import draft
import source_smollm2 as source
from decoder_graph import HeadConfig, build_decoder
from weight_files import initialisers, write_graph, write_weights

COMMITTED = Path(__file__).parent / "heads" / "heads.safetensors"
NAMES = ("acceptance", "overlap")


def commit(checkpoints: dict[str, Path], path: Path) -> None:
    """Writes the committed weights from checkpoints of train_heads.py, one a head."""
    import torch

    tensors: dict[str, np.ndarray] = {}
    for head, checkpoint in checkpoints.items():
        for name, value in torch.load(checkpoint, map_location="cpu").items():
            array = value.float().numpy()
            name = f"heads.{head}.{name}"
            if ".output." in name:
                # Of two logits, the difference decides.
                tensors[name] = array[0] - array[1] if array.ndim == 1 else array[:1] - array[1:]
                tensors[name] = tensors[name].reshape(array.shape[1:] or (1,))
            elif array.ndim == 2:
                tensors[name], tensors[f"{name}.scales"] = draft.quantise(array)
            else:
                tensors[name] = array
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    facts = {
        "format": f"int8, one float16 scale for each {draft.GROUP} inputs of a row",
        "draft_sha256": source.sha256(draft.COMMITTED),
        "heads": json.dumps({head: checkpoint.stem for head, checkpoint in checkpoints.items()}),
    }
    save_file(tensors, temporary, metadata=facts)
    os.replace(temporary, path)
    print(f"{path.name}: {path.stat().st_size} bytes, sha256 {source.sha256(path)}")


def load(path: Path, width: int) -> tuple[list[HeadConfig], dict[str, np.ndarray], dict[str, str]]:
    """Shapes, float32 weights as [inputs, outputs], and what the file says of itself."""
    if not path.exists():
        raise SystemExit(f"{path.name}: missing; check out models/heads or train with models/build train-heads")
    stored = load_file(path)
    with safe_open(path, "numpy") as file:
        facts = file.metadata()
    weights = {}
    for name, value in stored.items():
        if value.dtype == np.int8:
            value = draft.dequantise(value, stored[f"{name}.scales"]).T
        if name.endswith("output.weight"):
            value = value[:, None]
        if not name.endswith(".scales"):
            weights[name] = value
    heads = []
    for name in NAMES:
        depth = sum(key.startswith(f"heads.{name}.blocks.") and key.endswith(".weight") for key in weights)
        if (output := weights.get(f"heads.{name}.output.weight")) is not None:
            heads.append(HeadConfig(name, depth, row=len(output) > width))
    return heads, weights, facts


def build(output: Path, committed: Path) -> None:
    """Writes heads.bin and draft-heads.onnx beside draft.onnx."""
    config, _, _ = source.load()
    heads, weights, facts = load(committed, config.width)
    if facts["draft_sha256"] != source.sha256(draft.COMMITTED):
        raise SystemExit(f"{committed.name}: was trained on another draft; train it again with models/build train-heads")
    tensors = initialisers(output / "draft.onnx")
    count = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("layers."))
    tensors |= write_weights(output / "heads.bin", {name: weights[name] for head in heads for name in head.weight_names()})
    metadata = {
        "source": "distilled from " + source.PACKAGE, "source_sha256": source.sha256(draft.COMMITTED),
        "heads": facts["heads"], "heads_sha256": source.sha256(committed), "heads_temperature": "1",
    }
    config = dataclasses.replace(config, layers=count)
    write_graph(build_decoder(config, range(count), tensors, metadata, heads), output / "draft-heads.onnx")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="build the graph into this folder")
    parser.add_argument("--acceptance", type=Path, help="checkpoint of the head that is committed")
    parser.add_argument("--overlap", type=Path, help="checkpoint of the other")
    parser.add_argument("--weights", type=Path, default=COMMITTED)
    arguments = parser.parse_args()
    chosen = {name: getattr(arguments, name) for name in NAMES if getattr(arguments, name)}
    if chosen:
        commit(chosen, arguments.weights)
    if arguments.output:
        build(arguments.output, arguments.weights)


if __name__ == "__main__":
    main()

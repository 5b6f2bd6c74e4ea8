"""A ladder of drafts for the target, made of the target's own weights: requantised, or cut.

Nothing is trained and nothing is drawn, so that the same file gives the same drafts. The
quantised matrices stay quantised in the draft's file; its embedding, its gains and the
matrices that are not quantised are those of the target's files.

A group of inputs of one output has a scale and a zero, for b bits

    scale = (max - min) / (2^b - 1),   zero = round(-min / scale),   level = round(x / scale) + zero

with max >= 0 >= min, levels cut to 0..2^b - 1 and an entry of (level - zero) * scale. Levels
take 4 bits each whatever b is, since that is what ONNX Runtime multiplies by.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import source_smollm2 as source
from decoder_graph import QuantisedMatrix, build_decoder
from weight_files import initialisers, write_graph, write_weights

ATTENTION = ("query", "key", "value", "attention_output")
FEED_FORWARD = ("gate", "up", "down")
LAYERS = range(30)


@dataclass(frozen=True)
class Rung:
    """A draft: which of the target's matrices have how many bits, and which layers are left out."""

    bits: int = 0
    # Inputs that share a scale and a zero.
    group: int = 0
    parts: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()

    def kept(self) -> list[int]:
        return [layer for layer in LAYERS if layer not in self.skipped]

    def is_quantised(self, layer: int, part: str) -> bool:
        return layer in self.layers and part in self.parts


ALL = ATTENTION + FEED_FORWARD
# From the worst draft to the best. The layers left out are those that skip_search.py found.
RUNGS = {
    "q3-64": Rung(3, 64, ALL, tuple(LAYERS)),
    "q3": Rung(3, 32, ALL, tuple(LAYERS)),
    "skip-25": Rung(skipped=(4, 5, 14, 17, 26)),
    "skip-27": Rung(skipped=(4, 5, 14)),
    "q4-64": Rung(4, 64, ALL, tuple(LAYERS)),
    "q3-attention": Rung(3, 32, ATTENTION, tuple(LAYERS)),
    "q3-middle": Rung(3, 32, ALL, tuple(range(10, 20))),
    "skip-29": Rung(skipped=(5,)),
}


def quantise(matrix: np.ndarray, bits: int, group: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels [outputs, groups, group], float32 scales and levels of zero [outputs, groups] of
    [inputs, outputs]."""
    groups = matrix.T.reshape(matrix.shape[1], -1, group).astype(np.float64)
    top = 2**bits - 1
    low = np.minimum(groups.min(-1), 0.0)
    high = np.maximum(groups.max(-1), 0.0)
    scales = ((high - low) / top).astype(np.float32)
    scales[scales == 0.0] = 1.0
    wide = scales.astype(np.float64)
    zeros = np.rint(-low / wide).clip(0, top)
    levels = (np.rint(groups / wide[..., None]) + zeros[..., None]).clip(0, top)
    return levels.astype(np.uint8), scales, zeros.astype(np.uint8)


def halves(values: np.ndarray) -> np.ndarray:
    """4-bit values of the last axis, two a byte, the first in the low half."""
    if values.shape[-1] % 2:
        values = np.concatenate([values, np.zeros_like(values[..., :1])], -1)
    return values[..., 0::2] | values[..., 1::2] << 4


def build(output: Path, name: str, rung: Rung, weights: dict[str, np.ndarray], config) -> None:
    """Writes NAME.onnx and, of a quantised draft, NAME.bin."""
    tensors = initialisers(output / "target.onnx")
    kept = rung.kept()
    stored: dict[str, np.ndarray] = {}
    shapes: dict[str, tuple[int, int]] = {}
    for layer in kept:
        for part in filter(lambda part: rung.is_quantised(layer, part), rung.parts):
            matrix = f"layers.{layer}.{part}"
            levels, scales, zeros = quantise(weights[matrix], rung.bits, rung.group)
            shapes[matrix] = weights[matrix].shape
            stored[f"{matrix}.slots"] = halves(levels)
            stored[f"{matrix}.scales"] = scales.reshape(-1)
            stored[f"{matrix}.zeros"] = halves(zeros).reshape(-1)
    if stored:
        own = write_weights(output / f"{name}.bin", stored)
        for matrix, (inputs, outputs) in shapes.items():
            parts = (own[f"{matrix}.{kind}"] for kind in ("slots", "scales", "zeros"))
            tensors[matrix] = QuantisedMatrix(inputs, outputs, rung.group, *parts)
    facts = {"source": source.PACKAGE, "source_sha256": source.SHA256, "rung": name}
    write_graph(build_decoder(config, kept, tensors, facts), output / f"{name}.onnx")
    print(f"{name}: {len(kept)} layers, {sum(value.nbytes for value in stored.values())} bytes of its own", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--rungs", default=",".join(RUNGS), help="which of them")
    arguments = parser.parse_args()
    config, weights, _ = source.load()
    for name in arguments.rungs.split(","):
        if name not in RUNGS:
            raise SystemExit(f"--rungs: {name} is unknown; there are {', '.join(RUNGS)}")
        build(arguments.output, name, RUNGS[name], weights, config)


if __name__ == "__main__":
    main()

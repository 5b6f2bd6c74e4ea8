"""Chooses the layers that a layer-skipping draft leaves out.

Greedy: again and again, the layer whose removal costs the least overlap
(mean over positions of sum_i min(p_i, q_i), T = 1) is removed. Uses a little of
the training text, never the held-out text.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import source_smollm2 as source
from llama_torch import Decoder, rms_norm, rope


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shard", type=Path, required=True)
    parser.add_argument("--sequences", type=int, default=6)
    parser.add_argument("--stride", type=int, default=4, help="every n-th position of the answers is compared")
    parser.add_argument("--remove", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)

    config, weights, _ = source.load()
    model = Decoder(config, config.layers)
    model.load(weights, list(range(config.layers)))
    model = model.to(torch.bfloat16)
    embedding = torch.from_numpy(weights["embedding"]).to(torch.bfloat16)
    shard = np.load(arguments.shard)
    lengths = shard["prompt_lengths"] + shard["answer_lengths"]
    pieces = np.split(shard["tokens"], np.cumsum(lengths)[:-1])[: arguments.sequences]
    prompts = shard["prompt_lengths"]

    def states(start: list[torch.Tensor], kept: list[int]) -> list[list[torch.Tensor]]:
        """Hidden states of all sequences before and after each of the kept layers."""
        found = [start]
        for layer in kept:
            found.append([
                model.layers[layer](value, *rope(config, torch.arange(value.shape[1]), torch.bfloat16))
                for value in found[-1]
            ])
        return found

    def rows(final: list[torch.Tensor]) -> torch.Tensor:
        """Probabilities at the compared positions."""
        compared = [v[0, int(prompt) - 1 :: arguments.stride] for v, prompt in zip(final, prompts)]
        normed = rms_norm(torch.cat(compared), model.output_norm, config.norm_epsilon)
        return torch.softmax(F.linear(normed.to(torch.bfloat16), embedding).float(), -1)

    start = [F.embedding(torch.from_numpy(piece[:-1]).long()[None], embedding).float() for piece in pieces]
    kept = list(range(config.layers))
    p = rows(states(start, kept)[-1])
    print(f"{len(p)} positions", flush=True)
    while len(kept) > config.layers - arguments.remove:
        overlap = {}
        before = states(start, kept)
        for index, layer in enumerate(kept):
            q = rows(states(before[index], kept[index + 1 :])[-1])
            overlap[layer] = float(torch.minimum(p, q).sum(-1).mean())
        worst = max(overlap, key=overlap.__getitem__)
        kept.remove(worst)
        removed = sorted(set(range(config.layers)) - set(kept))
        print(f"{len(kept)} layers: overlap {overlap[worst]:.3f} without {removed}", flush=True)


if __name__ == "__main__":
    main()

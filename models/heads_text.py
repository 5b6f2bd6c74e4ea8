"""Samples the text of heads.py from the target, with the hidden states that its drafters read.

`train-N.npz` hold answers to the prompts of prompts/distil.json, `held-out.npz` answers to the 40
of prompts/capture.jsonl, all at T = 1 in float32. For every token that the target read a file has
the inputs of three of its layers, each divided by its root mean square, and its final state: in
float16 for training, in float32 where rows are logged. A file that exists is not made again.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

import source_smollm2 as source
from chat import END, chat, held_out_prompts, training_prompts
from llama_torch import Decoder, sample

SEED = 19
#: Layers whose inputs are kept: low, middle and high, as EAGLE-3 takes them.
TAPS = (2, 15, 27)
BATCH = 128
#: The longest quarter of the prompts drawn is left out: long prompts cost the most and teach the least.
DRAWN, USED = 512, 384
TRAIN_TOKENS = 96
HELD_OUT_TOKENS = 48


def write(path: Path, prompts: list[list[int]], answers: list[tuple[list[int], torch.Tensor]]) -> None:
    """One file of sequences, under a temporary name first."""
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as file:
        np.savez(
            file,
            tokens=np.concatenate([p + a for p, (a, _) in zip(prompts, answers)]).astype(np.int32),
            prompt_lengths=np.array([len(p) for p in prompts], np.int32),
            answer_lengths=np.array([len(a) for a, _ in answers], np.int32),
            states=torch.cat([states for _, states in answers]).numpy(),
        )
    os.replace(temporary, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(arguments.threads)

    config, weights, _ = source.load()
    model = Decoder(config, config.layers)
    model.load(weights, list(range(config.layers)))
    model.eval()
    embedding = torch.from_numpy(weights["embedding"])
    tokenizer = Tokenizer.from_file(str(Path(__file__).parent / "tokenizer.json"))

    def answers(texts: list[str], tokens: int, seed: int, stored: torch.dtype):
        encoded = [tokenizer.encode(chat(text)).ids for text in texts]
        generator = torch.Generator().manual_seed(seed)
        return encoded, sample(
            model, embedding, encoded, torch.ones(len(encoded)), tokens, END, generator, TAPS, stored
        )

    path = arguments.output / "held-out.npz"
    if not path.exists():
        texts = [prompt for _, prompt in held_out_prompts()]
        write(path, *answers(texts, HELD_OUT_TOKENS, SEED, torch.float32))
    # Prompts of similar length together, so that a batch has little padding.
    texts = training_prompts(DRAWN, SEED)
    texts.sort(key=lambda text: len(tokenizer.encode(text).ids))
    for first in range(0, USED, BATCH):
        path = arguments.output / f"train-{first // BATCH}.npz"
        if path.exists():
            continue
        start = time.monotonic()
        encoded, found = answers(texts[first : first + BATCH], TRAIN_TOKENS, SEED + 1 + first, torch.float16)
        write(path, encoded, found)
        count = sum(len(a) for a, _ in found)
        print(f"{path.name}: {count} tokens of answers, {count / (time.monotonic() - start):.0f} a second", flush=True)


if __name__ == "__main__":
    main()

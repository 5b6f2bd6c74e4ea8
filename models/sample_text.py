"""Samples the training text of the draft from the target, shard by shard.

Each shard holds the tokens of its sequences (prompt and answer) and, for every
token of the answer, the target's final hidden state in float16, from which its
logits follow through the shared head. A shard that exists is not made again.
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
from chat import END, chat, training_prompts
from llama_torch import Decoder, sample

SEED = 7
NEW_TOKENS = 256
BATCH = 256
# Every third sequence is sampled at the lower temperature.
TEMPERATURES = (1.0, 1.0, 0.7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=24)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(arguments.threads)

    config, weights, _ = source.load()
    model = Decoder(config, config.layers)
    model.load(weights, list(range(config.layers)))
    model = model.to(torch.bfloat16).eval()
    embedding = torch.from_numpy(weights["embedding"]).to(torch.bfloat16)
    tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
    prompts = training_prompts(BATCH * 100, SEED)

    for shard in range(arguments.first, arguments.shards):
        path = arguments.output / f"shard-{shard:03}.npz"
        if path.exists():
            continue
        start = time.monotonic()
        texts = prompts[shard * BATCH : (shard + 1) * BATCH]
        encoded = [tokenizer.encode(chat(text)).ids for text in texts]
        temperature = torch.tensor([TEMPERATURES[i % len(TEMPERATURES)] for i in range(len(encoded))])
        generator = torch.Generator().manual_seed(SEED * 1000 + shard)
        answers = sample(model, embedding, encoded, temperature, NEW_TOKENS, END, generator)
        temporary = path.with_suffix(".part")
        with temporary.open("wb") as file:
            np.savez(
                file,
                tokens=np.concatenate([p + a for p, (a, _) in zip(encoded, answers)]).astype(np.int32),
                prompt_lengths=np.array([len(p) for p in encoded], np.int32),
                answer_lengths=np.array([len(a) for a, _ in answers], np.int32),
                temperatures=temperature.numpy(),
                hidden=torch.cat([h for _, h in answers]).numpy(),
            )
        os.replace(temporary, path)
        count = sum(len(a) for a, _ in answers)
        seconds = time.monotonic() - start
        print(f"{path.name}: {count} tokens, {count / seconds:.0f} tokens/s", flush=True)
        if shard == arguments.first:
            for index in range(2):
                print(texts[index], "->", tokenizer.decode(answers[index][0])[:300], flush=True)


if __name__ == "__main__":
    main()

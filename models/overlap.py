"""Mean overlap sum_i min(p_i, q_i) of target and drafts on held-out text.

The target answers the prompts of prompts/capture.jsonl by sampling at temperature
T; at every position of the answers the rows of target and drafts at the same T
are compared. The 95% interval comes from the means of the prompts (clusters):
ratio estimate, Student's t.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from chat import END, chat, held_out_prompts
from session import Session, pad_left

SEED = 3
BATCH = 10


def softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    scaled = logits.astype(np.float64) / temperature
    rows = np.exp(scaled - scaled.max(-1, keepdims=True))
    return rows / rows.sum(-1, keepdims=True)


def answers(
    target: Session, prompts: list[list[int]], temperature: float, length: int, random: np.random.Generator
) -> list[list[int]]:
    """One sampled answer for each prompt, batch by batch."""
    found: list[list[int]] = []
    for start in range(0, len(prompts), BATCH):
        part = prompts[start : start + BATCH]
        ids, mask = pad_left(part)
        cache = target.empty_cache(len(part))
        drawn: list[list[int]] = [[] for _ in part]
        open_rows = np.ones(len(part), bool)
        for _ in range(length):
            logits, cache = target.run(ids, mask, cache)
            mass = np.cumsum(softmax(logits[:, -1], temperature), axis=1)
            points = random.random(len(part)) * mass[:, -1]
            tokens = np.array([np.searchsorted(m, x, side="right") for m, x in zip(mass, points)])
            for row in np.flatnonzero(open_rows):
                drawn[row].append(int(tokens[row]))
            open_rows &= tokens != END
            if not open_rows.any():
                break
            ids = tokens[:, None]
            mask = np.concatenate([mask, np.ones((len(part), 1), mask.dtype)], 1)
        found += drawn
        print(f"T = {temperature}: {len(found)} of {len(prompts)} answers", flush=True)
    return found


def interval(sums: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """(mean over positions, half width of the 95% interval clustered by prompt)."""
    clusters = len(sums)
    mean = sums.sum() / counts.sum()
    residuals = sums - mean * counts
    variance = clusters / (clusters - 1) * (residuals**2).sum() / counts.sum() ** 2
    # Student's t for 0.975: 1.96 plus the first two terms of its expansion.
    freedom = clusters - 1
    t = 1.959964 + 2.372272 / freedom + 2.822 / freedom**2
    return float(mean), t * math.sqrt(variance)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder of the built graphs")
    parser.add_argument("--drafts", default="draft,skip-23,skip-25")
    parser.add_argument("--temperatures", default="1.0,0.7")
    parser.add_argument("--length", type=int, default=128, help="longest answer in tokens")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--table", type=Path, help="write the results as JSON")
    a = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(a.output / "tokenizer.json"))
    prompts = [tokenizer.encode(chat(text)).ids for _, text in held_out_prompts()]
    target = Session(a.output / "target.onnx", a.threads)
    drafts = {name: Session(a.output / f"{name}.onnx", a.threads) for name in a.drafts.split(",")}
    results = []
    for temperature in map(float, a.temperatures.split(",")):
        drawn = answers(target, prompts, temperature, a.length, np.random.default_rng(SEED))
        sums = {name: [] for name in drafts}
        counts = []
        for prompt, answer in zip(prompts, drawn):
            tokens = (prompt + answer)[:-1]
            first = len(prompt) - 1
            p = softmax(target.whole(tokens)[first:], temperature)
            counts.append(len(p))
            for name, session in drafts.items():
                q = softmax(session.whole(tokens)[first:], temperature)
                sums[name].append(np.minimum(p, q).sum())
        for name in drafts:
            mean, half = interval(np.array(sums[name]), np.array(counts))
            results.append(
                {"draft": name, "temperature": temperature, "overlap": round(mean, 4), "half_width": round(half, 4),
                 "positions": sum(counts), "prompts": len(counts)}
            )
            print(f"{name}, T = {temperature}: {mean:.4f} ± {half:.4f} ({sum(counts)} positions, {len(counts)} prompts)",
                  flush=True)
    if a.table:
        temporary = a.table.with_name(a.table.name + ".part")
        temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        os.replace(temporary, a.table)


if __name__ == "__main__":
    main()

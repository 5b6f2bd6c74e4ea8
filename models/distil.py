"""Trains the draft: a few Llama layers under the target's frozen embedding and head.

The target's rows are never recomputed: its final hidden states lie in the shards
of `sample_text.py`, and the shared head turns them into logits. For most of the
training the softmax is restricted to the tokens that carry nearly all of the
target's mass; the last part uses the whole vocabulary.

Loss of one position, with p the target's row and q the draft's:

    KL(p || q) + w * TV(p, q) + r * (1 - cos(h_p, h_q))

TV is 1 minus the overlap sum_i min(p_i, q_i); h are the normed hidden states.
Workers are processes with one thread each, which average their gradients; each
updates its share of the matrices. A checkpoint is written every few minutes, and
`--resume` continues from it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import Tensor

import source_smollm2 as source
from llama_torch import MATRICES, Decoder

SEED = 11
CHUNK = 256


@dataclass
class Sequence:
    tokens: Tensor  # int64 [length]
    prompt: int  # tokens before the answer
    hidden: Tensor  # float16 [answer, width]


def read_shards(folder: Path) -> tuple[list[Sequence], list[Sequence]]:
    """(training, validation); the first 24 sequences of shard 0 validate."""
    train: list[Sequence] = []
    validation: list[Sequence] = []
    for path in sorted(folder.glob("shard-*.npz")):
        shard = np.load(path)
        prompts, answers = shard["prompt_lengths"], shard["answer_lengths"]
        tokens = np.split(shard["tokens"].astype(np.int64), np.cumsum(prompts + answers)[:-1])
        hidden = np.split(shard["hidden"], np.cumsum(answers)[:-1])
        found = [
            Sequence(torch.from_numpy(t), int(p), torch.from_numpy(h))
            for t, p, h in zip(tokens, prompts, hidden)
        ]
        if path.stem == "shard-000":
            validation, found = found[:24], found[24:]
        train += found
    return train, validation


def batches(data: list[Sequence], tokens: int, workers: int, random: np.random.Generator) -> list[list[Sequence]]:
    """One epoch: sequences of similar length together, in random order, equal count for all workers."""
    order = sorted(random.permutation(len(data)), key=lambda i: len(data[i].tokens) // 16)
    found: list[list[Sequence]] = [[]]
    for index in order:
        longest = max([len(data[index].tokens), *(len(s.tokens) for s in found[-1])])
        if longest * (len(found[-1]) + 1) > tokens:
            found.append([])
        found[-1].append(data[index])
    whole = [found[i] for i in random.permutation(len(found))]
    return whole[: len(whole) // workers * workers]


def collate(batch: list[Sequence]) -> tuple[Tensor, Tensor, Tensor]:
    """(ids padded at the end, flat indices of the answers' rows, target hidden states)."""
    longest = max(len(s.tokens) for s in batch) - 1
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    places = []
    for row, s in enumerate(batch):
        ids[row, : len(s.tokens) - 1] = s.tokens[:-1]
        places.append(row * longest + torch.arange(s.prompt - 1, len(s.tokens) - 1))
    return ids, torch.cat(places), torch.cat([s.hidden for s in batch])


class RowLoss(torch.autograd.Function):
    """Sum over positions of KL(p || q) + weight * TV(p, q), gradient computed on the way."""

    @staticmethod
    def forward(context, hidden: Tensor, target: Tensor, head: Tensor, weight: float) -> tuple[Tensor, Tensor]:
        gradient = torch.empty_like(hidden)
        kl, tv = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        for start in range(0, len(hidden), CHUNK):
            part = slice(start, start + CHUNK)
            z = (hidden[part].to(head.dtype) @ head.T).float()
            t = (target[part].to(head.dtype) @ head.T).float()
            log_q = torch.log_softmax(z, -1)
            log_p = torch.log_softmax(t, -1)
            p = log_p.exp()
            kl += (p * log_p.sub_(log_q)).sum()
            q = log_q.exp_()
            excess = q - p
            sign = torch.sign(excess).mul_(0.5)
            tv += (excess * sign).sum()
            slope = (q * sign).sum(-1, keepdim=True)
            excess += sign.sub_(slope).mul_(q).mul_(weight)
            gradient[part] = (excess.to(head.dtype) @ head).to(gradient.dtype)
        context.save_for_backward(gradient)
        context.mark_non_differentiable(tv)
        return kl + weight * tv, tv

    @staticmethod
    def backward(context, upstream: Tensor, _: Tensor):
        (gradient,) = context.saved_tensors
        return gradient * upstream.to(gradient.dtype), None, None, None


def frequent_tokens(data: list[Sequence], embedding: Tensor, count: int, workers: int) -> tuple[Tensor, float]:
    """The tokens with the most target mass on a sample of positions, and their share of it."""
    pool = torch.cat([s.hidden for s in data[:: max(1, len(data) // 400)]])[::5]
    mass = torch.zeros(len(embedding))
    for rows in pool.split(256):
        mass += torch.softmax((rows.to(embedding.dtype) @ embedding.T).float(), -1).sum(0)
    # Every token that occurs belongs to the set as well.
    seen = torch.bincount(torch.cat([s.tokens for s in data]), minlength=len(embedding))
    chosen = torch.topk(mass + 1e-3 * seen, count).indices.sort().values
    return chosen, float(mass[chosen].sum() / mass.sum())


def overlap(model: Decoder, embedding32: Tensor, embedding: Tensor, data: list[Sequence]) -> float:
    """Mean overlap over the whole vocabulary at T = 1 (bfloat16 head)."""
    total, count = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(data), 8):
            ids, places, target = collate(data[start : start + 8])
            with torch.autocast("cpu", torch.bfloat16):
                hidden = model(embedding32[ids]).flatten(0, 1)[places]
            for h, t in zip(hidden.split(128), target.split(128)):
                q = torch.softmax((h.to(embedding.dtype) @ embedding.T).float(), -1)
                p = torch.softmax((t.to(embedding.dtype) @ embedding.T).float(), -1)
                total += float(torch.minimum(p, q).sum())
                count += len(h)
    return total / count


def optimisers(model: Decoder, name: str, rate: float, rank: int, workers: int) -> tuple[list, list[Tensor]]:
    """Optimisers of this worker's share, and the parameters that it owns."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    own_matrices, own_vectors = matrices[rank::workers], vectors[rank::workers]
    betas = (0.9, 0.98)
    small = torch.optim.AdamW(own_vectors, lr=rate, betas=betas, weight_decay=0.0)
    if name == "muon":
        large = torch.optim.Muon(
            own_matrices, lr=rate, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw"
        )
    else:
        large = torch.optim.AdamW(own_matrices, lr=rate, betas=betas, weight_decay=0.01)
    return [large, small], own_matrices + own_vectors


def worker(rank: int, a: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port))
    dist.init_process_group("gloo", rank=rank, world_size=a.workers)
    config, weights, _ = source.load()
    embedding32 = torch.from_numpy(weights["embedding"])
    embedding = embedding32.to(torch.bfloat16)
    model = Decoder(config, len(a.sources))
    model.load(weights, a.sources)
    del weights
    train, validation = read_shards(a.text)
    distinct = sum(len(s.hidden) for s in train)
    chosen, share = frequent_tokens(train, embedding, a.head, a.workers)
    head = embedding[chosen].contiguous()
    parameters = list(model.parameters())
    optimiser, owned = optimisers(model, a.optimiser, a.rate, rank, a.workers)
    owned_ids = {id(p) for p in owned}

    progress, step, used, log = 0.0, 0, 0, []
    spent = 0.0
    checkpoint = a.output / "checkpoint.pt"
    if a.resume and checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        spent, step, used, log = state["seconds"], state["step"], state["positions"], state["log"]
        saved = torch.load(a.output / f"optimiser-{rank}.pt")
        for o, s in zip(optimiser, saved):
            o.load_state_dict(s)

    def say(text: str) -> None:
        if rank == 0:
            print(text, flush=True)

    say(f"{len(train)} sequences, {distinct} target positions; head of {a.head} tokens has {share:.4f} of the mass")
    say(f"step {step}: validation overlap {overlap(model, embedding32, embedding, validation):.4f}")
    random = np.random.default_rng(SEED + step)
    queue: list[list[Sequence]] = []
    start = time.monotonic() - spent
    saved_at = start + spent
    shown = [0.0, 0.0, 0]
    shown_at, epochs, full = time.monotonic(), used / distinct, False
    while True:
        # Worker 0 keeps the time, so that all workers agree.
        clock = torch.tensor([time.monotonic() - start], dtype=torch.float64)
        dist.broadcast(clock, 0)
        progress = float(clock) / a.seconds
        if progress >= 1.0 or (a.steps and step >= a.steps):
            break
        if progress > 1.0 - a.full_part and not full:
            full, head = True, embedding
            say("whole vocabulary from here on")
        rate = a.rate * min(1.0, (step + 1) / 30) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        for o in optimiser:
            for g in o.param_groups:
                g["lr"] = rate
        for p in parameters:
            p.grad = None
        positions = 0
        for _ in range(a.accumulate):
            if not queue:
                queue = batches(train, a.tokens, a.workers, random)
            mine, queue = queue[rank], queue[a.workers :]
            ids, places, target = collate(mine)
            with torch.autocast("cpu", torch.bfloat16):
                hidden = model(embedding32[ids])
            hidden = hidden.flatten(0, 1)[places]
            loss, tv = RowLoss.apply(hidden, target, head, a.tv)
            if a.regression:
                near = torch.cosine_similarity(hidden.float(), target.float(), -1)
                loss = loss + a.regression * (1 - near).sum()
            loss.backward()
            shown[0] += float(loss.detach())
            shown[1] += float(tv)
            positions += len(places)
        shown[2] += positions
        flat = torch.cat([p.grad.flatten() for p in parameters] + [torch.tensor([float(positions)])])
        dist.all_reduce(flat)
        count = int(flat[-1])
        flat = flat[:-1] / count
        norm = float(flat.norm())
        flat *= min(1.0, a.clip / (norm + 1e-9))
        for p, g in zip(parameters, flat.split([p.numel() for p in parameters])):
            p.grad = g.view_as(p) if id(p) in owned_ids else None
        for o in optimiser:
            o.step()
        with torch.no_grad():
            flat = torch.cat([p.flatten() if id(p) in owned_ids else torch.zeros(p.numel()) for p in parameters])
            dist.all_reduce(flat)
            for p, v in zip(parameters, flat.split([p.numel() for p in parameters])):
                p.copy_(v.view_as(p))
        step, used = step + 1, used + count
        if step % 20 == 0:
            now = time.monotonic()
            pace = shown[2] * a.workers / (now - shown_at)
            say(
                f"step {step} ({progress:.1%}, epoch {used / distinct:.2f}): loss {shown[0] / shown[2]:.4f}, "
                f"overlap {1 - shown[1] / shown[2]:.4f}, |g| {norm:.3f}, rate {rate:.2e}, {pace:.0f} positions/s"
            )
            log.append([step, used, round(now - start), round(shown[0] / shown[2], 4), round(1 - shown[1] / shown[2], 4)])
            shown, shown_at = [0.0, 0.0, 0], now
        stamp = torch.tensor([time.monotonic() - saved_at], dtype=torch.float64)
        dist.broadcast(stamp, 0)
        if float(stamp) > a.save_every:
            saved_at = time.monotonic()
            save(a, rank, model, optimiser, saved_at - start, step, used, log)
            say(f"step {step}: validation overlap {overlap(model, embedding32, embedding, validation):.4f}")
    save(a, rank, model, optimiser, time.monotonic() - start, step, used, log)
    value = overlap(model, embedding32, embedding, validation)
    say(f"step {step}: validation overlap {value:.4f}")
    if rank == 0:
        record = {
            "seed": SEED, "source_layers": a.sources, "sequences": len(train), "distinct_positions": distinct,
            "positions_used": used, "epochs": round(used / distinct, 2), "steps": step,
            "seconds": round(time.monotonic() - start), "workers": a.workers, "optimiser": a.optimiser,
            "rate": a.rate, "tv_weight": a.tv, "regression_weight": a.regression, "head_tokens": a.head,
            "head_mass": round(share, 5), "full_vocabulary_part": a.full_part,
            "tokens_per_batch": a.tokens * a.accumulate * a.workers,
            "validation_overlap": round(value, 4), "torch": torch.__version__, "numpy": np.__version__,
            "curve_columns": ["step", "positions", "seconds", "loss", "overlap"], "curve": log,
        }
        (a.output / "training.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    dist.destroy_process_group()


def save(a, rank, model, optimiser, seconds, step, used, log) -> None:
    """Checkpoint under a temporary name, then renamed."""
    torch.save([o.state_dict() for o in optimiser], a.output / f"optimiser-{rank}.part")
    os.replace(a.output / f"optimiser-{rank}.part", a.output / f"optimiser-{rank}.pt")
    if rank == 0:
        state = {"model": model.state_dict(), "sources": a.sources, "seconds": seconds, "step": step,
                 "positions": used, "log": log}
        torch.save(state, a.output / "checkpoint.part")
        os.replace(a.output / "checkpoint.part", a.output / "checkpoint.pt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="folder of the shards")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--sources", default="0,1,2,29", help="target layers that the draft starts from")
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--steps", type=int, default=0, help="stop after so many steps (0: no limit)")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens of a worker's batch, padding included")
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--optimiser", choices=["adamw", "muon"], default="adamw")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--tv", type=float, default=1.0)
    parser.add_argument("--regression", type=float, default=0.5)
    parser.add_argument("--head", type=int, default=8192)
    parser.add_argument("--full-part", type=float, default=0.1, help="last part of the time on the whole vocabulary")
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--save-every", type=float, default=180)
    parser.add_argument("--port", type=int, default=29571)
    parser.add_argument("--resume", action="store_true")
    a = parser.parse_args()
    a.sources = [int(layer) for layer in a.sources.split(",")]
    a.output.mkdir(parents=True, exist_ok=True)
    if not list(a.text.glob("shard-*.npz")):
        raise SystemExit(f"{a.text}: no shards; run sample_text.py first")
    processes.spawn(worker, args=(a,), nprocs=a.workers)


if __name__ == "__main__":
    main()

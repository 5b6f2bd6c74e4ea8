"""Trains heads on the target's hidden states, each with rows by (start, depth).

`eagle` drafts one token after the other, as EAGLE-3 does: a linear map fuses three hidden states
of the last token that the target has read; one Llama layer reads [feature, embedding of the token
behind it], and its output is the feature of the next depth. In training it reads its own features
at all depths (EAGLE-3's training-time test) and the text's tokens.

`block` predicts all depths in one pass, as MTP modules and DFlash's blocks do, from the same fused
state and a learned vector for each depth: it never sees a token that was drafted in the round.

Start s is the answer's token s; a head knows the target's states up to the token before the last,
and the last token itself, which a verifier has just drawn. Depth j = 0..K-1 is about token s + j.

Both draw from a sub-vocabulary, the tokens with the most target mass on the training text, through
the target's own frozen head. Losses of one row, p the target's over the *whole* vocabulary, q the
head's, 0 outside the sub-vocabulary D:

    kl      -sum_{i in D} p_i ln q_i, the part of KL(p || q) that q decides (the whole is infinite)
    tv      1 - sum_i min(p_i, q_i)
    lk      -ln sum_i min(p_i, q_i)
    alpha   1 - alpha*_2, the most that a lossless verifier can accept of two independent drafts;
            all tokens outside D are one token, which changes nothing, because q is 0 there

Rows of depth j weigh 0.8^j. `eagle` is trained by KL first; from there each loss, KL too, gets the
same steps, data, order of the data and rates. Seeds and schedules count steps, never the clock.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import source_smollm2 as source
from decoder_graph import DecoderConfig
from heads_text import TAPS
from llama_torch import Layer, rms_norm, rope

SEED = 19
DEPTHS = 4
DRAFT_VOCABULARY = 8192
DECAY = 0.8
BATCH, EVERY = 6, 3
VALIDATION = 8
TRUNK, BRANCH, BLOCK = 224, 48, 320
RATE = 3e-3
CHUNK = 384
LOSSES = ("kl", "tv", "lk", "alpha")


@dataclass
class Sequence:
    tokens: Tensor  # int64 [prompt + answer]
    prompt: int
    states: Tensor  # [prompt + answer - 1, taps + 1, width], of every token read
    log_sum: Tensor  # float32 [answer]: ln of the sum of exp over the target's logits

    @property
    def answer(self) -> int:
        return len(self.tokens) - self.prompt


@dataclass
class Target:
    """What is taken from the target, frozen."""

    config: DecoderConfig
    embedding: Tensor
    output_norm: Tensor
    layer: dict[str, np.ndarray]  # the last layer, which the heads start from


@dataclass
class Batch:
    """Prompts are padded on the left and answers on the right, so that answers start together."""

    tokens: Tensor  # [sequences, prompt + answer]
    states: Tensor  # float32 [sequences, prompt + answer, taps + 1, width]
    first: Tensor  # index of the first real token
    answers: Tensor  # length of the answers
    prompt: int
    log_sum: Tensor  # [sequences, answer]
    starts: Tensor  # which tokens of the answers rounds start at

    @property
    def answer(self) -> int:
        return self.tokens.shape[1] - self.prompt


def load_target() -> Target:
    config, weights, _ = source.load()
    last = f"layers.{config.layers - 1}."
    layer = {name.removeprefix(last): value.copy() for name, value in weights.items() if name.startswith(last)}
    return Target(
        config, torch.from_numpy(weights["embedding"]), torch.from_numpy(weights["output_norm"].copy()), layer
    )


def read_text(path: Path, embedding: Tensor) -> tuple[list[Sequence], Tensor]:
    """The sequences of a file of heads_text.py, and the target's mass of each token over them."""
    file = np.load(path)
    prompts, answers = file["prompt_lengths"], file["answer_lengths"]
    tokens = np.split(file["tokens"].astype(np.int64), np.cumsum(prompts + answers)[:-1])
    states = np.split(file["states"], np.cumsum(prompts + answers - 1)[:-1])
    cache = path.with_suffix(".rows.npz")
    if not cache.exists():
        final = torch.from_numpy(np.concatenate([s[p - 1 :, -1] for s, p in zip(states, prompts)]))
        mass, sums = torch.zeros(len(embedding)), []
        for rows in final.split(256):
            logits = rows.float() @ embedding.T
            sums.append(torch.logsumexp(logits, -1))
            mass += (logits - sums[-1][:, None]).exp_().sum(0)
        np.savez(cache, log_sum=torch.cat(sums).numpy(), mass=mass.numpy())
    rows = np.load(cache)
    log_sum = torch.from_numpy(rows["log_sum"]).split(answers.tolist())
    found = [
        Sequence(torch.from_numpy(t), int(p), torch.from_numpy(s), z)
        for t, p, s, z in zip(tokens, prompts, states, log_sum)
    ]
    return found, torch.from_numpy(rows["mass"])


def collate(chosen: list[Sequence], first_start: int = 0, every: int = 1) -> Batch:
    """Rounds start at every so many tokens of the answers."""
    prompt = max(s.prompt for s in chosen)
    answer = max(s.answer for s in chosen)
    size = prompt + answer
    tokens = torch.zeros(len(chosen), size, dtype=torch.long)
    states = torch.zeros(len(chosen), size, *chosen[0].states.shape[1:])
    log_sum = torch.zeros(len(chosen), answer)
    for row, s in enumerate(chosen):
        first = prompt - s.prompt
        tokens[row, first : first + len(s.tokens)] = s.tokens
        states[row, first : first + len(s.states)] = s.states
        log_sum[row, : s.answer] = s.log_sum
    first = torch.tensor([prompt - s.prompt for s in chosen])
    answers = torch.tensor([s.answer for s in chosen])
    return Batch(tokens, states, first, answers, prompt, log_sum, torch.arange(first_start, answer, every))


class Head(nn.Module):
    """One Llama layer on fused hidden states of the target."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        config = target.config
        width, taps = config.width, len(TAPS)
        self.config = config
        # No parameters: the target's, frozen.
        self.embedding = [target.embedding]
        self.fuse = nn.Linear(taps * width, width, bias=False)
        self.join = nn.Linear(2 * width, width, bias=False)
        self.feature_norm = nn.Parameter(torch.full((width,), 20.0))
        self.token_norm = nn.Parameter(torch.ones(width))
        self.layer = Layer(config)
        self.output_norm = nn.Parameter(0.5 * target.output_norm)
        with torch.no_grad():
            # Starts as the target's last layer on its highest tap and the token's embedding.
            self.fuse.weight.mul_(0.1)[:, -width:] += torch.eye(width)
            self.join.weight.mul_(0.1)
            self.join.weight[:, :width] += torch.eye(width)
            self.join.weight[:, width:] += 0.5 * torch.eye(width)
            for name, value in self.layer.named_parameters():
                stored = torch.from_numpy(target.layer[name])
                value.copy_(stored.T if stored.ndim == 2 else stored)

    def joined(self, feature: Tensor, tokens: Tensor) -> Tensor:
        epsilon = self.config.norm_epsilon
        parts = (
            rms_norm(feature, self.feature_norm, epsilon),
            rms_norm(F.embedding(tokens, self.embedding[0]), self.token_norm, epsilon),
        )
        return self.join(torch.cat(parts, -1))

    def context(self, batch: Batch) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor], Tensor]:
        """Inputs of the layer behind every token but the first and the last, their queries, keys
        and values, and what a start may not read, as a bias [sequences, 1, starts, items]."""
        feature = self.fuse(batch.states[:, :-2, :-1].flatten(2))
        inputs = self.joined(feature, batch.tokens[:, 1:-1])
        items = inputs.shape[1]
        positions = torch.arange(items)
        found = self.layer.query_key_value(inputs, *rope(self.config, positions, inputs.dtype))
        # Start s reads the items up to that of token prompt + s - 1, which is item prompt + s - 2.
        last = batch.starts + batch.prompt - 2
        seen = (positions <= last[:, None]) & (positions >= batch.first[:, None, None])
        bias = torch.zeros(seen.shape).masked_fill_(~seen, -1e9)[:, None]
        return inputs, found, bias

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, own: list[tuple[Tensor, Tensor]]
    ) -> Tensor:
        """Each start attends to the context and to its own items of this round, one a depth."""
        group = self.config.heads // self.config.kv_heads
        scores = [query @ key.repeat_interleave(group, 1).transpose(2, 3)]
        scores[0] = scores[0] * self.config.head_dim**-0.5 + bias
        for keys, _ in own:
            near = (query * keys.repeat_interleave(group, 1)).sum(-1, keepdim=True)
            scores.append(near * self.config.head_dim**-0.5)
        weights = torch.softmax(torch.cat(scores, -1), -1)
        items = key.shape[2]
        mixed = weights[..., :items] @ value.repeat_interleave(group, 1)
        for place, (_, values) in enumerate(own):
            mixed = mixed + weights[..., items + place, None] * values.repeat_interleave(group, 1)
        return mixed

    def forward(self, batch: Batch) -> Tensor:
        """Normed features [sequences, starts, DEPTHS, width], from which the target's head makes rows."""
        features = torch.stack(self.features(batch), 2)
        return rms_norm(features, self.output_norm, self.config.norm_epsilon)

    def features(self, batch: Batch) -> list[Tensor]:
        raise NotImplementedError


class Eagle(Head):
    def features(self, batch: Batch) -> list[Tensor]:
        inputs, (query, key, value), bias = self.context(batch)
        there = batch.starts + batch.prompt - 2
        mixed = self.attend(query[:, :, there], key, value, bias, [])
        found = [self.layer.finish(inputs[:, there], mixed)]
        own: list[tuple[Tensor, Tensor]] = []
        for depth in range(1, DEPTHS):
            # The text's token that was drafted at the depth before; past the end any.
            places = (batch.starts + batch.prompt + depth - 1).clamp(max=batch.tokens.shape[1] - 1)
            inputs = self.joined(found[-1], batch.tokens[:, places])
            query, k, v = self.layer.query_key_value(inputs, *rope(self.config, there + depth, inputs.dtype))
            own.append((k, v))
            found.append(self.layer.finish(inputs, self.attend(query, key, value, bias, own)))
        return found


class Block(Head):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.depth = nn.Parameter(0.02 * torch.randn(DEPTHS, target.config.width))

    def features(self, batch: Batch) -> list[Tensor]:
        inputs, (_, key, value), bias = self.context(batch)
        there = batch.starts + batch.prompt - 2
        found = []
        for depth in range(DEPTHS):
            own = inputs[:, there] + self.depth[depth]
            query, _, _ = self.layer.query_key_value(own, *rope(self.config, there + depth, own.dtype))
            found.append(self.layer.finish(own, self.attend(query, key, value, bias, [])))
        return found


def best_of_two(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """1 - alpha*_2 of rows, and its gradient by q. All tokens outside the rows are one more, with q = 0."""
    import specgap as sg

    rest = (1 - p.sum(-1, keepdim=True)).clamp_(min=0)
    p = torch.cat([p, rest], -1)
    q = F.pad(q, (0, 1)).requires_grad_()
    with torch.enable_grad():
        lost = 1 - sg.torch.alpha_star(p / p.sum(-1, keepdim=True), q, 2)
        (gradient,) = torch.autograd.grad(lost.sum(), q)
    return lost.detach(), gradient[:, :-1]


def row_loss(name: str, p: Tensor, log_q: Tensor) -> tuple[Tensor, Tensor]:
    """Losses of rows and their gradients by q's logits."""
    q = log_q.exp()
    if name == "kl":
        return -(p * log_q).sum(-1), q * p.sum(-1, keepdim=True) - p
    if name == "alpha":
        value, slope = best_of_two(p, q)
    else:
        overlap = torch.minimum(p, q).sum(-1)
        value, slope = 1 - overlap, -(q < p).float()
        if name == "lk":
            value, slope = -overlap.log(), slope / overlap[:, None]
    return value, q * (slope - (q * slope).sum(-1, keepdim=True))


class RowLoss(torch.autograd.Function):
    """Weighted sum of the losses of rows; the gradient by the features is computed on the way."""

    @staticmethod
    def forward(
        context, features: Tensor, weights: Tensor, rows: Tensor, which: Tensor, head: Tensor, name: str
    ) -> Tensor:
        gradient, total = torch.empty_like(features), 0.0
        for first in range(0, len(features), CHUNK):
            part = slice(first, first + CHUNK)
            log_q = torch.log_softmax(features[part] @ head.T, -1)
            value, slope = row_loss(name, rows[which[part]], log_q)
            total += float((value.double() * weights[part]).sum())
            gradient[part] = (slope * weights[part, None]) @ head
        context.save_for_backward(gradient)
        return torch.tensor(total)

    @staticmethod
    def backward(context, upstream: Tensor):
        (gradient,) = context.saved_tensors
        return gradient * upstream, None, None, None, None, None


def target_rows(batch: Batch, head: Tensor) -> Tensor:
    """p of the sub-vocabulary at every token of the answers, [sequences * answer, tokens]; its sum is below 1."""
    final = batch.states[:, batch.prompt - 1 : -1, -1].flatten(0, 1)
    return (final @ head.T - batch.log_sum.flatten()[:, None]).exp_()


def loss_of(model: Head, batch: Batch, head: Tensor, name: str) -> Tensor:
    """Mean loss of a batch's rows, depth j with weight DECAY^j."""
    places = batch.starts[:, None] + torch.arange(DEPTHS)
    real = places < batch.answers[:, None, None]
    which = (places + batch.answer * torch.arange(len(batch.tokens))[:, None, None])[real]
    weights = (DECAY ** torch.arange(DEPTHS)).expand(real.shape)[real]
    features = model(batch)[real]
    return RowLoss.apply(features, weights / weights.sum(), target_rows(batch, head), which, head, name)


@torch.no_grad()
def expected_length(model: Head, data: list[Sequence], chosen: Tensor, head: Tensor) -> tuple[float, list[float]]:
    """E[tau] on the text, the target's own token included, of drafts that the head samples, and the
    mean overlap at each depth: a_{s,j} = min(1, q_{s,j}(y)/p(y)), products along the text, and the
    mean over starts with DEPTHS tokens left."""
    place = torch.full((int(chosen.max()) + 1,), -1)
    place[chosen] = torch.arange(len(chosen))
    total, count = 0.0, 0
    overlaps, rows = torch.zeros(DEPTHS), torch.zeros(DEPTHS)
    for first in range(0, len(data), BATCH):
        batch = collate(data[first : first + BATCH])
        features, p = model(batch), target_rows(batch, head)
        for row, answer in enumerate(batch.answers.tolist()):
            accepted = torch.zeros(answer, DEPTHS)
            own = p[row * batch.answer : row * batch.answer + answer]
            tokens = batch.tokens[row, batch.prompt : batch.prompt + answer]
            places = torch.where(tokens <= chosen.max(), place[tokens.clamp(max=int(chosen.max()))], -1)
            for depth in range(min(DEPTHS, answer)):
                q = torch.softmax(features[row, : answer - depth, depth] @ head.T, -1)
                overlaps[depth] += torch.minimum(q, own[depth:]).sum()
                rows[depth] += len(q)
                at = places[depth:, None]
                ratio = q.gather(1, at.clamp(min=0)) / own[depth:].gather(1, at.clamp(min=0))
                accepted[: answer - depth, depth] = torch.where(at >= 0, ratio.clamp(max=1), 0)[:, 0]
            whole = accepted[: max(0, answer - DEPTHS + 1)]
            total += float((1 + whole.cumprod(1).sum(1)).sum())
            count += len(whole)
    return total / count, (overlaps / rows).tolist()


def order(data: list[Sequence], seed: int) -> Iterator[list[Sequence]]:
    """Batches of prompts of similar length, in random order, epoch after epoch."""
    random = np.random.default_rng(seed)
    while True:
        near = sorted(random.permutation(len(data)), key=lambda i: data[i].prompt)
        groups = [near[i : i + BATCH] for i in range(0, len(near) - BATCH + 1, BATCH)]
        for group in random.permutation(len(groups)):
            yield [data[i] for i in groups[group]]


def train(
    model: Head, name: str, steps: int, seed: int, decay: bool, train_data: list[Sequence],
    validation: list[Sequence], chosen: Tensor, head: Tensor, warm: int = 10, measure: int = 16,
) -> dict:
    """`steps` steps of AdamW. The rate rises for `warm` steps, and falls as a cosine if it is to decay.
    `measure` steps lie between two measurements."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)
    batches, random = order(train_data, seed), np.random.default_rng(seed)
    curve, losses, used, begin = [], [], 0, time.monotonic()

    def measured(step: int) -> None:
        length, overlaps = expected_length(model, validation, chosen, head)
        mean = sum(losses) / len(losses) if losses else None
        curve.append([step, mean and round(mean, 4), round(length, 4), *(round(o, 4) for o in overlaps)])
        print(f"{type(model).__name__} {name} {curve[-1]} {time.monotonic() - begin:.0f} s", flush=True)
        losses.clear()

    measured(0)
    for step in range(steps):
        share = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)) if decay else 1.0
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / warm) * share
        # Starts side by side tell much the same, so a third of them does.
        batch = collate(next(batches), int(random.integers(EVERY)), EVERY)
        loss = loss_of(model, batch, head, name)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(float(loss.detach()))
        used += int((batch.starts < batch.answers[:, None]).sum())
        if (step + 1) % measure == 0 or step + 1 == steps:
            measured(step + 1)
    return {
        "loss": name, "steps": steps, "starts": used, "seconds": round(time.monotonic() - begin),
        "curve": curve,
    }


def draft_vocabulary(mass: Tensor) -> tuple[Tensor, Tensor]:
    """Ids of the sub-vocabulary in order, and the rank of each by mass (0 the likeliest)."""
    likeliest = torch.topk(mass, DRAFT_VOCABULARY).indices
    rank = torch.empty(DRAFT_VOCABULARY, dtype=torch.long)
    rank[torch.argsort(likeliest).argsort()] = torch.arange(DRAFT_VOCABULARY)
    return likeliest.sort().values, rank


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="folder of heads_text.py")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="*", metavar="RUN", help="runs such as eagle-trunk or eagle-tv; the others are left as they are")
    parser.add_argument("--trunk", type=int, default=TRUNK, help="steps by KL that all runs have in common")
    parser.add_argument("--branch", type=int, default=BRANCH, help="steps by each loss after that")
    parser.add_argument("--block", type=int, default=BLOCK, help="steps of the head that drafts in one pass")
    a = parser.parse_args()
    a.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(a.threads)
    target = load_target()
    data: list[Sequence] = []
    mass = torch.zeros(len(target.embedding))
    for path in sorted(a.text.glob("train-?.npz")):
        found, own = read_text(path, target.embedding)
        data += found
        mass += own
    if not data:
        raise SystemExit(f"{a.text}: no text; run heads_text.py first")
    # Evenly spaced: prompts of all lengths.
    validation = data[len(data) // VALIDATION // 2 :: len(data) // VALIDATION][:VALIDATION]
    train_data = [s for s in data if not any(s is v for v in validation)]
    chosen, rank = draft_vocabulary(mass)
    head = target.embedding[chosen].contiguous()
    np.savez(a.output / "vocabulary.npz", ids=chosen.numpy(), rank=rank.numpy())
    positions = sum(s.answer for s in train_data)
    covered = float(mass[chosen].sum() / mass.sum())
    print(f"{len(train_data)} sequences, {positions} positions; the sub-vocabulary has {covered:.4f} of the mass", flush=True)

    def run(file: str, kind: type[Head], start: str | None, name: str, steps: int, seed: int, decay: bool) -> None:
        path = a.output / f"{file}.pt"
        if path.exists() or (a.only and file not in a.only):
            return
        torch.manual_seed(SEED)
        model = kind(target)
        if start:
            model.load_state_dict(torch.load(a.output / f"{start}.pt"))
        record = train(model, name, steps, seed, decay, train_data, validation, chosen, head)
        record |= {"head": kind.__name__.lower(), "from": start, "seed": seed}
        record["parameters"] = sum(p.numel() for p in model.parameters())
        torch.save(model.state_dict(), path)
        (a.output / f"{file}.json").write_text(json.dumps(record) + "\n", encoding="utf-8")

    run("eagle-trunk", Eagle, None, "kl", a.trunk, SEED, decay=False)
    for name in LOSSES:
        run(f"eagle-{name}", Eagle, "eagle-trunk", name, a.branch, SEED + 1, decay=True)
    run("block-kl", Block, None, "kl", a.block, SEED, decay=True)
    files = ("eagle-trunk", *(f"eagle-{name}" for name in LOSSES), "block-kl")
    done = [a.output / f"{file}.json" for file in files if (a.output / f"{file}.json").exists()]
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in done]
    settings = {
        "seed": SEED, "depths": DEPTHS, "draft_vocabulary": DRAFT_VOCABULARY, "covered": round(covered, 5),
        "sequences": len(train_data), "positions": positions, "validation_sequences": len(validation),
        "batch": BATCH, "starts_every": EVERY, "rate": RATE, "depth_weight": DECAY, "taps": TAPS, "threads": a.threads,
        "torch": torch.__version__, "numpy": np.__version__,
        "curve_columns": ["step", "loss since the row before", "E[tau]", *(f"overlap {j}" for j in range(DEPTHS))],
        "runs": runs,
    }
    (a.output / "training.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

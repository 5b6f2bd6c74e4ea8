"""Trains heads on the frozen draft's final hidden state, and says how well they predict.

Heads are D residual blocks x + SiLU(W x + b), each with its own W (as SpecDec++
is written; its public code applies one block D times: `--shared` repeats that), and a
linear layer behind them:

    acceptance   reads the state after the drafted token; label min(1, p/q) of that token;
                 loss  -a ln s - w (1 - a) ln(1 - s)  with w of 1, 3, 6 for rejections
    overlap      reads the state before the draw, and ln of the largest q, the margin to
                 the second and the entropy of q; label sum_i min(p_i, q_i), exact at every
                 position; the same loss with w = 1

    acceptance ahead  as acceptance, from the state before the draw, the row's three numbers
                      and ln q of the token: known before the draft reads the token

Adam, cosine, 3 epochs, batches of positions. Reported: mean binary KL divergence of the
prediction from the label, in nats, on held-out prompts, and reliability by bins. Beside
the heads stand predictions from numbers that need no head: a constant, and the same kind
of network on ln q of the token and the row's features.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

SEED = 29
EPOCHS = 3
BATCH = 128
# Every so many-th training prompt is kept for choosing.
VALIDATION = 10
BINS = 10


class Head(nn.Module):
    """Blocks over the state, then two logits of state and features: of yes and of no."""

    def __init__(self, width: int, features: int, depth: int, shared: bool = False) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(min(depth, 1) if shared else depth))
        self.order = [0] * depth if shared else list(range(depth))
        self.output = nn.Linear(width + features, 2)
        for block in self.blocks:
            nn.init.zeros_(block.weight)
            nn.init.zeros_(block.bias)

    def forward(self, state: Tensor, features: Tensor) -> Tensor:
        """The logit of acceptance."""
        for index in self.order:
            state = state + nn.functional.silu(self.blocks[index](state))
        yes, no = self.output(torch.cat([state, features], -1)).unbind(-1)
        return yes - no


def small(inputs: int) -> nn.Sequential:
    """A network on a few numbers, with capacity to spare."""
    return nn.Sequential(nn.Linear(inputs, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))


def binary_kl(label: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """a ln(a/s) + (1 - a) ln((1 - a)/(1 - s)), in nats."""
    a = np.clip(label.astype(np.float64), 0, 1)
    s = np.clip(prediction.astype(np.float64), 1e-9, 1 - 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(a > 0, a * (np.log(a) - np.log(s)), 0)
        other = np.where(a < 1, (1 - a) * (np.log1p(-a) - np.log1p(-s)), 0)
    return one + other


def read(folder: Path, kind: str) -> dict[str, np.ndarray]:
    paths = sorted(folder.glob(f"{kind}-*.npz"))
    if not paths:
        raise SystemExit(f"{folder}: no {kind}-*.npz; make them with head_text.py")
    shards = [np.load(path) for path in paths]
    return {name: np.concatenate([shard[name] for shard in shards]) for name in shards[0].files}


def derived(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Labels and features in float32."""
    ratio = data["p_drafted"].astype(np.float64) / np.maximum(data["q_drafted"], 1e-30)
    row = np.stack([np.log(data["top1"]), data["margin"], data["entropy"]], 1)
    return {
        **data,
        "acceptance": np.minimum(1.0, ratio).astype(np.float32),
        "overlap": np.minimum(data["overlap"], 1.0).astype(np.float32),
        "row": row.astype(np.float32),
        "token_row": np.concatenate([np.log(data["q_drafted"])[:, None], row], 1).astype(np.float32),
        "none": np.zeros((len(ratio), 0), np.float32),
    }


def train(model: nn.Module, inputs: list[np.ndarray], label: np.ndarray, weight: float, rate: float) -> None:
    tensors = [torch.from_numpy(np.ascontiguousarray(part)) for part in inputs]
    target = torch.from_numpy(label)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    steps = EPOCHS * math.ceil(len(target) / BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    generator = torch.Generator().manual_seed(SEED)
    for _ in range(EPOCHS):
        for part in torch.randperm(len(target), generator=generator).split(BATCH):
            logit = model(*(tensor[part].float() for tensor in tensors)).squeeze(-1)
            a = target[part]
            loss = a * nn.functional.softplus(-logit) + weight * (1 - a) * nn.functional.softplus(logit)
            optimiser.zero_grad()
            loss.mean().backward()
            optimiser.step()
            schedule.step()


@torch.no_grad()
def predict(model: nn.Module, inputs: list[np.ndarray]) -> np.ndarray:
    tensors = [torch.from_numpy(np.ascontiguousarray(part)) for part in inputs]
    parts = zip(*(tensor.split(4096) for tensor in tensors))
    return torch.cat([torch.sigmoid(model(*(p.float() for p in part)).squeeze(-1)) for part in parts]).numpy()


def interval(values: np.ndarray, prompts: np.ndarray) -> list[float]:
    """Mean over positions and half width of its 95% interval, clustered by prompt."""
    names, cluster = np.unique(prompts, return_inverse=True)
    sums = np.bincount(cluster, values)
    counts = np.bincount(cluster)
    mean = sums.sum() / counts.sum()
    residuals = sums - mean * counts
    freedom = len(names) - 1
    variance = len(names) / freedom * (residuals**2).sum() / counts.sum() ** 2
    t = 1.959964 + 2.372272 / freedom + 2.822 / freedom**2
    return [round(float(mean), 4), round(float(t * math.sqrt(variance)), 4)]


def reliability(label: np.ndarray, prediction: np.ndarray) -> list[list[float]]:
    """[positions, mean prediction, mean label] for each tenth of [0, 1] that is not empty."""
    bins = np.minimum((prediction * BINS).astype(int), BINS - 1)
    found = []
    for index in range(BINS):
        inside = bins == index
        if inside.any():
            found.append([int(inside.sum()), round(float(prediction[inside].mean()), 4),
                          round(float(label[inside].mean()), 4)])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="folder of the shards of head_text.py")
    parser.add_argument("--output", type=Path, required=True, help="folder of checkpoints and heads.json")
    parser.add_argument("--depths", default="0,1,2,3")
    parser.add_argument("--weights", default="1,3,6")
    parser.add_argument("--inputs", default="drafted,mixed")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--shared", action="store_true", help="one block D times, as SpecDec++'s public code")
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    a.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(a.threads)
    data, held = derived(read(a.text, "train")), derived(read(a.text, "held-out"))
    choosing = data["prompt"] % VALIDATION == 0
    fit = {name: values[~choosing] for name, values in data.items()}
    choose = {name: values[choosing] for name, values in data.items()}
    width = data["after"].shape[1]
    table: list[dict] = []

    def report(row: dict, label: str, predictions: dict[str, np.ndarray]) -> None:
        sets = {"train": fit, "validation": choose, "held_out": held}
        kl = {name: binary_kl(sets[name][label], s) for name, s in predictions.items()}
        row["train_kl"] = round(float(kl["train"].mean()), 4)
        row["validation_kl"] = round(float(kl["validation"].mean()), 4)
        row["held_out_kl"] = interval(kl["held_out"], held["prompt"])
        row["reliability"] = reliability(held[label], predictions["held_out"])
        table.append(row)
        print({name: value for name, value in row.items() if name != "reliability"}, flush=True)

    def run(name: str, model: nn.Module, label: str, inputs: list[str], source: dict, facts: dict,
            weight: float = 1.0) -> None:
        begun = time.monotonic()
        # Features of different size train alike.
        train(model, [source[i] for i in inputs], source[label], weight, a.rate)
        seconds = round(time.monotonic() - begun, 1)
        names = ["after" if i == "mixed" else i for i in inputs]
        sets = {"train": fit, "validation": choose, "held_out": held}
        predictions = {key: predict(model, [of[i] for i in names]) for key, of in sets.items()}
        report({"head": name, **facts, "weight": weight, "seconds": seconds}, label, predictions)
        key = "-".join([name, *(f"{k}{v}" for k, v in facts.items()), f"w{weight:g}"])
        torch.save(model.state_dict(), a.output / f"{key}.pt")

    for label in ("acceptance", "overlap"):
        constant = float(fit[label].mean())
        sets = {"train": fit, "validation": choose, "held_out": held}
        report({"head": f"{label}, constant"}, label,
               {name: np.full(len(of[label]), constant) for name, of in sets.items()})
    torch.manual_seed(SEED)
    run("acceptance from q", small(4), "acceptance", ["token_row"], fit, {})
    torch.manual_seed(SEED)
    run("overlap from q", small(3), "overlap", ["row"], fit, {})
    torch.manual_seed(SEED)
    run("acceptance from q and state", Head(width, 4, 1), "acceptance", ["after", "token_row"], fit, {"depth": 1})
    for depth in (0, 1, 2):
        torch.manual_seed(SEED)
        run("acceptance ahead", Head(width, 4, depth), "acceptance", ["before", "token_row"], fit, {"depth": depth})

    for depth in map(int, a.depths.split(",")):
        torch.manual_seed(SEED)
        run("overlap", Head(width, 3, depth, a.shared), "overlap", ["before", "row"], fit, {"depth": depth})
        for weight in map(float, a.weights.split(",")):
            for kind in a.inputs.split(","):
                source = fit
                if kind == "mixed":
                    chosen = fit["is_mixed"]
                    source = {"mixed": fit["mixed"][chosen], "acceptance": fit["acceptance"][chosen],
                              "none": fit["none"][chosen]}
                torch.manual_seed(SEED)
                run("acceptance", Head(width, 0, depth, a.shared), "acceptance",
                    ["after" if kind == "drafted" else kind, "none"], source, {"depth": depth, "inputs": kind}, weight)

    record = {
        "seed": SEED, "epochs": EPOCHS, "batch": BATCH, "rate": a.rate, "blocks": "shared" if a.shared else "own",
        "positions": int(len(fit["overlap"])), "prompts": int(len(np.unique(fit["prompt"]))),
        "validation_positions": int(len(choose["overlap"])),
        "held_out_positions": int(len(held["overlap"])), "held_out_prompts": int(len(np.unique(held["prompt"]))),
        "mean_acceptance": round(float(fit["acceptance"].mean()), 4),
        "mean_overlap": round(float(fit["overlap"].mean()), 4),
        "held_out_mean_acceptance": interval(held["acceptance"], held["prompt"]),
        "held_out_mean_overlap": interval(held["overlap"], held["prompt"]),
        "torch": torch.__version__, "numpy": np.__version__, "table": table,
    }
    temporary = a.output / "heads.json.part"
    temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, a.output / "heads.json")


if __name__ == "__main__":
    main()

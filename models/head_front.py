"""Which stopping rule wins: every trained head against simple rules, on one capture.

Reads a log of `specgap capture --rollouts K` over the held-out prompts, runs the draft
over its text and rollouts again for the hidden states, lets every checkpoint of
`train_heads.py` predict there, and replays token verification along the text (rounds as
a renewal process; drafts behind rejected tokens from the rollouts; docs/theory/text-replay.md). It is
written apart from `specgap length` and gives the same numbers for the same rule.

For each family of rules: verification rate (target calls a token) and discard rate
(drafts thrown away a token) by threshold; at the verification rates of fixed lengths, the
discards on the family's front, thresholds chosen on every other prompt and reported on the
others and the reverse; and the speed at some costs of a draft step, chosen likewise. A row
that is read and makes the rule stop costs a step too: it is in the speed, and not in the two
rates, as SpecDec++ counts. Intervals resample prompts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from chat import chat, held_out_prompts
from head_text import Stepper, expose_hidden, softmax
from train_heads import Head, predict

# Rules that the others are compared with, prompt by prompt.
RIVALS = ("fixed", "cumulative")
COSTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
# What heads read of a row, in the order of training.
ROW = ("top1", "margin", "entropy")
FIXED = range(1, 17)
RESAMPLES = 2000
SEED = 31
THRESHOLDS = np.concatenate([np.arange(0.02, 0.1, 0.02), np.arange(0.1, 0.99, 0.025), [0.99, 0.995, 0.999]])


@dataclass
class Windows:
    """What rules see from some starts: [starts, most], padded where the text ends."""

    start: np.ndarray
    seen: dict[str, np.ndarray]
    room: np.ndarray


@dataclass
class Text:
    """One text, its rollouts, and what was seen at the tokens of both."""

    prompt: int
    accept: np.ndarray  # min(1, q(y)/p(y))
    along: Windows
    rolled: Windows
    states: dict[str, np.ndarray] = field(default_factory=dict)


def shards(log: Path) -> tuple[dict[str, np.ndarray], dict]:
    """Columns of a log, the rows reduced to what is used, and its index."""
    index = json.loads((log / "log.json").read_text(encoding="utf-8"))
    found: dict[str, list[np.ndarray]] = {}
    for shard in index["shards"]:
        tensors = load_file(log / shard["file"])
        token = tensors["token"]
        places = np.arange(len(token))
        parts = []
        for start in range(0, len(token), 256):
            rows = slice(start, start + 256)
            p = softmax(tensors["target_logits"][rows].astype(np.float32)).astype(np.float64)
            q = softmax(tensors["draft_logits"][rows].astype(np.float32)).astype(np.float64)
            two = -np.partition(-q, 1, axis=1)[:, :2]
            at = (places[rows] - start, token[rows])
            parts.append({
                "p": p[at], "q": q[at], "overlap": np.minimum(p, q).sum(1), "top1": two[:, 0],
                "margin": two[:, 0] - two[:, 1], "entropy": -(q * np.log(np.maximum(q, 1e-300))).sum(1),
            })
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns |= {name: value for name, value in tensors.items() if not name.endswith("logits")}
        for name, value in columns.items():
            found.setdefault(name, []).append(value)
    return {name: np.concatenate(values) for name, values in found.items()}, index


def windows(columns: dict[str, np.ndarray], most: int) -> Windows:
    """From every start of a text, its next tokens."""
    count = len(next(iter(columns.values())))
    at = np.arange(count)[:, None] + np.arange(most)[None, :]
    inside = np.minimum(at, count - 1)
    room = np.minimum(most, count - 1 - np.arange(count))
    return Windows(np.arange(count), {name: value[inside] for name, value in columns.items()}, room)


def read(log: Path, models: Path, most: int) -> tuple[list[Text], int]:
    """The log's texts, and one rollout starts at every how many-th position."""
    columns, index = shards(log)
    every = index["metadata"]["rollouts"]["every"]
    tokenizer = Tokenizer.from_file(str(models / "tokenizer.json"))
    encoded = [tokenizer.encode(chat(text)).ids for _, text in held_out_prompts()]
    paths = [expose_hidden(models / "draft.onnx", keep_rows) for keep_rows in (True, False)]
    try:
        whole, states = (Stepper(path, 1) for path in paths)
    finally:
        for path in paths:
            path.unlink()
    rollout_at = {int(position): place for place, position in enumerate(columns["rollout_position"])}
    texts = []
    for prompt in np.unique(columns["prompt_id"]):
        rows = np.flatnonzero(columns["prompt_id"] == prompt)
        rows = rows[np.argsort(columns["position"][rows])]
        ids = encoded[prompt] + columns["token"][rows].tolist()
        first = len(encoded[prompt])
        mask = np.ones((1, len(ids)), np.int64)
        out, cache = whole.run(np.array([ids]), mask, whole.empty(1))
        hidden = out["hidden"][0]
        del out
        cache = [value.numpy() for value in cache]
        starts, rolled = [], []
        for start, row in enumerate(rows):
            place = rollout_at.get(int(row))
            if place is None:
                continue
            starts.append(start)
            new = np.array([[ids[first + start - 1], *columns["rollout_token"][place]]])
            mask = np.ones((1, first + start - 1 + new.shape[1]), np.int64)
            cut = [onnx_value(value[:, :, : first + start - 1]) for value in cache]
            rolled.append((place, states.run(new, mask, cut)[0]["hidden"][0]))
        ratio = columns["q"][rows] / columns["p"][rows]
        along = {name: columns[name][rows] for name in ("q", "top1", "margin", "entropy", "overlap")}
        along["perfect"] = np.minimum(1.0, columns["p"][rows] / columns["q"][rows])
        places = [place for place, _ in rolled]
        seen = {name: columns[f"rollout_{name}"][places] for name in ("q", "top1", "margin", "entropy", "overlap")}
        seen["perfect"] = np.minimum(1.0, columns["rollout_target_p"][places] / columns["rollout_q"][places])
        text = Text(int(prompt), np.minimum(1.0, ratio), windows(along, most), Windows(
            np.array(starts), {name: value[:, :most] for name, value in seen.items()},
            np.minimum(most, len(rows) - 1 - np.array(starts)),
        ))
        text.states = {
            "along before": hidden[first - 1 : -1], "along after": hidden[first:],
            "rolled before": np.stack([state[:most] for _, state in rolled]),
            "rolled after": np.stack([state[1 : most + 1] for _, state in rolled]),
        }
        texts.append(text)
        print(f"prompt {prompt}: {len(rows)} positions, {len(starts)} rollouts", flush=True)
    return texts, every


def onnx_value(value: np.ndarray):
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value))


def first_true(stops: np.ndarray) -> np.ndarray:
    """The first column that is true, or the number of columns."""
    return np.where(stops.any(1), stops.argmax(1), stops.shape[1])


# A rule's drafts: from windows and a parameter, tokens and whether a row was read in vain.
Rule = Callable[[Windows, float], tuple[np.ndarray, np.ndarray]]


def before(stops: Callable[[Windows, float], np.ndarray]) -> Rule:
    """Stops before drawing from the first row that says so."""

    def rule(w: Windows, x: float) -> tuple[np.ndarray, np.ndarray]:
        place = first_true(stops(w, x))
        return np.minimum(place, w.room), place < w.room

    return rule


def after(stops: Callable[[Windows, float], np.ndarray], reads: bool = False, late: int = 0) -> Rule:
    """Stops behind the first token that says so, which is kept; `reads` it before it decides."""

    def rule(w: Windows, x: float) -> tuple[np.ndarray, np.ndarray]:
        place = first_true(stops(w, x)) + 1 + late
        return np.minimum(place, w.room), (place < w.room) & reads

    return rule


def rejected(name: str) -> Callable[[Windows, float], np.ndarray]:
    return lambda w, h: 1.0 - np.cumprod(w.seen[name], 1) > h


def families(heads: list[str], overlaps: list[str], ahead: list[str]) -> dict[str, tuple[Rule, np.ndarray]]:
    q_low = np.concatenate([[0.005, 0.01, 0.02, 0.03, 0.05, 0.075], np.arange(0.1, 0.95, 0.05)])
    found: dict[str, tuple[Rule, np.ndarray]] = {
        "fixed": (lambda w, k: (np.minimum(int(k), w.room), np.zeros(len(w.room), bool)), np.array(FIXED)),
        "cumulative": (after(lambda w, x: np.cumprod(w.seen["q"], 1) < x),
                       np.concatenate([10.0 ** np.arange(-6, -1, 0.25), np.arange(0.1, 0.95, 0.05)])),
        "confidence": (after(lambda w, x: w.seen["q"] < x), q_low),
        "p-min": (before(lambda w, x: w.seen["top1"] < x), q_low),
        "svip": (before(lambda w, x: np.sqrt(0.15 * np.maximum(w.seen["entropy"], 0)) > x), np.arange(0.1, 1.3, 0.04)),
    }
    for name in heads:
        found[f"specdec {name}"] = (after(rejected(name), reads=True), THRESHOLDS)
        found[f"specdec-late {name}"] = (after(rejected(name), late=1), THRESHOLDS)
    for name in overlaps:
        found[f"overlap-head {name}"] = (before(rejected(name)), THRESHOLDS)
        # The row that says stop is read, so that a token may as well be drawn from it.
        found[f"overlap-head-drawn {name}"] = (after(rejected(name)), THRESHOLDS)
    for name in ahead:
        found[f"ahead {name}"] = (after(rejected(name)), THRESHOLDS)
    found["perfect"] = (after(rejected("perfect"), reads=True), THRESHOLDS)
    found["overlap"] = (before(rejected("overlap")), THRESHOLDS)
    return found


def replay(text: Text, rule: Rule, parameter: float, every: int) -> np.ndarray:
    """Expected calls, drafts, and rows read in vain."""
    along, vain = rule(text.along, parameter)
    accept, lengths = text.accept.tolist(), along.tolist()
    weights = [1.0] + [0.0] * len(accept)
    for start, length in enumerate(lengths):
        reached = weights[start]
        for place in range(start, start + length):
            kept = reached * accept[place]
            weights[place + 1] += reached - kept
            reached = kept
        weights[start + length + 1] += reached
    weight = np.array(weights[:-1])
    drafted, in_vain = rule(text.rolled, parameter)
    at = text.rolled.start
    of_rollouts = every * weight[at]
    return np.array([
        weight.sum(), weight @ along + of_rollouts @ (drafted - along[at]),
        weight @ vain + of_rollouts @ (in_vain.astype(float) - vain[at]),
    ])


def speed(sums: np.ndarray, tokens: np.ndarray, cost: float) -> np.ndarray:
    """Tokens a target step's time; sums [..., 3] of calls, drafts and rows in vain."""
    return tokens / (sums[..., 0] + cost * (sums[..., 1] + sums[..., 2]))


def discards_at(sums: np.ndarray, tokens: float, rate: float) -> tuple[float, int, int, float]:
    """The least discard rate at a verification rate, by mixing two parameters of a family.

    Returns the rate, the two parameters, and the share of the first.
    """
    x, y = sums[:, 0] / tokens, (sums[:, 1] + sums[:, 0]) / tokens - 1.0
    best = (np.inf, 0, 0, 1.0)
    left, right = np.flatnonzero(x <= rate), np.flatnonzero(x > rate)
    for one in left:
        if y[one] < best[0]:
            best = (float(y[one]), int(one), int(one), 1.0)
        for other in right:
            share = (x[other] - rate) / (x[other] - x[one])
            value = share * y[one] + (1 - share) * y[other]
            if value < best[0]:
                best = (float(value), int(one), int(other), float(share))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True, help="folder of the built graphs")
    parser.add_argument("--heads", type=Path, required=True, help="folder of the checkpoints")
    parser.add_argument("--output", type=Path, required=True, help="JSON file")
    parser.add_argument("--curves", default="acceptance-depth3-inputsdrafted-w1,acceptance-depth3-inputsmixed-w6,overlap-depth2-w1,"
                        "acceptance ahead-depth0-w1",
                        help="checkpoints whose whole curves are kept")
    parser.add_argument("--most", type=int, default=16, help="most tokens of a round")
    a = parser.parse_args()
    torch.set_num_threads(1)
    texts, every = read(a.log, a.models, a.most)
    heads, overlaps, ahead, drawn = [], [], [], []
    of_kind = {"acceptance": heads, "overlap": overlaps, "acceptance ahead": ahead}
    for path in sorted(a.heads.glob("*-depth*.pt")):
        found = re.fullmatch(r"(acceptance|overlap|acceptance ahead)-depth(\d)(?:-inputs(\w+))?-w(\d+)", path.stem)
        if not found:
            continue
        kind, depth, inputs, weight = found.groups()
        name = f"D={depth}" + (f" w={weight} {inputs}" if kind == "acceptance" else "")
        width = texts[0].states["along after"].shape[1]
        features_of = {"acceptance": (), "overlap": ROW, "acceptance ahead": ("q", *ROW)}[kind]
        model = Head(width, len(features_of), int(depth))
        model.load_state_dict(torch.load(path))
        if path.stem in a.curves.split(","):
            drawn.append(f"{kind} {name}")
        place = "after" if kind == "acceptance" else "before"
        of_kind[kind].append(f"{kind} {name}")
        for text in texts:
            def values(part: str, w: Windows) -> np.ndarray:
                state = text.states[f"{part} {place}"]
                columns = [w.seen[name] if part == "rolled" else w.seen[name][:, 0] for name in features_of]
                columns = [np.log(v) if n in ("q", "top1") else v for n, v in zip(features_of, columns)]
                features = np.stack(columns, -1) if columns else np.zeros((*state.shape[:-1], 0))
                features = features.astype(np.float32)
                rows = state.reshape(-1, width)
                flat = predict(model, [rows, features.reshape(len(rows), features.shape[-1])])
                return flat.reshape(state.shape[:-1]).astype(np.float64)

            along = values("along", text.along)
            text.along.seen[f"{kind} {name}"] = windows({"x": along}, a.most).seen["x"]
            text.rolled.seen[f"{kind} {name}"] = values("rolled", text.rolled)
    tokens = np.array([len(text.accept) for text in texts], float)
    sums: dict[str, np.ndarray] = {}
    parameters: dict[str, np.ndarray] = {}
    for name, (rule, values) in families(heads, overlaps, ahead).items():
        sums[name] = np.array([[replay(text, rule, x, every) for text in texts] for x in values])
        parameters[name] = values
        print(name, flush=True)
    # [parameters, prompts, 3]
    halves = [np.arange(len(texts)) % 2 == side for side in (0, 1)]
    random = np.random.default_rng(SEED)
    draws = random.integers(0, len(texts), (RESAMPLES, len(texts)))
    counts = np.stack([np.bincount(draw, minlength=len(texts)) for draw in draws])

    def interval(values: np.ndarray) -> list[float]:
        return [round(float(x), 4) for x in np.quantile(values, [0.025, 0.975])]

    table = []
    kept_rates: dict[tuple[str, int], np.ndarray] = {}
    times: dict[tuple[str, float], np.ndarray] = {}
    for name, of in sums.items():
        row: dict = {"rule": name}
        head = name.split(" ", 1)[1:]
        if not head or head[0] in drawn:
            # Parameter, verification rate, discard rate.
            row["curve"] = [
                [round(float(x), 6), round(float(s[0] / tokens.sum()), 4),
                 round(float((s[0] + s[1]) / tokens.sum() - 1), 4)]
                for x, s in zip(parameters[name], of.sum(1))
            ]
        row["at_fixed"], row["speed"] = {}, {}
        for length in (1, 2, 3, 4):
            fixed = sums["fixed"][length - 1]
            # Rates by prompt [prompts, 3], the family's parameters chosen on the other half.
            own = np.zeros((len(texts), 2))
            reachable = True
            for report, choose in (halves, halves[::-1]):
                rate = fixed[choose, 0].sum() / tokens[choose].sum()
                value, one, other, share = discards_at(of[:, choose].sum(1), tokens[choose].sum(), rate)
                reachable &= np.isfinite(value)
                mixed = share * of[one] + (1 - share) * of[other]
                own[report] = (mixed[:, :2])[report]
            if not reachable:
                continue
            kept_rates[name, length] = own.sum(1)
            total = tokens.sum()
            row["at_fixed"][str(length)] = found = {
                "verification_less_fixed": round(float((own[:, 0] - fixed[:, 0]).sum() / total), 4),
                "discard_rate": round(float(own.sum() / total - 1), 4),
            }
            for rival in RIVALS:
                if (rival, length) in kept_rates:
                    difference = own.sum(1) - kept_rates[rival, length]
                    found[f"less_{rival}"] = [
                        round(float(difference.sum() / total), 4), *interval(counts @ difference / (counts @ tokens))
                    ]
        for cost in COSTS:
            time, chosen = np.zeros(len(texts)), []
            for report, choose in (halves, halves[::-1]):
                best = int(np.argmax(speed(of[:, choose].sum(1), tokens[choose].sum(), cost)))
                time[report] = (of[best] @ np.array([1.0, cost, cost]))[report]
                chosen.append(round(float(parameters[name][best]), 6))
            times[name, cost] = time
            row["speed"][str(cost)] = found = {
                "parameters": chosen, "speed": round(float(tokens.sum() / time.sum()), 4),
            }
            for rival in RIVALS:
                if (rival, cost) in times:
                    against = times[rival, cost]
                    found[f"over_{rival}"] = [
                        round(float(against.sum() / time.sum() - 1), 4),
                        *interval((counts @ against) / (counts @ time) - 1),
                    ]
        table.append(row)
    calls = float(sum((1 - text.accept).sum() for text in texts))
    record = {
        "positions": int(tokens.sum()), "prompts": len(texts), "every": every, "most": a.most,
        "oracle_verification_rate": round(calls / tokens.sum(), 4), "table": table,
    }
    temporary = a.output.with_name(a.output.name + ".part")
    rows = ",\n  ".join(json.dumps(row) for row in record.pop("table"))
    text = json.dumps(record, indent=1)[:-2] + ',\n "table": [\n  ' + rows + "\n ]\n}\n"
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, a.output)
    for row in table:
        print(row["rule"])
        for part in ("at_fixed", "speed"):
            for key, values in row[part].items():
                print("   ", part, key, values)


if __name__ == "__main__":
    main()

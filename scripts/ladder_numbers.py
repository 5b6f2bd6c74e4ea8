#!/usr/bin/env python3
"""Recomputes numbers of reports/ladder from the logged rows, with NumPy and nothing of specgap.

    models/build-env/bin/python scripts/ladder_numbers.py models/work/ladder reports/ladder/report.json

For some rungs and temperatures: the overlap, p of the draft's likeliest token, and of three drafts
alpha* of i.i.d. draws, what recursive rejection accepts of them, p of the three likeliest tokens,
and alpha* of greedy drafts. Prints the largest difference to the report, and exits with 1 if one is
above 1e-9.

    alpha*(n i.i.d. drafts) = min over H of  p(H) + 1 - q(H)^n,   H the tokens of largest q/p
    recursive rejection: accept Y ~ q with min(1, p/q), else go on with p := (p - q)+ / |(p - q)+|
"""

import argparse
import json
import struct
import sys
from pathlib import Path

import numpy as np

DRAFTS = 3
CLOSE = 1e-9


def tensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file that are rows."""
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    rows = {}
    for name, entry in header.items():
        if name.endswith("_logits"):
            start, _ = entry["data_offsets"]
            rows[name] = np.memmap(path, np.float16, "r", 8 + size + start, tuple(entry["shape"]))
    return rows


def positions(log: Path):
    """Both rows of logits of every position."""
    for shard in json.loads((log / "log.json").read_text())["shards"]:
        own = tensors(log / shard["file"])
        shared = shard.get("target")
        target = tensors(log / shared["file"]) if shared else own
        yield from zip(target["target_logits"], own["draft_logits"])


def softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    scaled = logits.astype(np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    return weights / weights.sum()


def best_of_draws(p: np.ndarray, q: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        order = np.argsort(-(q / p))
    mass_p, mass_q = np.cumsum(p[order]), np.cumsum(q[order])
    return min(1.0, (mass_p + 1.0 - np.minimum(mass_q, 1.0) ** DRAFTS).min())


def rejection(p: np.ndarray, q: np.ndarray) -> float:
    left = 1.0
    for _ in range(DRAFTS):
        left *= 1.0 - np.minimum(p, q).sum()
        residual = np.maximum(p - q, 0.0)
        if residual.sum() == 0.0:
            break
        p = residual / residual.sum()
    return 1.0 - left


def numbers(p: np.ndarray, q: np.ndarray) -> dict[tuple, float]:
    """By what, drafts, scheme and verifier, as report.json names them."""
    # The likeliest tokens; of equal probabilities the lower token id is first.
    likely = np.flatnonzero(q >= np.partition(q, -DRAFTS)[-DRAFTS])
    ranked = likely[np.argsort(-q[likely], kind="stable")]
    forced = ranked[: DRAFTS - 1]
    rest_p, rest_q = p.copy(), q.copy()
    rest_p[forced], rest_q[forced] = 0.0, 0.0
    return {
        ("overlap", None, None, None): np.minimum(p, q).sum(),
        ("acceptance", 1, "top", "exact-match"): p[ranked[0]],
        ("optimum", DRAFTS, "with-replacement", None): best_of_draws(p, q),
        ("acceptance", DRAFTS, "with-replacement", "rrs"): rejection(p, q),
        ("optimum", DRAFTS, "top", None): p[ranked[:DRAFTS]].sum(),
        ("optimum", DRAFTS, "greedy", None): p[forced].sum()
        + np.minimum(rest_p, rest_q / rest_q.sum()).sum(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=Path, help="the folder of the ladder's logs")
    parser.add_argument("report", type=Path, help="report.json of the comparison")
    parser.add_argument("--rungs", default="q3-64,skip-29")
    parser.add_argument("--temperatures", default="0.3,1.0")
    arguments = parser.parse_args()
    report = json.loads(arguments.report.read_text())
    folders = [log["folder"] for log in report["logs"]]
    worst = 0.0
    for rung in arguments.rungs.split(","):
        for temperature in map(float, arguments.temperatures.split(",")):
            rows = positions(arguments.logs / rung)
            each = [numbers(*(softmax(row, temperature) for row in pair)) for pair in rows]
            for key in each[0]:
                own = float(np.mean([one[key] for one in each]))
                (rate,) = (
                    rate
                    for rate in report["rates"]
                    if rate["temperature"] == temperature
                    and (rate["what"], *map(rate.get, ("drafts", "scheme", "verifier"))) == key
                )
                said = rate["estimates"][folders.index(rung)]["mean"]
                worst = max(worst, abs(own - said))
                words = " ".join(str(word) for word in key if word is not None)
                print(f"{rung} T = {temperature}: {words}: {own:.10f}, report {said:.10f}", flush=True)
            print(f"{rung} T = {temperature}: {len(each)} positions", flush=True)
    print(f"largest difference: {worst:.1e}")
    sys.exit(worst > CLOSE)


if __name__ == "__main__":
    main()

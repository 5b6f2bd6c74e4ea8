#!/usr/bin/env python3
"""Times what one would write in NumPy for one optimal acceptance rate at a position.

Standard input is a JSON list:

    [{"name": "...", "target_logits": [...], "draft_logits": [...], "drafts": [1, 2, ...]}, ...]

Standard output is one JSON object: for each instance the least seconds of two
float32 softmax passes, and for every n those of alpha* with replacement from the
two rows in float64, by argsort of q/p and cumulative sums.

    python3 -m venv .venv && .venv/bin/pip install -r benches/requirements.txt
    SPECGAP_PYTHON=.venv/bin/python cargo bench --bench scan
"""

import json
import os
import platform
import sys
import time

# One thread, like the other side.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402

PATIENCE_SECONDS = 0.3
LEAST_REPEATS = 5


def least_seconds(call):
    begun = time.perf_counter()
    least, repeats = float("inf"), 0
    while repeats < LEAST_REPEATS or time.perf_counter() - begun < PATIENCE_SECONDS:
        started = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - started)
        repeats += 1
    return least


def softmax(logits):
    weights = np.exp(logits - logits.max())
    weights /= weights.sum()
    return weights


def optimal_acceptance_rate(p, q, drafts):
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-q / p)
    held, mass = np.cumsum(p[order]), np.cumsum(q[order])
    return 1.0 + min(0.0, float((held - mass**drafts).min()))


def measure(instance):
    target = np.array(instance["target_logits"], dtype=np.float32)
    draft = np.array(instance["draft_logits"], dtype=np.float32)
    p = softmax(target.astype(np.float64))
    q = softmax(draft.astype(np.float64))
    return {
        "name": instance["name"],
        "softmax_seconds": least_seconds(lambda: (softmax(target), softmax(draft))),
        "scan_seconds": [
            least_seconds(lambda n=n: optimal_acceptance_rate(p, q, n)) for n in instance["drafts"]
        ],
        "values": [optimal_acceptance_rate(p, q, n) for n in instance["drafts"]],
    }


def main():
    try:
        instances = json.load(sys.stdin)
    except ValueError as error:
        print(f"error: standard input: not JSON: {error}", file=sys.stderr)
        return 2
    report = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "instances": [measure(instance) for instance in instances],
    }
    json.dump(report, sys.stdout)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())

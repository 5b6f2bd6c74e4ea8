"""Tries whole families of made inputs, each case made at random with a known truth.

`python scripts/families NAME --seed S --count N [--out FILE]` says a line of JSON each thousand cases, `--quick` tries 20 of
each family, `--only I` one again. Needs NumPy and the installed package specgap. The last line has the number of each bad
case, which with the seed makes it again, and what is wrong with it; the exit code is then 1.
"""

import argparse
import collections
import json
import os
import sys
import time
import traceback

os.environ |= dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import audits  # noqa: E402
import numpy  # noqa: E402
import own  # noqa: E402
import reports  # noqa: E402

FAMILIES = {"texts": audits.texts, "coins": audits.coins, "unlogged": audits.unlogged}
FAMILIES |= {"rankings": reports.rankings, "masks": reports.masks, "own": own.rules}


def sweep(name, seed, cases, files):
    """Runs cases, says so each thousand and at the end; how many were bad."""
    counts, bad, began = collections.defaultdict(collections.Counter), [], time.monotonic()
    for done, case in enumerate(cases, 1):
        try:
            kind, verdict, wrong = FAMILIES[name](numpy.random.default_rng([seed, case]))
        except Exception:  # noqa: BLE001 - whatever a call raises is a bad case
            kind, verdict, wrong = "?", "raised", traceback.format_exc(limit=-3)
        counts[kind][verdict] += 1
        bad += [{"case": case, "kind": kind, "verdict": verdict, "wrong": wrong}] if wrong else []
        if done % 1000 == 0 or done == len(cases):
            line = {"family": name, "seed": seed, "cases": done, "bad": len(bad), "seconds": round(time.monotonic() - began, 1)}
            line |= {"counts": counts} | ({"bad_cases": bad} if done == len(cases) else {})
            for file in files:
                print(json.dumps(line), file=file, flush=True)
    return len(bad)


parser = argparse.ArgumentParser(prog="families", description=__doc__)
parser.add_argument("name", nargs="?", choices=FAMILIES)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--count", type=int, default=1000)
parser.add_argument("--only", type=int, metavar="I")
parser.add_argument("--quick", action="store_true")
parser.add_argument("--out", type=argparse.FileType("a"), metavar="FILE", help="append the lines here")
options = parser.parse_args()
if not options.name and not options.quick:
    parser.error("give a family, or --quick")
chosen = range(20 if options.quick else options.count) if options.only is None else [options.only]
outs = [sys.stdout, *([options.out] if options.out else [])]
sys.exit(sum(sweep(name, options.seed, chosen, outs) for name in ([options.name] if options.name else FAMILIES)) > 0)

"""Tries whole families of made inputs, each case made at random with a known truth. Needs NumPy and the installed specgap.

`python scripts/families NAME --seed S --count N [--out FILE]` says a line of JSON each thousand cases, `--quick` tries 20 of
each family, `--only I` one again. A line has the bad cases since the one before, and the last one all: by the number that
with the seed makes the case again. The exit code is then 1.
"""

import argparse
import collections
import json
import os
import sys
import time

os.environ |= dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import audits  # noqa: E402
import numpy  # noqa: E402
import own  # noqa: E402
import reports  # noqa: E402

FAMILIES = {one.__name__: one for one in (audits.texts, audits.coins, audits.unlogged, reports.rankings, reports.masks, own.own)}
parser = argparse.ArgumentParser(prog="families", description=__doc__.split("\n")[0])
parser.add_argument("name", nargs="?", choices=FAMILIES)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--count", type=int, default=1000)
parser.add_argument("--only", type=int, metavar="I")
parser.add_argument("--quick", action="store_true")
parser.add_argument("--out", type=argparse.FileType("a"), metavar="FILE", help="append the lines here")
options = parser.parse_args()
cases, failed = range(20 if options.quick else options.count) if options.only is None else [options.only], 0
for name in [options.name] if options.name else FAMILIES:
    counts, bad, told, began = collections.defaultdict(collections.Counter), [], 0, time.monotonic()
    for done, case in enumerate(cases, 1):
        try:
            kind, verdict, wrong = FAMILIES[name](numpy.random.default_rng([options.seed, case]))
        except Exception as error:  # noqa: BLE001 - whatever a call raises is a bad case
            kind, verdict, wrong = "?", "raised", repr(error)
        counts[kind][verdict] += 1
        bad += [{"case": case, "kind": kind, "verdict": verdict, "wrong": wrong}] if wrong else []
        if done % 1000 == 0 or done == len(cases):
            line = {"family": name, "seed": options.seed, "cases": done, "bad": len(bad), "seconds": round(time.monotonic() - began, 1)}
            line |= {"counts": counts, "bad_cases": bad if done == len(cases) else bad[told:]}
            told = len(bad)
            for file in filter(None, (sys.stdout, options.out)):
                print(json.dumps(line), file=file, flush=True)
    failed += len(bad)
sys.exit(failed > 0)

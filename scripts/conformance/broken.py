"""Kernels with one bug each, which the harness has to find: `--negative-control` of a harness.

    specgap conformance --out vectors --vocab 2,17 --rules token,carried,carried-block
    python broken.py vectors

For each bug it says how many vectors find it, and in which situations. A bug may be found by exact
checks, which need no luck, or by counts alone. Exit code 0 if every one of them is found and the
reference passes, 1 if not, 2 for bad usage.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import reference
from reference import behind_token, invert, keep, leading, positive, row, shares

TOKEN_BUGS = {
    "at most": "u <= p/q keeps a token of probability 0 at u = 0",
    "residual": "the token behind a rejection is drawn from the target",
    "residual of q": "it is drawn from (q - p)+",
    "epsilon": "1e-10 is added to the residual before it is normalised",
    "ratio": "a draft is kept with p, not p/q",
    "bonus": "behind a whole chain the last draft's law is drawn from",
    "low end": "the inverse of the distribution function takes >= at 0",
}
CARRIED_BUGS = {
    "no d": "plain `token`: p/q, and other tokens are drawn from (p - q)+ and p",
    "bonus of p": "behind a whole chain the target's law is drawn from",
    "stale": "what is carried stays as it was",
    "forgets": "what older rounds have kept is not carried on",
}
BLOCK_BUGS = {
    "bonus of p": "behind a whole chain the target's law is drawn from",
    "stale": "what is carried stays as it was",
}
BUGS = {"token": TOKEN_BUGS, "carried": CARRIED_BUGS, "carried-block": BLOCK_BUGS}


def make(rule, bug):
    """The reference's two functions, with a bug."""
    kernel = {"token": make_token, "carried": make_carried, "carried-block": make_block}[rule](bug)
    return reference.by_coins(kernel), kernel


def make_carried(bug):
    def carried_coins(vector, coins, final_coin):
        right = reference.token_coins if bug == "no d" else reference.carried_coins
        accepted, token = right(vector, coins, final_coin)[:2]
        if bug == "bonus of p":
            whole = accepted == len(vector.drafts)
            token[whole] = invert(row(vector.target[-1]), numpy.asarray(final_coin)[whole])
        carry = numpy.empty((accepted.size, len(vector.carry)))
        ends, which = numpy.unique([accepted, token], axis=1, return_inverse=True)
        for at, (count, last) in enumerate(ends.T):
            w = vector.carry
            for k, x in enumerate([*vector.drafts[:count], last]):
                w = behind_token(w, shares(vector.target[k])[x], shares(vector.draft[k])[x])
                w = w * (numpy.arange(w.size) < 1) if bug == "forgets" else w
            carry[which.reshape(-1) == at] = vector.carry if bug == "stale" else w
        return accepted, token, carry

    return carried_coins


def make_block(bug):
    def carried_block_coins(vector, coins, final_coin):
        accepted, token, carry = reference.carried_block_coins(vector, coins, final_coin)
        if bug == "bonus of p":
            whole = accepted == len(vector.drafts)
            token[whole] = invert(row(vector.target[-1]), numpy.asarray(final_coin)[whole])
        return accepted, token, carry * 0 + vector.carry if bug == "stale" else carry

    return carried_block_coins


def make_token(bug):

    def token_coins(vector, coins, final_coin):
        coins, final_coin = numpy.asarray(coins), numpy.asarray(final_coin)
        kept = []
        for k, x in enumerate(vector.drafts):
            p, q = float(vector.target[k][x]), float(vector.draft[k][x])
            kept.append(p if bug == "ratio" else keep(p, q))
        accepted = leading(coins <= kept if bug == "at most" else coins < kept)
        token = numpy.empty(accepted.size, numpy.int64)
        for count in numpy.unique(accepted):
            law, chosen = law_behind(vector, count), accepted == count
            if bug == "low end":
                ends = numpy.cumsum(law)
                place = numpy.searchsorted(ends, final_coin[chosen] * ends[-1])
                token[chosen] = numpy.minimum(place, law.size - 1)
            else:
                token[chosen] = invert(law, final_coin[chosen])
        return accepted, token

    def law_behind(vector, count):
        p = row(vector.target[count])
        if count == len(vector.drafts):
            return row(vector.draft[count - 1]) if bug == "bonus" else p
        a, b = vector.target[count].astype(float), vector.draft[count].astype(float)
        if bug == "residual":
            return p
        if bug == "residual of q":
            return positive(b, a)
        if bug == "epsilon":
            return row(numpy.maximum(a - b, 0) + 1e-10)
        return positive(a, b)

    return token_coins


KERNEL = """import sys
sys.path.insert(0, {here!r})
import broken
{name}, exact = broken.make({rule!r}, {bug!r})
if {has_coins}:
    {name}_coins = exact
"""


def run(vectors, rule, bug, has_coins, samples):
    """What the harness says of a kernel: exit code, report or `None`, and what it printed."""
    here = pathlib.Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as folder:
        kernel = pathlib.Path(folder) / "kernel.py"
        name = rule.replace("-", "_")
        kernel.write_text(
            KERNEL.format(here=str(here), name=name, rule=rule, bug=bug, has_coins=has_coins)
        )
        ended = subprocess.run(
            [sys.executable, str(here / "harness.py"), str(vectors), "--kernel", str(kernel),
             "--rules", rule, "--largest", "1100", "--samples", str(samples),
             "--format", "json"],
            capture_output=True, text=True,
        )
    report = json.loads(ended.stdout) if ended.returncode in (0, 1) and ended.stdout else None
    return ended.returncode, report, ended.stdout + ended.stderr


def situations(report):
    return sorted({failure["situation"] for failure in report["failures"]})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vectors", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--format", choices=["text", "json"], default="text")
    args = parser.parse_args()
    manifest = args.vectors / "manifest.json"
    made = json.loads(manifest.read_text())["rules"] if manifest.exists() else []
    rules = [rule for rule in BUGS if any(one["name"] == rule for one in made)]
    results = []
    tried = [(rule, *bug) for rule in rules or BUGS for bug in
             [(None, "the reference"), *BUGS[rule].items()]]
    for rule, bug, words in tried:
        code, report, printed = run(args.vectors, rule, bug, True, args.samples)
        if code not in (0, 1) or report is None:
            print(printed, file=sys.stderr, end="")
            return 2 if code == 2 else 1
        # Without uniform numbers of its own a kernel has support and counts to be found by.
        _, counted, _ = run(args.vectors, rule, bug, False, args.samples)
        results.append({
            "rule": rule, "bug": bug, "words": words, "right": code == (0 if bug is None else 1),
            "vectors": report["passed"] + report["failed"], "found_by": report["failed"],
            "found_by_counts": counted["failed"] if counted else 0,
            "situations": situations(report),
        })
    right = all(result["right"] for result in results)
    if args.format == "json":
        print(json.dumps({"schema": 1, "samples": args.samples, "results": results, "ok": right}))
        return 0 if right else 1
    for result in results:
        print(f"{'ok' if result['right'] else 'WRONG'}: {result['rule']}: {result['words']}")
        if result["bug"] is not None or result["found_by"]:
            print(
                f"    found by {result['found_by']} of {result['vectors']} vectors, "
                f"{result['found_by_counts']} without uniform numbers: "
                f"{', '.join(result['situations']) or 'none'}"
            )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

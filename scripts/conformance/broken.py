"""Kernels with one bug each, which the harness has to find: `--negative-control` of a harness.

    specgap conformance --out vectors --vocab 2,17 --verifiers token,shared-gumbel,carried,carried-block,traversal-4
    python broken.py vectors

Bugs of calls have one or two situations each, and every situation of a call has a bug.

For each bug it says how many vectors find it, and in which situations. A bug may be found by exact
checks, which need no luck, or by counts alone. Exit code 0 if every one of them is found and the
reference passes, 1 if not, 2 for bad usage.
"""

import argparse
import copy
import functools
import itertools
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
CALL_BUGS = {
    "verifies padding": "what stands behind a request's drafts is verified too",
    "nan accepts": "a draft is kept unless u > p/q, which NaN never is",
    "bad q": "q is taken as it is: infinite, all zero, or with another sum than 1",
    "nan target": "p is taken as it is, and a draw from NaN ends behind the vocabulary",
    "u of 1": "u = 1 rejects what is always kept, and ends behind the distribution function",
    "one temperature": "all requests have the first one's temperature",
    "no mask": "the mask is not applied to the target",
    "mask on q": "the mask is applied to q as well",
    "mask on the first row": "the mask is applied to the first row alone",
    "16 bits": "the target's logits are rounded to the type of q",
    "no budget": "all drafts are verified",
    "bonus of the last row": "the token behind the verified drafts comes from the last row",
    "no map": "the draft's ids are taken for the target's",
    "map overwrites": "of two ids of one token the last one's q counts",
}
STREAM_BUGS = {
    "one stream": "all requests of a call draw with the first one's numbers",
    "one last coin": "all requests of a call draw the last token with the first one's number",
    "mirrored": "odd requests draw with 1 - u of the one before",
    "shifted": "the number behind a request's drafts tests the first draft of the next one",
    "by content": "numbers are made of the rows: requests that are alike draw alike",
}
NOISE_BUGS = {
    "fresh": "the target draws by a noise of its own",
    "times": "the noise is multiplied by the rows",
    "no logarithm": "the noise is taken off the target's logits, and not its logarithm",
}
TREE_BUGS = {
    "keeps R": "what a refused subtree was offered stays owed",
    "forgets": "drafts that were refused are as likely at the next offer",
    "levels below": "passes below the root are at its levels",
    "draws from p": "behind refused children the token is drawn from the target",
}
BUGS = {
    "token": TOKEN_BUGS, "carried": CARRIED_BUGS, "carried-block": BLOCK_BUGS, "traversal-4": TREE_BUGS,
    "shared-gumbel": NOISE_BUGS, "call": CALL_BUGS | STREAM_BUGS,
}


def make(rule, bug):
    """The reference's two functions, with a bug."""
    if rule == "call":
        kernel = make_call(bug)
        return reference.call_by_coins(streams(kernel, bug)), kernel
    if rule == "shared-gumbel":
        return make_noise(bug), None
    if rule == "traversal-4":
        kernel = functools.partial(reference.traversal_coins, bug=bug)
        return reference.tree_by_coins(kernel), kernel
    kernel = {"token": make_token, "carried": make_carried, "carried-block": make_block}[rule](bug)
    return reference.by_coins(kernel), kernel


def streams(kernel, bug):
    """The kernel, with numbers that requests have in common."""

    def shared(call, coins, final_coin):
        if bug == "one stream":
            coins = numpy.repeat(coins[:, :1], coins.shape[1], 1)
        if bug in ("one stream", "one last coin"):
            final_coin = numpy.repeat(final_coin[:, :1], coins.shape[1], 1)
        if bug == "mirrored":
            coins[:, 1::2], final_coin[:, 1::2] = 1 - coins[:, ::2], 1 - final_coin[:, ::2]
        if bug == "shifted":
            coins[:, 1:, 0] = final_coin[:, :-1]
        if bug == "by content":
            for at, other in itertools.combinations(range(coins.shape[1]), 2):
                if (call.target_logits[at] == call.target_logits[other]).all():
                    coins[:, other], final_coin[:, other] = coins[:, at], final_coin[:, at]
        return kernel(call, coins, final_coin)

    return shared


def make_noise(bug):
    def shared_gumbel(vector, noise):
        drafts, token, slot = reference.shared_gumbel(vector, noise)
        if bug == "fresh":
            token = reference.shared_gumbel(vector, noise[:, ::-1])[1]
        if bug == "times":
            token = (noise * vector.target[0]).argmax(axis=1)
        if bug == "no logarithm":
            with numpy.errstate(divide="ignore"):
                token = (numpy.log(vector.target[0]) - noise).argmax(axis=1)
        return drafts, token, slot

    return shared_gumbel


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


def in_16_bits(values, is_bf16):
    """Rounded to binary16, or to bfloat16 by its bits."""
    values = numpy.asarray(values, numpy.float32)
    if not is_bf16:
        return values.astype(numpy.float16).astype(float)
    bits = values.view(numpy.uint32)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & numpy.uint32(0xFFFF0000)
    return bits.astype(numpy.uint32).view(numpy.float32).astype(float)


def beyond(law, coins, always=True):
    """As `invert`, but what is no number (and always, a coin of 1) ends behind the vocabulary."""
    if not always and not numpy.isnan(law).any():
        return invert(law, coins)
    ends = numpy.cumsum(law)
    return numpy.searchsorted(ends, numpy.asarray(coins) * ends[-1], side="right")


def make_call(bug):
    def target(call, request, place):
        other = copy.copy(call)
        if bug == "one temperature":
            other.temperature = numpy.full(call.temperature.shape, call.temperature[0])
        if bug == "no mask" or (bug == "mask on the first row" and place > 0):
            other.allowed = numpy.ones_like(call.allowed)
        if bug == "16 bits" and call.draft_bits == 16:
            is_bf16 = call.situation == "bf16-draft"
            other.target_logits = in_16_bits(call.target_logits, is_bf16)
        logits = call.target_logits[request][place]
        if bug == "nan target" and numpy.isnan(logits).any():
            return numpy.full(logits.size, numpy.nan)
        return reference.target_row(other, request, place)

    def offered(call, request, place, size):
        values = numpy.asarray(call.draft_rows[request][place], numpy.float64)
        if bug == "map overwrites":
            q = numpy.zeros(size)
            q[call.d2t] = values
            return q
        if bug == "no map":
            return numpy.pad(values, (0, size - values.size))
        if bug in ("nan accepts", "bad q"):
            q = numpy.zeros(size)
            numpy.add.at(q, call.d2t, values)
            return q
        q = reference.draft_row(call, request, place, size)
        if bug == "mask on q" and q is not None:
            allowed = call.allowed[request][place]
            return q if allowed.all() else q * allowed / (q * allowed).sum()
        return q

    def laws_of(call, request):
        kept, laws = [], []
        verified = int(call.verified[request])
        if bug == "no budget":
            verified = int(call.counts[request])
        if bug == "verifies padding":
            verified = call.draft_tokens.shape[1]
        for place in range(verified):
            p = target(call, request, place)
            if p is None:
                return None
            ids = call.draft_ids if bug == "no map" else call.draft_tokens
            x, q = ids[request][place], offered(call, request, place, p.size)
            if q is None:
                q = numpy.eye(p.size)[x]
            with numpy.errstate(all="ignore"):
                ratio = p[x] / q[x] if q[x] != 0 else numpy.inf if p[x] > 0 else 0.0
                kept.append(ratio if bug in ("nan accepts", "nan target") else keep(p[x], q[x]))
                laws.append(positive(p, q) if numpy.isfinite(q).all() else p)
        last = call.draft_tokens.shape[1] if bug == "bonus of the last row" else verified
        p = target(call, request, last)
        return None if p is None else (kept, [*laws, p])

    def is_kept(u, kept):
        if bug == "u of 1":
            return u < kept
        return ~(u > kept) if bug == "nan accepts" else (u < kept) | (kept >= 1)

    def token_call_coins(call, coins, final_coin):
        def ends(law, coins):
            return beyond(law, coins, bug == "u of 1")

        return reference.token_call_coins(call, coins, final_coin, laws_of, is_kept, ends)

    return token_call_coins


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
        name = "token_call" if rule == "call" else rule.replace("-", "_")
        kernel.write_text(
            KERNEL.format(here=str(here), name=name, rule=rule, bug=bug, has_coins=has_coins)
        )
        ended = subprocess.run(
            [sys.executable, str(here / "harness.py"), str(vectors), "--kernel", str(kernel),
             "--rules", "token" if rule == "call" else rule, "--largest", "1100", "--samples", str(samples),
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
    files = json.loads(manifest.read_text())["files"] if manifest.exists() else []
    trees = args.vectors / "trees.json"
    made += [{"name": one["rule"]} for one in json.loads(trees.read_text())["vectors"]] if trees.exists() else []
    rules = [rule for rule in BUGS if any(one["name"] == rule for one in made)]
    if any(file.get("kind") == "calls" for file in files):
        rules.append("call")
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

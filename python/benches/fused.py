"""What rejection by level takes as a kernel on a GPU, against recursive rejection as a kernel.

    pip install torch triton
    PYTHONPATH=python python python/benches/fused.py [--vocabulary 131072] [--batch 64] [--json FILE]

Rows are made: logits of spread 3, the draft's with noise of spread 1.5. Both rules are written in the same way,
one program a row, and tested against `specgap.kernels` first. With coins that reject always every pass is made;
with fair ones a row ends as soon as a draft is accepted. Times are medians of replayed CUDA graphs, so without
the launches. Prints Markdown.
"""

import argparse
import json

import torch
import triton.testing

from specgap import fused, kernels


def made(batch, vocabulary, generator):
    logits = 3 * torch.randn(batch, vocabulary, generator=generator, device="cuda")
    noisy = logits + 1.5 * torch.randn(batch, vocabulary, generator=generator, device="cuda")
    return logits, noisy


def tested(generator):
    """Tokens and slots against the torch form in double precision, and the law of many draws of one row."""
    differ = rows = 0
    for n in (1, 2, 4, 8):
        for size in (3, 50, 1000, 40_000):
            batch = 512
            p, q = (z.softmax(1) for z in made(batch, size, generator))
            coins = torch.rand(batch, n, generator=generator, device="cuda")
            more = torch.rand(batch, 4 * n + 1, generator=generator, device="cuda")
            drafts, cuts = fused.draft_strata(q, n, coins)
            other = kernels.draft_strata(q.double(), n, coins.double(), "independent")
            found = fused.verify_level(p, q, drafts, cuts, more)
            expected = kernels.verify_level(p.double(), q.double(), drafts, more.double(), "independent")
            wrong = (found[0] != expected[0]) | (found[1] != expected[1]) | (drafts != other).any(1)
            differ, rows = differ + int(wrong.sum()), rows + batch
    size, draws = 40, 1 << 20
    p, q = (z.softmax(1) for z in made(1, size, generator))
    worst = {}
    for n in (2, 4):
        wide_p, wide_q = p.expand(draws, size).contiguous(), q.expand(draws, size).contiguous()
        coins = torch.rand(draws, n, generator=generator, device="cuda")
        more = torch.rand(draws, 4 * n + 1, generator=generator, device="cuda")
        drafts, cuts = fused.draft_strata(wide_q, n, coins)
        level, _ = fused.verify_level(wide_p, wide_q, drafts, cuts, more)
        coins = torch.rand(draws, n, generator=generator, device="cuda")
        more = torch.rand(draws, n + 1, generator=generator, device="cuda")
        plain, _ = fused.verify_rrs(wide_p, wide_q, fused.draft_independent(wide_q, n, coins), more)
        for name, tokens in (("level-4", level), ("rrs", plain)):
            counts = tokens.bincount(minlength=size).double()
            expected = draws * p[0].double()
            kept = expected > 5
            worst[f"{name}, n = {n}"] = [
                float((((counts - expected) ** 2 / expected)[kept]).sum()), int(kept.sum()) - 1
            ]
    return {"rows": rows, "differ": differ, "chi_square": worst}


def timed(job):
    job()
    torch.cuda.synchronize()
    return triton.testing.do_bench_cudagraph(job, rep=40, return_mode="median") * 1e3


def jobs_of(p, q, logits, n, generator):
    batch = len(p)
    draw = torch.rand(batch, n, generator=generator, device="cuda")
    strata, cuts = fused.draft_strata(q, n, draw)
    free = fused.draft_independent(q, n, draw)
    jobs = {("softmax of both rows", ""): lambda: [z.softmax(1) for z in logits]}
    jobs["drafting: n draws from q", ""] = lambda: fused.draft_independent(q, n, draw)
    jobs["drafting: strata", ""] = lambda: fused.draft_strata(q, n, draw)
    accepted = {}
    for word in ("every pass", "until one is accepted"):
        more = torch.rand(batch, 4 * n + 1, generator=generator, device="cuda")
        few = torch.rand(batch, n + 1, generator=generator, device="cuda")
        if word == "every pass":
            more[:, :-1], few[:, :-1] = float("inf"), float("inf")
        jobs["recursive rejection, i.i.d. drafts", word] = lambda few=few: fused.verify_rrs(p, q, free, few)
        jobs["one pass over strata", word] = lambda more=more: fused.verify_level(
            p, q, strata, cuts, more[:, : n + 1].contiguous(), (0.0,)
        )
        jobs["level-4 over strata", word] = lambda more=more: fused.verify_level(p, q, strata, cuts, more)
    accepted["rrs"] = float((fused.verify_rrs(p, q, free, few)[1] >= 0).double().mean())
    accepted["level-4"] = float((fused.verify_level(p, q, strata, cuts, more)[1] >= 0).double().mean())
    jobs["torch form of level-4", "every pass"] = lambda: kernels.verify_level(p, q, strata, more, "independent")
    return jobs, accepted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", type=int, default=131_072)
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--drafts", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--json")
    args = parser.parse_args()
    generator = torch.Generator("cuda").manual_seed(1)
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}
    result["tested"] = tested(generator)
    print(json.dumps(result), flush=True)
    result["runs"] = []
    for batch in args.batch:
        logits = made(batch, args.vocabulary, generator)
        p, q = (z.softmax(1) for z in logits)
        for n in args.drafts:
            jobs, accepted = jobs_of(p, q, logits, n, generator)
            took = {}
            for key, job in jobs.items():
                try:
                    took[key] = timed(job)
                except RuntimeError as error:
                    print(key, "not timed:", str(error).splitlines()[0])
            run = {"batch": batch, "vocabulary": args.vocabulary, "drafts": n, "accepted": accepted}
            run["microseconds"] = {", ".join(filter(None, key)): value for key, value in took.items()}
            result["runs"].append(run)
            print(f"\nV = {args.vocabulary:,}, {batch} rows, n = {n}; accepted: " + ", ".join(
                f"{name} {share:.3f}" for name, share in accepted.items()) + "\n")
            print("| | coins | us | over recursive rejection |\n| --- | --- | --- | --- |")
            for (what, word), value in took.items():
                against = took.get(("recursive rejection, i.i.d. drafts", word))
                print(f"| {what} | {word} | {value:.0f} | {value / against if against else 0:.2f} |", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()

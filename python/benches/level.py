"""What rejection by level takes, against one pass of recursive rejection, at the size of a large vocabulary.

    pip install numpy torch
    PYTHONPATH=python python python/benches/level.py [--vocabulary 131072] [--batch 64] [--drafts 4] [--runs 5] [--torch]

Rows are made: logits of spread 3, the draft's with noise of spread 1.5. In NumPy row by row, with coins that
always reject, so that every pass is made, and with fair ones, where a row ends as soon as a draft is
accepted. In torch for the whole batch, always all passes. All run in turn on one thread; what counts is
the least of several runs, in seconds of the processor. Prints Markdown.
"""

import argparse
import os
import time

import numpy as np

from specgap import rules


class Rejecting:
    """Every draft is rejected; what is left is drawn from as usual."""

    def __init__(self, generator):
        self.generator = generator

    def branch(self, prob):
        return False

    def choice(self, a, p=None):
        return self.generator.choice(a, p=p)


class Fair(Rejecting):
    def branch(self, prob):
        return self.generator.random() < prob


def made(batch, vocabulary, generator):
    logits = 3 * generator.standard_normal((batch, vocabulary))
    noisy = logits + 1.5 * generator.standard_normal((batch, vocabulary))
    rows = []
    for values in (logits, noisy):
        values = np.exp(values - values.max(axis=1, keepdims=True))
        rows.append(values / values.sum(axis=1, keepdims=True))
    return rows


def in_numpy(p, q, n, generator):
    """The jobs in NumPy, row by row."""
    batch, vocabulary = p.shape
    free = np.array([generator.choice(vocabulary, n, p=row) for row in q])
    drawn = {
        straddle: [rules.draft_strata(row, n, generator, straddle) for row in q]
        for straddle in ("independent", "once")
    }

    def over(rule, drafts, coins):
        def job():
            rng = coins(generator)
            for row in range(batch):
                rule(p[row], q[row], drafts[row], rng)

        return job

    def passes(straddle, levels):
        return lambda p, q, drafts, rng: rules.verify_level(p, q, drafts, rng, straddle, levels)

    jobs = {}
    for coins, word in ((Rejecting, "all passes"), (Fair, "until one is accepted")):
        jobs["recursive rejection, i.i.d. drafts", word] = over(rules.rrs, free, coins)
        jobs["one pass over strata", word] = over(passes("independent", (0.0,)), drawn["independent"], coins)
        for straddle in drawn:
            name = f"level-4 over strata, straddle {straddle}"
            jobs[name, word] = over(passes(straddle, rules.STRATA_LEVELS), drawn[straddle], coins)
        jobs["level-4, i.i.d. drafts", word] = over(rules.level_4_iid, free, coins)
    jobs["drafting: n draws from q", ""] = lambda: [generator.choice(vocabulary, n, p=row) for row in q]
    jobs["drafting: strata", ""] = lambda: [rules.draft_strata(row, n, generator) for row in q]
    return jobs


def in_torch(p, q, n):
    """The jobs in torch, in single precision on the processor."""
    import torch

    from specgap import kernels

    torch.set_num_threads(1)
    p, q = (torch.tensor(rows, dtype=torch.float32) for rows in (p, q))
    torch.manual_seed(0)
    free = torch.multinomial(q, n, replacement=True)
    coins = torch.rand(len(q), 64)

    def rejection():
        left = p
        kept = []
        for k in range(n):
            x = free[:, k : k + 1]
            kept.append(coins[:, k : k + 1] * q.gather(1, x) < left.gather(1, x))
            left = (left - q).clamp(min=0)
            left = left / left.sum(1, keepdim=True)
        return kept, torch.multinomial(left, 1)

    jobs = {("recursive rejection, i.i.d. drafts", "torch"): rejection}
    for straddle in ("independent", "once"):
        drafts = kernels.draft_strata(q, n, coins[:, :n], straddle)
        jobs[f"level-4 over strata, straddle {straddle}", "torch"] = (
            lambda drafts=drafts, straddle=straddle: kernels.verify_level(p, q, drafts, coins, straddle)
        )
    jobs["level-4, i.i.d. drafts", "torch"] = lambda: kernels.verify_level_iid(p, q, free, coins)
    return jobs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", type=int, default=131_072)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--drafts", type=int, default=4)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--torch", action="store_true")
    args = parser.parse_args()
    generator = np.random.default_rng(1)
    p, q = made(args.batch, args.vocabulary, generator)
    jobs = in_numpy(p, q, args.drafts, generator)
    if args.torch:
        jobs |= in_torch(p, q, args.drafts)
    least = dict.fromkeys(jobs, float("inf"))
    for _ in range(args.runs):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            least[name] = min(least[name], time.process_time() - start)
    print(f"V = {args.vocabulary:,}, {args.batch} rows, n = {args.drafts}, least of {args.runs} runs; "
          f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| | coins | ms | over recursive rejection |\n| --- | --- | --- | --- |")
    for (what, word), took in least.items():
        against = least.get(("recursive rejection, i.i.d. drafts", word))
        ratio = f"{took / against:.2f}" if against else ""
        print(f"| {what} | {word} | {1e3 * took:.0f} | {ratio} |")


if __name__ == "__main__":
    main()

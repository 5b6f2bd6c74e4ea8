"""What `include/specgap.h` takes beside `specgap_core`, on the same rows and coins, in turn, on one thread.

    pip install specgap numpy
    python python/benches/header.py [--vocabulary 151936] [--rows 16] [--runs 7] [--flags=-march=native]

Rows are made: logits of spread 3, the draft's with noise of spread 1.5, in f32. `carried-block` is beside
`specgap.carried` in NumPy. What counts is the least of several runs. Both have to come to the same. Prints Markdown.
"""

import argparse
import ctypes
import os
import pathlib
import sys
import time

import numpy as np

from specgap import _native, carried

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts" / "conformance"
sys.path.insert(0, str(SCRIPTS))

import c_kernel  # noqa: E402

TREES = {  # parents, the law of drafts, levels at the root
    "level-4, 4 strata": ([0] * 4, "stratified", [[0.8, 0.5, 0.2, 0.0], [0.0]]),
    "rejection, 4 i.i.d. drafts": ([0] * 4, "with-replacement", [[0.0]]),
    "block, a chain of 4": ([0, 1, 2, 3], "with-replacement", [[0.0]]),
    "traversal-4, a tree 4-2-1": ([0] * 4 + [1, 1, 2, 2, 3, 3, 4, 4] + list(range(5, 13)), "stratified", [[0.8, 0.5, 0.2, 0.0], [0.0]]),
}


class Stops:
    """Coins for `specgap.carried`, from the last draft on."""

    def __init__(self, coins):
        self.stops, self.last = list(coins[:-1])[::-1], coins[-1]

    def choice(self, a, p):
        if a == 2:
            return int(self.stops.pop(0) < p[1])
        return min(int(np.searchsorted(np.cumsum(p), self.last, side="right")), a - 1)


def made(rows, vocabulary, generator):
    logits = 3 * generator.standard_normal((rows, vocabulary))
    noisy = logits + 1.5 * generator.standard_normal((rows, vocabulary))
    both = [np.exp(values - values.max(axis=1, keepdims=True)) for values in (logits, noisy)]
    return [(values / values.sum(axis=1, keepdims=True)).astype(np.float32) for values in both]


def jobs_of(rows, vocabulary, flags, generator):
    """By name: what the header does, and what it is beside, as functions without arguments."""
    library, kept = c_kernel.compiled(SCRIPTS / "header_kernel.c", *flags)
    header = ctypes.CDLL(library)
    pointer = lambda array: ctypes.c_void_p(array.ctypes.data)  # noqa: E731
    jobs = {}
    for name, (parents, law, levels) in TREES.items():
        nodes, rounds = len(parents), []
        for _ in range(rows):
            p, q = made(nodes + 1, vocabulary, generator)
            tokens = [0] * nodes
            for row in sorted(set(parents)):
                own = [i for i, parent in enumerate(parents) if parent == row]
                drafts = _native.draft_rows(q[row : row + 1], len(own), law, generator.random((1, len(own))))[0]
                for node, token in zip(own, drafts):
                    tokens[node] = int(token)
            rounds.append((p, q, tokens, generator.random(nodes + 1)))
        up, deep, iid = np.array(parents, np.int32), len(levels[0]), int(law == "with-replacement")

        def c(rounds=rounds, up=up, deep=deep, iid=iid, nodes=nodes):
            found = []
            for p, q, tokens, coins in rounds:
                ids, path, token = np.array(tokens, np.int32), np.zeros(nodes, np.int32), np.zeros(1, np.int32)
                count = header.verify_tree(pointer(p), pointer(q), vocabulary, nodes, pointer(ids), pointer(up), iid, deep, 1,
                                           pointer(coins), pointer(path), pointer(token))
                found.append((path[:count].tolist(), int(token[0])))
            return found

        def core(rounds=rounds, parents=parents, law=law, levels=levels):
            return [_native.verify_tree(p, q, tokens, parents, law, True, levels, coins) for p, q, tokens, coins in rounds]

        jobs[name] = c, core, "specgap_core"
    p, q = made(5 * rows, vocabulary, generator)
    four, drafted = generator.random((5 * rows, 4)), np.zeros((5 * rows, 4), np.int32)

    def strata():
        for row, numbers, drafts in zip(q, four, drafted):
            header.draft_strata(pointer(row), vocabulary, 4, pointer(numbers), pointer(drafts))
        return drafted.tolist()

    jobs["drafting 4 strata, 5 rows"] = strata, lambda: _native.draft_rows(q, 4, "stratified", four).tolist(), "specgap_core"
    coins = generator.random((rows, 5))
    drafts = [[int(x) for x in _native.draft_rows(q[5 * i : 5 * i + 4], 1, "with-replacement", coins[i, :4, None])[:, 0]] for i in range(rows)]
    kernel = c_kernel.Rule("carried_block", header.carried_block)
    start = np.eye(5)[0][:, None] * np.ones(2)

    def chain():
        found = [kernel.rounds(p[5 * i : 5 * i + 5], q[5 * i : 5 * i + 5], drafts[i], coins[i : i + 1, :4], coins[i, 4:], carry=start) for i in range(rows)]
        return [(int(kept[0]), int(token[0])) for kept, token, _ in found]

    wide_p, wide_q = (one.astype(float) / one.astype(float).sum(1, keepdims=True) for one in (p, q))

    def chain_in_numpy():
        own = [carried.CarriedBlock(4) for _ in range(rows)]
        return [own[i].verify(wide_p[5 * i : 5 * i + 5], wide_q[5 * i : 5 * i + 5], drafts[i], Stops(coins[i])) for i in range(rows)]

    jobs["carried-block, a chain of 4"] = chain, chain_in_numpy, "specgap.carried"
    header.specgap_kept = kept
    return jobs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--flags", default="-march=native", help="for the compiler, beside -O3")
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    jobs = jobs_of(args.rows, args.vocabulary, args.flags.split(), np.random.default_rng(1))
    print(f"V = {args.vocabulary:,}, {args.rows} rounds, least of {args.runs} runs, load {os.getloadavg()[0]:.1f}\n")
    print("| | header, ms a round | beside it | ratio |\n| --- | --- | --- | --- |")
    for name, (c, other, beside) in jobs.items():
        least = [float("inf")] * 2
        for _ in range(args.runs):
            found = []
            for i, job in enumerate((c, other)):
                start = time.process_time()
                found.append(job())
                least[i] = min(least[i], time.process_time() - start)
        alike = sum(one == two for one, two in zip(*found))
        own, its = (1e3 * one / args.rows for one in least)
        print(f"| {name} | {own:.2f} | {its:.2f} ({beside}; {alike} of {len(found[0])} alike) | {own / its:.2f} |")


if __name__ == "__main__":
    main()

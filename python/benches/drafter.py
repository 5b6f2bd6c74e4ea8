"""What an evaluation by sg.drafter costs, against torch's own overlap.

    pip install torch; PYTHONPATH=python python python/benches/drafter.py \
        [--rows 64] [--depth 4] [--vocabulary 128256] [--draft-vocabulary 32000] [--runs 7] [--dtype float32]

Rows are made: logits of spread 3, the draft's with noise of spread 1.5, [1, T, V] and [1, T, K, V]. The
base is `torch.minimum(softmax(p), softmax(q)).sum(-1)`, a depth at a time, each softmax of p made once. It gives
overlaps alone; `add` gives ln p and ln q of the text's tokens, hits, p of hits, the largest q, overlap, entropy and
its square besides. All jobs run in turn in one process; what counts is the least of several runs, in seconds by
the clock. Memory is how much a process of its own grows beyond the rows. Prints Markdown.
"""

import argparse
import ctypes
import os
import re
import subprocess
import sys
import time
import warnings

import torch

import specgap as sg

JOBS = ("overlap", "add", "add, d2t", "add, top_p")
WORDS = {
    "overlap": "torch: sum of min(softmax, softmax)",
    "add": "sg.drafter, add",
    "add, d2t": "sg.drafter, add with d2t",
    "add, top_p": "sg.drafter, add with top_p = 0.95",
}


def overlap(target, draft):
    p = torch.softmax(target.float(), -1)
    depth = draft.shape[2]
    length = target.shape[1]
    return [
        torch.minimum(p[:, j:], torch.softmax(draft[:, : length - j, j].float(), -1)).sum(-1)
        for j in range(depth)
    ]


def made(args):
    torch.manual_seed(1)
    dtype = getattr(torch, args.dtype)
    target = 3 * torch.randn(1, args.rows, args.vocabulary)
    draft = torch.empty(1, args.rows, args.depth, args.vocabulary, dtype=dtype)
    for j in range(args.depth):
        for s in range(args.rows - j):
            draft[0, s, j] = (target[0, s + j] + 1.5 * torch.randn(args.vocabulary)).to(dtype)
        draft[0, args.rows - j :, j] = 0
    tokens = torch.multinomial(torch.softmax(target[0], -1), 1).T
    return target.to(dtype), draft, tokens


def job(name, args, rows):
    target, draft, tokens = rows
    if name == "overlap":
        return lambda: overlap(target, draft)
    asked = {"top_p": 0.95} if "top_p" in name else {}
    more = {}
    if "d2t" in name:
        draft = draft[..., : args.draft_vocabulary].contiguous()
        more["d2t"] = torch.zeros(args.draft_vocabulary, dtype=torch.int64)
    if "top_p" in name:
        p = torch.softmax(target[0].float(), -1)
        tokens = p.argmax(-1)[None]

    def add():
        sg.drafter(depth=args.depth, **asked).add(target, draft, tokens, [0], **more)

    return add


def most_held():
    """The most that this process has held since it was last asked, and what it holds, in MiB; of Linux."""
    # What was freed is given back first.
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/status", encoding="ascii") as file:
        said = dict(re.findall(r"(Vm\w+):\s+(\d+) kB", file.read()))
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return int(said["VmHWM"]) / 1024, int(said["VmRSS"]) / 1024


def grown(name, args):
    """How much a process grows beyond the rows, in MiB."""
    words = [sys.executable, os.path.abspath(__file__), "--memory-of", name]
    for key in ("rows", "depth", "vocabulary", "draft_vocabulary", "dtype"):
        words += [f"--{key.replace('_', '-')}", str(getattr(args, key))]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=128_256)
    parser.add_argument("--draft-vocabulary", type=int, default=32_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.threads:
        torch.set_num_threads(args.threads)
    rows = made(args)
    if args.memory_of:
        run = job(args.memory_of, args, rows)
        # Threads and tables of torch come with the first call.
        small = argparse.Namespace(**vars(args) | {"vocabulary": 1000, "draft_vocabulary": 500})
        job(args.memory_of, small, made(small))()
        _, before = most_held()
        run()
        print(most_held()[0] - before)
        return
    jobs = {name: job(name, args, rows) for name in JOBS}
    least = dict.fromkeys(jobs, float("inf"))
    for _ in range(args.runs):
        for name, run in jobs.items():
            start = time.perf_counter()
            run()
            least[name] = min(least[name], time.perf_counter() - start)
    size = sum(one.numel() * one.element_size() for one in rows[:2]) / 2**20
    print(f"{args.rows} rows x depth {args.depth}, V = {args.vocabulary:,}, {args.dtype} ({size:.0f} MiB of rows), "
          f"least of {args.runs} runs, {torch.get_num_threads()} threads; load {os.getloadavg()[0]:.1f} on "
          f"{os.cpu_count()} cores\n")
    print("| | ms | over the overlap | memory beyond the rows, MiB |\n| --- | --- | --- | --- |")
    for name, took in least.items():
        print(f"| {WORDS[name]} | {1e3 * took:.0f} | {took / least['overlap']:.2f} | {grown(name, args):.0f} |")


if __name__ == "__main__":
    main()

"""What a loss costs: alpha* of n drafts, forward and backward, against torch's own overlap.

    pip install torch; PYTHONPATH=python python python/benches/alpha_star.py \
        [--rows 256] [--vocabulary 128256] [--drafts 3] [--runs 5] [--threads 0] [--slow]

Rows are made: float32 logits of spread 3, the draft's with noise of spread 1.5; both need a gradient. All
jobs run in turn in one process, on as many threads as torch takes; what counts is the least of several
runs, in seconds by the clock. `--slow` adds the rules that are made of torch's operations, and the sort that
rows on a device take, with a quarter of the rows, times four. Prints Markdown.
"""

import argparse
import os
import time

import torch

import specgap as sg


def overlap(target, draft, n):
    return torch.minimum(torch.softmax(target, -1), torch.softmax(draft, -1)).sum(-1)


def alpha_star(target, draft, n):
    return sg.torch.alpha_star(target, draft, n, logits=True)


def several(target, draft, n):
    return sg.torch.alpha_star(target, draft, range(1, 5), logits=True)


def sorted_rows(target, draft, n):
    asked = sg.torch._asked(target, draft, n, True, 1.0)
    return sg.torch._of_device(asked, "with-replacement")


def rrs(target, draft, n):
    return sg.torch.rrs_rate(target, draft, n, logits=True)


def k_seq(target, draft, n):
    return sg.torch.k_seq_rate(target, draft, n, logits=True)


def level(target, draft, n):
    return sg.torch.level_rate(target, draft, n, True)


def level_of_strata(target, draft, n):
    return sg.torch.level_rate(target, draft, n, True, law="stratified")


def both(rate, target, draft, n):
    target.grad = draft.grad = None
    start = time.perf_counter()
    value = rate(target, draft, n)
    between = time.perf_counter()
    value.sum().backward()
    return between - start, time.perf_counter() - between


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=128_256)
    parser.add_argument("--drafts", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--slow", action="store_true")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    target = 3 * torch.randn(args.rows, args.vocabulary)
    draft = target + 1.5 * torch.randn(args.rows, args.vocabulary)
    whole = [target.requires_grad_(), draft.requires_grad_()]
    part = [rows.detach()[: args.rows // 4].clone().requires_grad_() for rows in whole]
    jobs = {
        "torch: sum of min(softmax, softmax)": (overlap, whole, 1),
        f"alpha_star, n = {args.drafts}": (alpha_star, whole, 1),
        "alpha_star, n = 1 to 4": (several, whole, 1),
    }
    if args.slow:
        jobs["rrs_rate"] = (rrs, part, 4)
        jobs["k_seq_rate"] = (k_seq, part, 4)
        jobs["level_rate"] = (level, part, 4)
        jobs["level_rate, strata"] = (level_of_strata, part, 4)
        jobs["alpha_star by a sort in torch"] = (sorted_rows, part, 4)
    least = {name: (float("inf"), float("inf")) for name in jobs}
    for _ in range(args.runs):
        for name, (rate, rows, times) in jobs.items():
            took = both(rate, *rows, args.drafts)
            least[name] = min(least[name], tuple(times * part for part in took), key=sum)
    print(f"[{args.rows}, {args.vocabulary:,}] float32, least of {args.runs} runs, "
          f"{torch.get_num_threads()} threads; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| | forward, s | backward, s | both, over the overlap |\n| --- | --- | --- | --- |")
    base = sum(next(iter(least.values())))
    for name, (forward, backward) in least.items():
        print(f"| {name} | {forward:.3f} | {backward:.3f} | {(forward + backward) / base:.2f} |")


if __name__ == "__main__":
    main()

"""Positions a second with one process, one worker of Ray and two, and what memory it takes.

    pip install WHEEL 'ray[data]' pyarrow
    python workers.py LOG [--positions 1000] [--sizes 500 2000] [--drafts 2] ...

The first positions of a log are written as Parquet, in row groups of 128 positions, and measured by
`specgap.gap` in this process on one thread, and by `specgap.ray` on a local cluster of one core and of
two. All reports have to be the same to the byte. Then the most memory that a process has held after
`gap` of two sizes, and that tasks of Ray have held. Prints Markdown. Rates of a machine that does
other work say little by themselves; what counts is two workers over one.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import specgap as sg

#: Run by itself: the most that `gap` of one log holds, in MB.
ALONE = """
import json, resource, sys
import specgap as sg
asked = json.loads(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sg.gap(sys.argv[1], threads=1, progress=False, **asked)
print(json.dumps([before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def part_of(log, positions, path):
    """The first positions of a log, as a log of its own."""
    import pyarrow.parquet as parquet

    whole = path / "whole.parquet"
    sg.Log.open(log).write_parquet(whole, row_group=128)
    table = parquet.read_table(whole).slice(0, positions)
    parquet.write_table(table, path / "rows.parquet", row_group_size=128, use_dictionary=False)
    whole.unlink()


def seconds(run):
    start = time.perf_counter()
    report = run()
    return time.perf_counter() - start, report.json


def with_workers(path, count, asked):
    """Seconds on a cluster of this many cores, once it runs, and the most memory of a task."""
    import ray

    from specgap.ray import MergeSummaries, shards, summarise_shard

    ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False

    def measured(row):
        done = summarise_shard(row)
        return {**done, "held": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}

    try:
        # Processes are started and the library is loaded before time is taken.
        shards(path, 64, drafts=1, temperature=1.0).limit(count).map(summarise_shard).materialize()
        start = time.perf_counter()
        data = shards(path, 12, **asked).map(measured, num_cpus=1).materialize()
        merged = data.aggregate(MergeSummaries("summary", alias_name="summary"))
        took = time.perf_counter() - start
        report = sg.Summary.from_bytes(merged["summary"]).report()
        return took, report.json, data.max("held")
    finally:
        ray.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs=2, default=[500, 2000])
    parser.add_argument("--drafts", type=int, nargs="+", default=[2])
    parser.add_argument("--temperature", type=float, nargs="+", default=[1.0])
    parser.add_argument("--schemes", nargs="+")
    parser.add_argument("--verifiers", nargs="+")
    args = parser.parse_args()
    asked = {name: getattr(args, name) for name in ("drafts", "temperature", "schemes", "verifiers")}
    asked = {name: value for name, value in asked.items() if value is not None}
    print(f"{args.log.name}, asked {json.dumps(asked)}; load {os.getloadavg()[0]:.1f} "
          f"on {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder) / args.log.name
        home.mkdir()
        part_of(args.log, args.positions, home)
        alone, expected = seconds(lambda: sg.gap(home, threads=1, progress=False, **asked))
        print("| | seconds | positions a second | times one process | bytes of the report |")
        print("| --- | --- | --- | --- | --- |")

        def row(what, took, text):
            same = "the same" if text == expected else "OTHER"
            print(f"| {what} | {took:.1f} | {args.positions / took:.0f} | {alone / took:.2f} | {same} |",
                  flush=True)

        row("one process, one thread", alone, expected)
        held = {}
        for count in (1, 2):
            took, text, held[count] = with_workers(str(home), count, asked)
            row(f"Ray, {count} worker{'s' * (count > 1)}", took, text)
        print(f"\nThe most that a task's process held: {held[1] / 1024:.0f} MB with one worker, "
              f"{held[2] / 1024:.0f} MB with two. Load {os.getloadavg()[0]:.1f}.\n")
        print("| positions | before, MB | the most, MB |\n| --- | --- | --- |")
        for size in args.sizes:
            place = pathlib.Path(folder) / str(size) / args.log.name
            place.mkdir(parents=True)
            part_of(args.log, size, place)
            ran = subprocess.run([sys.executable, "-c", ALONE, place, json.dumps(asked)],
                                 capture_output=True, text=True, check=True)
            before, most = json.loads(ran.stdout)
            print(f"| {size} | {before / 1024:.0f} | {most / 1024:.0f} |", flush=True)


if __name__ == "__main__":
    main()

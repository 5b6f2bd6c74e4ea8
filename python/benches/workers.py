"""Positions a second with one process, one worker of Ray and two, and what memory it takes.

    pip install WHEEL 'ray[data]' pyarrow
    python workers.py LOG [--positions 1000] [--sizes 500 2000] [--drafts 2] ...

The first positions of a log are written as Parquet, in row groups of 64 positions, and measured by
`specgap.gap` in this process on one thread, and by `specgap.ray` on a local cluster of one core and of
two. All reports have to be the same to the byte. Then the most memory that a process has held after
`gap` of two sizes, and that tasks of Ray have held. Prints Markdown. Rates of a machine that does
other work say little by themselves; what counts is two workers over one.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import specgap as sg

#: The most memory that a process has held, in KB. What getrusage tells is also its parent's.
HELD = """
def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
"""

#: Run by itself: the most that is held before and after `gap` of one log.
ALONE = HELD + """
import json, sys
import pyarrow.parquet
import specgap as sg
before = held()
sg.gap(sys.argv[1], threads=1, progress=False, **json.loads(sys.argv[2]))
print(json.dumps([before, held()]))
"""


def part_of(log, positions, path):
    """The first positions of a log, as a log of its own."""
    from specgap import _parquet

    rows = sg.Log.open(log)
    if positions > rows.positions:
        sys.exit(f"{log} has {rows.positions} positions; ask for as many or fewer")
    _parquet.write_parquet(
        rows, str(path / "rows.parquet"), row_group=64, compression="snappy", positions=positions
    )


def seconds(run):
    """Seconds, those of measuring, those of the processor, and the report."""
    start, used = time.perf_counter(), time.process_time()
    report = run()
    took = time.perf_counter() - start
    return took, took, time.process_time() - used, report.json


def with_workers(path, count, asked):
    """The same on a cluster of this many cores, once it runs; and the most memory of a task."""
    import ray

    from specgap.ray import MergeSummaries, shards, summarise_shard

    ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False

    def measured(row):
        names = {}
        exec(HELD, names)
        used = time.process_time()
        done = summarise_shard(row)
        return {**done, "held": names["held"](), "used": time.process_time() - used}

    try:
        # Processes are started and the library is loaded before time is taken.
        shards(path, 64, drafts=1, temperature=1.0).limit(count).map(summarise_shard).materialize()
        start = time.perf_counter()
        data = shards(path, 12, **asked).map(measured, num_cpus=1).materialize()
        measuring = time.perf_counter() - start
        merged = data.aggregate(MergeSummaries("summary", alias_name="summary"))
        took = time.perf_counter() - start
        report = sg.Summary.from_bytes(merged["summary"]).report()
        return took, measuring, data.sum("used"), report.json, data.max("held")
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
        one = seconds(lambda: sg.gap(home, threads=1, progress=False, **asked))
        print("| | seconds | of which measuring | positions a second, measuring | the tasks' seconds "
              "of the processor | report |")
        print("| --- | --- | --- | --- | --- | --- |")

        def row(what, took, measuring, used, text):
            same = "the same bytes" if text == one[3] else "OTHER"
            rate = args.positions / measuring
            print(f"| {what} | {took:.1f} | {measuring:.1f} | {rate:.0f} | {used:.1f} | {same} |",
                  flush=True)

        row("one process, one thread", *one)
        held = {}
        for count in (1, 2):
            *found, held[count] = with_workers(str(home), count, asked)
            row(f"Ray, {count} worker{'s' * (count > 1)}", *found)
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

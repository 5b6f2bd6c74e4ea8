#!/usr/bin/env python3
"""Gives specgap broken files of every kind that it reads, and looks what it does with them.

    python3 scripts/fuzz.py PROGRAM [--seconds 60] [--seed 0] [--breaker FUZZ] [--keep FOLDER]

The files are made by the test program `fuzz` (tests/fuzz, `--write`), which gives them to the
readers themselves too, thousands of times as often; what is tried here is the command around a
reader. FUZZ is that program; without it cargo builds and runs it. Each reader gets as many files as
any other. A run is fine if it ends within 30 seconds with exit code 0, 1, 2 or 4 and says nothing of a
panic or of an internal error. What is not fine is printed with its seed, and its file is kept in
FOLDER. Python's standard library is all it needs. Exit codes: 0 all runs were fine, 1 one was not,
2 the files to break could not be made.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINES = ROOT / "tests/fixtures/engines"
QUICK = ["--drafts", "1", "--temperature", "1.0", "-q"]
LIMIT = 30
# Files of each reader that are made at a time.
BATCH = 10


class Reader:
    """A target of the test program, whose inputs have a file's ending, and the command that reads them."""

    def __init__(self, name, ending, arguments):
        self.name, self.ending, self.arguments = name, ending, arguments


def readers(program: str, made: pathlib.Path) -> list:
    imported = made / "imported"
    done = subprocess.run(
        [
            program, "import", "--from", "vllm", "--target-rows", ENGINES / "vllm-scored-target.jsonl",
            "--draft-rows", ENGINES / "vllm-scored-draft.jsonl", "--prompt-tokens", "2", "--vocab", "64", "--out", imported,
        ],
        capture_output=True, cwd=made,
    )
    if done.returncode != 0:
        print(f"error: the log could not be made: {done.stderr.decode()}", file=sys.stderr)
        sys.exit(2)
    problem = ROOT / "problems/without-replacement/two-laws-sequential.toml"

    def beside(file):
        """The log's folder with another index."""
        folder = file.parent / "log"
        shutil.copytree(imported, folder, dirs_exist_ok=True)
        shutil.copy(file, folder / "log.json")
        return folder

    def engine(name, fixture, *more):
        """The target's export, or that of both models, which is known by its beginning."""
        draft = made / f"{name}-draft.jsonl"
        draft.write_text((ENGINES / f"{fixture}-draft.jsonl").read_text().splitlines()[0])

        def arguments(file):
            both = file.read_bytes().startswith(b'{"draft":{')
            files = [file] if both else ["--target", file, "--draft", draft, *more]
            return ["import", "--from", name, *files, "--vocab", 64, "--out", file.parent / "out", "-q"]

        return Reader(f"import {name}", ".jsonl", arguments)

    def by_depth(file):
        """Each of the commands that read by depth, in turn."""
        commands = [["length"], ["tree"], ["paths", "--length", 2], ["gap", "--depth", "1,2", *QUICK[:-1]]]
        name, *more = commands[sum(file.read_bytes()[-64:]) % len(commands)]
        return [name, file, *more, "-q"]

    return [
        Reader("problem toml", ".toml", lambda f: ["solve", f]),
        Reader("problem json", ".json", lambda f: ["solve", f]),
        Reader("certificate", ".json", lambda f: ["certify", problem, f]),
        Reader("log.json", ".json", lambda f: ["gap", beside(f), *QUICK]),
        Reader("safetensors", ".safetensors", lambda f: ["gap", f, *QUICK]),
        Reader("npz", ".npz", lambda f: ["gap", f, *QUICK]),
        Reader("log by depth", ".safetensors", by_depth),
        Reader("tokens csv", ".csv", lambda f: ["length", f, "-q"]),
        Reader("tokens jsonl", ".jsonl", lambda f: ["length", f, "-q"]),
        Reader("counters text", ".txt", lambda f: ["counters", f, "-q"]),
        Reader("counters json", ".json", lambda f: ["counters", f, "--cost-ratio", 0.1, "-q"]),
        Reader("summary", ".json", lambda f: ["merge", f, "-q"]),
        Reader("tree", ".json", lambda f: ["tree", imported, "--trees", f, "-q"]),
        Reader("timings json", ".json", lambda f: ["length", imported, "--timings", f, "-q"]),
        Reader("timings toml", ".toml", lambda f: ["length", imported, "--timings", f, "-q"]),
        engine("vllm", "vllm-scored", "--prompt-tokens", 2),
        engine("sglang", "sglang-cold"),
        engine("llama-cpp", "llama-cpp"),
    ]


def broken(breaker: list, seed: int, first: int, folder: pathlib.Path) -> None:
    """Writes inputs `first`, `first` + 1 and so on of all readers: `folder/READER/NUMBER`."""
    done = subprocess.run(
        [*breaker, "--write", str(folder), "--runs", str(BATCH), "--first", str(first), "--seed", str(seed)],
        capture_output=True, cwd=ROOT,
    )
    if done.returncode != 0:
        print(f"error: {breaker}: {done.stderr.decode()}", file=sys.stderr)
        sys.exit(2)


def fault(program: str, reader: Reader, file: pathlib.Path) -> tuple:
    """The exit code, and what is wrong with the run, if anything is."""
    try:
        done = subprocess.run(
            [program, *map(str, reader.arguments(file))], capture_output=True, timeout=LIMIT, cwd=file.parent,
        )
    except subprocess.TimeoutExpired:
        return None, f"no end after {LIMIT} s"
    said = done.stderr.decode(errors="replace")
    if done.returncode in (0, 1, 2, 4) and "panicked" not in said and "internal error" not in said:
        return done.returncode, None
    return done.returncode, f"exit code {done.returncode}: {said[:400]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cargo", default="--features parquet", help="what cargo is told of features to run it")
    parser.add_argument("--breaker", help="the test program that makes the files, if cargo is not to run it")
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "target/fuzz")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    breaker = ["cargo", "test", *options.cargo.split(), "--locked", "--test", "fuzz", "--"]
    if options.breaker:
        breaker = [str(pathlib.Path(options.breaker).resolve())]
    faults, first = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder)
        everything = readers(program, made)
        counts = {reader.name: {0: 0, 1: 0, 2: 0} for reader in everything}
        # cargo may have to build the breaker first.
        broken(breaker, options.seed, 0, made / "files")
        end = time.monotonic() + options.seconds
        while True:
            for number in range(first, first + BATCH):
                for reader in everything:
                    if time.monotonic() > end:
                        break
                    here = made / f"run-{number}-{reader.name.replace(' ', '-')}"
                    here.mkdir()
                    file = here / f"input{reader.ending}"
                    (made / "files" / reader.name / str(number)).rename(file)
                    code, message = fault(program, reader, file)
                    if message is None:
                        counts[reader.name][code] += 1
                    else:
                        faults += 1
                        options.keep.mkdir(parents=True, exist_ok=True)
                        kept = options.keep / f"{here.name}-{options.seed}{reader.ending}"
                        shutil.copy(file, kept)
                        print(f"error: {reader.name}, seed {options.seed}, input {number}: {message}\n"
                              f"    kept as {kept}", file=sys.stderr)
                    shutil.rmtree(here)
            shutil.rmtree(made / "files")
            if time.monotonic() > end:
                break
            first += BATCH
            broken(breaker, options.seed, first, made / "files")
        for reader in everything:
            codes = ", ".join(f"{code}: {count}" for code, count in counts[reader.name].items())
            print(f"{reader.name}: {sum(counts[reader.name].values())} runs; exit codes {codes}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

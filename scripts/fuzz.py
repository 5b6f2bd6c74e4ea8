#!/usr/bin/env python3
"""Breaks files of every kind that specgap reads, and looks what it does with them.

    python3 scripts/fuzz.py PROGRAM [--seconds 60] [--seed 0] [--keep FOLDER]

Each reader gets an equal part of the time. A run is fine if it ends within 30 seconds with exit
code 0, 1 or 2 and says nothing of a panic or of an internal error. What is not fine is printed with
its seed, and its file is kept in FOLDER. Python's standard library is all it needs. Exit codes: 0
all runs were fine, 1 one was not, 2 the files to break could not be made.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "tests/fixtures/logs"
ENGINES = ROOT / "tests/fixtures/engines"
QUICK = ["--drafts", "2", "--temperature", "1.0", "-q"]
LIMIT = 30

WORDS = [
    b"null", b"true", b"[]", b"{}", b'""', b"-1", b"0", b"1e308", b"-1e-320", b"1e999", b"NaN",
    b"18446744073709551616", b"9223372036854775807", b"4294967296", b'"1/0"', b'"1/3"', b"[[]]",
    b'"\\ud800"', b"\xff\xfe", b"\x00", b"\r\n", b",", b"[" * 500, b"{" * 500,
]


def break_bytes(rng: random.Random, data: bytes) -> bytes:
    """A few cuts, repetitions, flips and foreign words."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, other = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        kind = rng.randrange(7)
        if kind == 0:
            del data[at : min(other, at + rng.choice((1, 8, 100, 10**6)))]
        elif kind == 1:
            data[at:at] = data[at : min(other, at + 200)]
        elif kind == 2 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 3:
            data[at:at] = rng.choice(WORDS)
        elif kind == 4 and at < len(data):
            data[at : at + 8] = rng.randbytes(8)
        elif kind == 5:
            # A number somewhere becomes another one.
            digits = [i for i in range(len(data)) if 48 <= data[i] <= 57][:5000]
            if digits:
                place = rng.choice(digits)
                data[place : place + 1] = rng.choice(WORDS[5:14])
        else:
            del data[at:]
    return bytes(data)


def break_json(rng: random.Random, data: bytes) -> bytes:
    """One value of a JSON text replaced, dropped, doubled or renamed; else bytes."""
    if rng.random() < 0.4:
        return break_bytes(rng, data)
    try:
        value = json.loads(data)
    except ValueError:
        return break_bytes(rng, data)
    places = []

    def walk(node):
        keys = node.keys() if isinstance(node, dict) else range(len(node))
        for key in keys:
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    if not isinstance(value, (dict, list)) or not value:
        return break_bytes(rng, data)
    walk(value)
    strange = [
        None, True, -1, 0, 1, 2**63, 2**64, 1e308, -0.5, 0.1, "", "x", "1/3", "0", [], {}, [[0]], [0],
    ]
    for _ in range(rng.choice((1, 1, 2))):
        node, key = rng.choice(places)
        try:
            kind = rng.randrange(4)
            if kind == 0:
                del node[key]
            elif kind == 1 and isinstance(node, list):
                node.insert(key, node[key])
            elif kind == 2 and isinstance(node, dict):
                node[rng.choice(("x", "schema", key + key))] = node.pop(key)
            else:
                node[key] = rng.choice(strange)
        except (KeyError, IndexError):
            pass
    return json.dumps(value).encode()


class Reader:
    """Files that are broken one at a time, and the command that reads them."""

    def __init__(self, name, files, arguments, breaking):
        self.name, self.files, self.arguments, self.breaking = name, files, arguments, breaking


def readers(program: str, made: pathlib.Path) -> list:
    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, cwd=made)
        if done.returncode != 0:
            print(f"error: {arguments}: {done.stderr.decode()}", file=sys.stderr)
            sys.exit(2)

    imported = made / "imported"
    run(
        "import", "--from", "vllm", "--target", ENGINES / "vllm-scored-target.jsonl",
        "--draft", ENGINES / "vllm-scored-draft.jsonl", "--prompt-tokens", 2, "--vocab", 64, "--out",
        imported,
    )
    run("gap", LOGS / "numpy-stored.npz", *QUICK, "--partial", made / "part")
    problems = sorted((ROOT / "problems").rglob("*.toml"), key=lambda file: file.stat().st_size)
    problems = [file for file in problems if file.stat().st_size < 1500]
    shard = next(imported.glob("*.safetensors"), None) or next(imported.glob("*.npz"))
    tree, timings = made / "tree.json", made / "timings.json"
    tree.write_text("[[0],[1],[0,0],[0,0,0]]")
    steps = {"target_step": {"seconds": 0.02, "standard_error": 0.0001}, "draft_step": {"seconds": 0.002}}
    passes = [{"tokens": 1, "seconds": 0.02}, {"tokens": 5, "seconds": 0.024, "standard_error": 0.0002}]
    timings.write_text(json.dumps({"schema": 1, **steps, "overhead": {"seconds": 0.0004}, "verify": passes}))
    certificate = ROOT / "tests/fixtures/certificates/valid.json"
    problem = ROOT / "problems/without-replacement/two-laws-sequential.toml"
    measured = ["--drafts", "1", "--temperature", "1.0", "-q"]

    def beside(file, name):
        """The log's folder with one file of it replaced."""
        folder = file.parent / "log"
        shutil.copytree(imported, folder, dirs_exist_ok=True)
        shutil.copy(file, folder / name)
        return folder

    everything = [
        Reader("problem", problems, lambda f: ["solve", f], break_bytes),
        Reader("certificate", [certificate], lambda f: ["certify", problem, f], break_json),
        Reader("log.json", [imported / "log.json"],
               lambda f: ["gap", beside(f, "log.json"), *measured], break_json),
        Reader("safetensors", [shard], lambda f: ["gap", beside(f, shard.name), *measured], break_bytes),
        Reader("npz", [LOGS / "numpy-stored.npz", LOGS / "numpy-compressed.npz"],
               lambda f: ["gap", f, *measured], break_bytes),
        Reader("summary", [made / "part"], lambda f: ["merge", f, "-q"], break_json),
        Reader("tree", [tree], lambda f: ["tree", imported, "--topology", f, "-q"], break_json),
        Reader("timings", [timings], lambda f: ["length", imported, "--timings", f, "-q"], break_json),
    ]
    for engine, name in [("vllm", "vllm-scored"), ("sglang", "sglang-cold"), ("llama-cpp", "llama-cpp")]:
        draft = ENGINES / f"{name}-draft.jsonl"
        everything.append(Reader(
            f"import {engine}", [ENGINES / f"{name}-target.jsonl"],
            lambda f, engine=engine, draft=draft: [
                "import", "--from", engine, "--target", f, "--draft", draft, "--prompt-tokens", 2,
                "--vocab", 64, "--out", f.parent / "out", "-q",
            ],
            break_bytes,
        ))
    return everything


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "target/fuzz")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder)
        all_readers = readers(program, made)
        for reader in all_readers:
            end = time.monotonic() + options.seconds / len(all_readers)
            counts = {0: 0, 1: 0, 2: 0}
            number = 0
            while time.monotonic() < end:
                rng = random.Random(f"{options.seed} {reader.name} {number}")
                number += 1
                source = rng.choice(reader.files)
                with tempfile.TemporaryDirectory(dir=made) as here:
                    file = pathlib.Path(here) / (source.name if source.suffix else f"{source.name}.json")
                    file.write_bytes(reader.breaking(rng, source.read_bytes()))
                    try:
                        done = subprocess.run(
                            [program, *map(str, reader.arguments(file))],
                            capture_output=True, timeout=LIMIT, cwd=here,
                        )
                        code, said = done.returncode, done.stderr.decode(errors="replace")
                    except subprocess.TimeoutExpired:
                        code, said = None, f"no end after {LIMIT} s"
                    if code in counts and "panicked" not in said and "internal error" not in said:
                        counts[code] += 1
                        continue
                    faults += 1
                    options.keep.mkdir(parents=True, exist_ok=True)
                    kept = options.keep / f"{reader.name.replace(' ', '-')}-{options.seed}-{number - 1}{file.suffix}"
                    shutil.copy(file, kept)
                    print(f"error: {reader.name}, seed {options.seed}, run {number - 1}: exit code "
                          f"{code}: {said[:400]}\n    kept as {kept}", file=sys.stderr)
            print(f"{reader.name}: {number} runs; exit codes " +
                  ", ".join(f"{code}: {count}" for code, count in counts.items()))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

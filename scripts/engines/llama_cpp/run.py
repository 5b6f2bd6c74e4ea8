"""The engine of this folder on the real pair: its texts audited, and tokens per call beside what a replay predicts.

    models/build gguf
    cmake -S LLAMA -B build -DBUILD_SHARED_LIBS=ON && cmake --build build --target llama -j
    c++ -std=c++17 -O3 -march=native -Iinclude -ILLAMA/include -ILLAMA/ggml/include scripts/engines/llama_cpp/engine.cpp \\
        -Lbuild/bin -lllama -lggml -lggml-base -Wl,-rpath,build/bin -o build/engine
    python scripts/engines/llama_cpp/run.py build/engine models/out --specgap target/release/specgap

LLAMA is llama.cpp's source; `pip download --no-binary llama-cpp-python --no-deps llama-cpp-python` has it in
vendor/llama.cpp. Needs NumPy and tokenizers. Exits with 1 if an audit refutes a text, or a prediction is off by more
than both intervals.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from texts import HONEST, audited, concluded, tokenized, write_log  # noqa: E402

# The engine's rules, and the trees that they run on.
RULES = {"plain": "1", "token": "4", "block": "4", "carried-block": "4", "level-4": "4", "traversal": "4-2-1", "traversal-4": "4-2-1"}
CHAINS = ("token", "block", "carried-block")


def said(specgap, *words):
    done = subprocess.run([specgap, *words, "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def log_of(folder, tokens):
    """Texts, rows and rounds as the engine wrote them, as a log; and calls by text."""
    table = np.genfromtxt(folder / "text.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    count = len(table) // tokens
    rows = {f"{of}_logits": np.fromfile(folder / f"{of}.f32", np.float32).reshape(len(table), -1) for of in ("target", "draft")}
    by_text = {name: np.split(array, count) for name, array in rows.items()}
    drafts = [[int(x) for x in str(words).split()] for words in table["drafts"]] if table["drafts"].dtype.kind in "US" else [[]]
    most = max(map(len, drafts))
    if most:
        padded = np.array([words + [-1] * (most - len(words)) for words in drafts])
        for name, array in (("accepted", table["accepted"]), ("round", table["round"]), ("drafts", padded)):
            by_text[name] = np.split(array, count)
    write_log(folder / "log.npz", np.split(table["token"], count), by_text, "llama.cpp, specgap.h")
    return [int((part >= 0).sum()) for part in np.split(table["accepted"], count)]


def predicted(specgap, log, rule, tree):
    """Tokens per call by a replay of these very texts, with an interval."""
    if rule in CHAINS:
        found = said(specgap, "length", log, "--lengths", tree, "--verifiers", ",".join(CHAINS))["bounds"]["fewest_calls"]
        return next(row for row in found[0]["above"] if row["rule"] == rule)["tokens_per_call"]
    name = f"prefix-{tree}"
    words = ["tree", log, "--topology", name, "--schemes", "stratified", "--verifiers", rule]
    return next(row for row in said(specgap, *words)["results"] if row["tree"] == name)["tokens_per_call"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, help="folder of `models/build gguf`")
    parser.add_argument("--specgap", required=True, help="the program")
    parser.add_argument("--out", type=pathlib.Path, help="keeps logs and audits here")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=32, help="tokens of each text")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--kind", default="f16", help="of weights")
    parser.add_argument("--rules", default=",".join(RULES))
    arguments = parser.parse_args()
    prompts = "".join(" ".join(map(str, ids)) + "\n" for ids in tokenized(arguments.models, arguments.prompts))
    models = [arguments.models / "gguf" / f"{name}-{arguments.kind}.gguf" for name in ("target", "draft")]
    kept, wrong = arguments.out or pathlib.Path(tempfile.mkdtemp()), 0
    for rule in arguments.rules.split(","):
        folder, tree = kept / rule, RULES[rule]
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--rule", rule, "--tree", tree, "--tokens", str(arguments.tokens), "--threads", arguments.threads]
        done = subprocess.run([arguments.engine, *models, folder, *options], input=prompts, stdout=subprocess.PIPE, text=True, check=True)
        calls, times = np.array(log_of(folder, arguments.tokens)), json.loads(done.stdout)
        log, per_call = folder / "log.npz", arguments.tokens * len(calls) / calls.sum()
        spread = 1.96 * calls.std(ddof=1) * math.sqrt(len(calls)) * per_call / calls.sum() if len(calls) > 1 else math.inf
        line = f"{rule}, {tree}: {per_call:.3f} ± {spread:.3f} tokens per call"
        if rule != "plain":
            by_replay = predicted(arguments.specgap, log, rule, tree)
            half = (by_replay["ci95"][1] - by_replay["ci95"][0]) / 2
            line += f", predicted {by_replay['mean']:.3f} ± {half:.3f}"
            wrong += abs(per_call - by_replay["mean"]) > spread + half
        for claim in ("text", rule) if rule in ("token", "block") else ("text",):
            audit = audited(arguments.specgap, log, claim)
            line += f"; audit of {claim}: {concluded(audit)}, 1e{max(part['log10_e_value'] for part in audit['parts']):.1f}"
            wrong += concluded(audit) not in HONEST.split(" or ")
        print(f"{line}; {times['tokens'] / times['seconds']:.1f} tokens/s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Tokens a second of `specgap capture` and of the same graphs driven from Python.

Baseline: Python's onnxruntime, the same two graphs, the same prompts in the same
batches, greedy length (no stop tokens), inputs and caches kept as OrtValues so that
nothing is copied between steps, tokens drawn with NumPy. The baseline logs nothing,
while specgap writes both rows of every position. Loading the models is left out on
both sides. Runs alternate, so that a busy machine is unfair to neither. Several drafts are
measured one after the other, each with the target: --draft A.onnx --draft B.onnx.

    pip install -r benches/requirements.txt
    cargo build --release --features onnx
    python benches/capture_baseline.py --target T.onnx --draft D.onnx \
        --tokenizer tokenizer.json --prompts P.jsonl

A table follows: tokens a second of both sides, the median of the ratios of neighbouring runs
with the least and the largest, and tokens a second of the draft's graph alone, as specgap
counts them. Numbers are for people: no test asserts them.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer


class Model:
    """A graph with a key-value cache."""

    def __init__(self, path, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.past = [i for i in self.session.get_inputs() if i.name.startswith("past_key_values.")]
        self.has_positions = any(i.name == "position_ids" for i in self.session.get_inputs())

    def start(self, batch):
        self.cache = []
        for tensor in self.past:
            dtype = np.float16 if "16" in tensor.type else np.float32
            empty = np.zeros((batch, tensor.shape[1], 0, tensor.shape[3]), dtype)
            self.cache.append(ort.OrtValue.ortvalue_from_numpy(empty))

    def run(self, ids, mask, positions):
        """The rows of logits after the last token, [batch, V]."""
        binding = self.session.io_binding()
        binding.bind_cpu_input("input_ids", ids)
        binding.bind_cpu_input("attention_mask", mask)
        if self.has_positions:
            binding.bind_cpu_input("position_ids", positions)
        for tensor, value in zip(self.past, self.cache):
            binding.bind_ortvalue_input(tensor.name, value)
        binding.bind_output("logits")
        for tensor in self.past:
            binding.bind_output(tensor.name.replace("past_key_values", "present"))
        self.session.run_with_iobinding(binding)
        logits, *self.cache = binding.get_outputs()
        return logits.numpy()[:, -1]


def draw(logits, random):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64)
    cumulated = weights.cumsum(axis=1)
    points = random.random((len(logits), 1)) * cumulated[:, -1:]
    return (cumulated <= points).sum(axis=1).clip(max=logits.shape[1] - 1)


def python_run(target, draft, prompts, batch, max_tokens):
    """Seconds for all prompts."""
    random = np.random.default_rng(0)
    started = time.perf_counter()
    for first in range(0, len(prompts), batch):
        group = prompts[first : first + batch]
        length = max(map(len, group))
        ids = np.zeros((len(group), length), np.int64)
        mask = np.zeros((len(group), length), np.int64)
        for row, tokens in enumerate(group):
            ids[row, length - len(tokens) :] = tokens
            mask[row, length - len(tokens) :] = 1
        positions = (mask.cumsum(axis=1) - 1).clip(min=0)
        target.start(len(group))
        draft.start(len(group))
        for _ in range(max_tokens):
            logits = target.run(ids, mask, positions)
            draft.run(ids, mask, positions)
            ids = draw(logits, random)[:, None].astype(np.int64)
            mask = np.concatenate([mask, np.ones((len(group), 1), np.int64)], axis=1)
            positions = positions[:, -1:] + 1
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("target", "tokenizer", "prompts"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--draft", required=True, action="append", help="may be given more than once")
    parser.add_argument("--specgap", default="target/release/specgap")
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--limit", type=int, default=16, help="prompts to use")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    library = next(Path(ort.__file__).parent.joinpath("capi").glob("libonnxruntime.so*"))
    lines = Path(arguments.prompts).read_text().splitlines()[: arguments.limit]
    tokenizer = Tokenizer.from_file(arguments.tokenizer)
    prompts = [tokenizer.encode(json.loads(line)["prompt"]).ids for line in lines]
    tokens = len(prompts) * arguments.max_tokens
    target = Model(arguments.target, arguments.threads)
    table = []
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "prompts.jsonl"
        few.write_text("\n".join(lines) + "\n")
        for path in arguments.draft:
            draft = Model(path, arguments.threads)
            command = [arguments.specgap, "capture", "--format", "json", "--quiet", "--no-stop"]
            command += ["--target", arguments.target, "--draft", path]
            command += ["--tokenizer", arguments.tokenizer, "--prompts", str(few), "--device", "cpu"]
            command += ["--onnxruntime", str(library), "--threads", str(arguments.threads)]
            command += ["--batch", str(arguments.batch), "--max-tokens", str(arguments.max_tokens)]
            python_run(target, draft, prompts[:1], 1, 2)  # warm
            rates = {"python": [], "specgap": [], "draft": []}
            for number in range(arguments.rounds):
                seconds = python_run(target, draft, prompts, arguments.batch, arguments.max_tokens)
                rates["python"].append(tokens / seconds)
                out = Path(folder) / f"log-{number}"
                run = subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
                shutil.rmtree(out)
                output = json.loads(run.stdout)
                assert output["positions"] == tokens, output
                rates["specgap"].append(output["tokens_per_second"])
                rates["draft"].append(tokens / output["seconds"]["draft"])
                print(
                    f"{Path(path).stem}, round {number + 1}: python {rates['python'][-1]:.2f} tokens/s, "
                    f"specgap {rates['specgap'][-1]:.2f} tokens/s {output['seconds']}",
                    flush=True,
                )
            table.append((Path(path), rates))
            del draft
    print(
        f"\nmedians of {arguments.rounds} rounds, onnxruntime {ort.__version__}, {arguments.threads} threads, "
        f"batch {arguments.batch}, {tokens} tokens\n"
    )
    print("| draft | python, tokens/s | specgap, tokens/s | ratio (least to largest) | the draft alone, tokens/s |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for path, rates in table:
        ratios = [own / other for own, other in zip(rates["specgap"], rates["python"])]
        python, specgap, draft = (statistics.median(rates[name]) for name in ("python", "specgap", "draft"))
        print(
            f"| {path.stem} | {python:.1f} | {specgap:.1f} | {statistics.median(ratios):.3f} "
            f"({min(ratios):.3f} to {max(ratios):.3f}) | {draft:.1f} |"
        )


if __name__ == "__main__":
    main()

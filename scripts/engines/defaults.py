"""What engines' default ways of drafting give on a pair, and what strata with level passes would: the same texts
replayed, and each change paired by prompt.

    V/bin/python scripts/engines/defaults.py OUT/xllamacpp-plain/log.npz --specgap target/release/specgap \\
        --models models/out --results reports/engines/results

The log is of a run of `cpu_engines.py --models models/out --out OUT`: texts that a target wrote alone, with its
rows. The draft's rows come from draft.onnx. `specgap tree` replays each prompt by itself, which gives its expected
target calls. A change is the difference of tokens per call of all prompts together; its interval is that of the
jackknife over prompts.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from texts import Scorer, Text, tokenized, write_log

# Student's t for 95% at 39 degrees of freedom, for the 40 prompts.
STUDENT = 2.023
# Name, tree, law, verifier.
WAYS = (
    ("one-hot", "chain-4", "top", "exact-match"),
    ("sampled, exact match", "chain-4", "with-replacement", "exact-match"),
    ("sampled, rejection", "chain-4", "with-replacement", "token"),
    ("strata, as many tokens", "prefix-2-1", "stratified", "level-4"),
    ("strata, 20 tokens", "prefix-4-2-1", "stratified", "level-4"),
    ("the same, from the leaves", "prefix-4-2-1", "stratified", "traversal-4"),
)


def replayed(specgap: str, log: pathlib.Path) -> dict[str, float]:
    """Tokens per call of each way on a log."""
    columns = [",".join(dict.fromkeys(way[column] for way in WAYS)) for column in (1, 2, 3)]
    command = [specgap, "tree", log, "--format", "json", "--quiet"]
    for option, value in zip(("--trees", "--laws", "--verifiers"), columns, strict=True):
        command += [option, value]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found = {(row["tree"], row["scheme"], row["verifier"]): row for row in json.loads(done.stdout)["results"]}
    return {name: found[tuple(key)]["tokens_per_call"]["mean"] for name, *key in WAYS}


def ratio(tokens: np.ndarray, calls: np.ndarray, without: int | None = None) -> float:
    """Tokens per call of all prompts, or of all but one."""
    kept = np.arange(len(tokens)) != without
    return tokens[kept].sum() / calls[kept].sum()


def interval(values: list[float], value: float) -> tuple[float, float]:
    """A value and half of its 95% interval, from its values without one prompt each."""
    count = len(values)
    return value, STUDENT * math.sqrt((count - 1) / count * sum((one - np.mean(values)) ** 2 for one in values))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("--specgap", required=True, help="the program")
    parser.add_argument("--models", type=pathlib.Path, required=True, help="folder with draft.onnx and tokenizer.json")
    parser.add_argument("--results", type=pathlib.Path, required=True, help="notes the results in this folder")
    arguments = parser.parse_args()
    log = np.load(arguments.log)
    rows, output, prompt_id = log["target_logits"], log["output"], log["prompt_id"]
    prompts, scorer = tokenized(arguments.models, int(prompt_id.max()) + 1), Scorer(arguments.models / "draft.onnx")
    tokens, calls = [], {way[0]: [] for way in WAYS}
    for number, prompt in enumerate(prompts):
        here = prompt_id == number
        text = [int(token) for token in output[here]]
        with tempfile.TemporaryDirectory() as folder:
            one = pathlib.Path(folder) / "log.npz"
            write_log(one, [text], {"target_logits": [rows[here]], "draft_logits": [scorer.rows(Text(prompt, text, []))]}, "replay")
            per_call = replayed(arguments.specgap, one)
        tokens.append(len(text))
        for name, value in per_call.items():
            calls[name].append(len(text) / value)
        print(f"{number + 1} of {len(prompts)}", file=sys.stderr, flush=True)
    counts, spent = np.array(tokens), {name: np.array(value) for name, value in calls.items()}
    answer = {
        "date": datetime.date.today().isoformat(), "prompts": len(tokens), "tokens": int(counts.sum()),
        "ways": [], "script": "scripts/engines/defaults.py",
    }
    best = [way[0] for way in WAYS if way[2] == "stratified"]
    for name, tree, law, verifier in WAYS:
        left_out = {other: [ratio(counts, spent[other], leave) for leave in range(len(counts))] for other in spent}
        value, error = interval(left_out[name], ratio(counts, spent[name]))
        changes = {}
        for other in best if name not in best else ():
            differences = [more - less for more, less in zip(left_out[other], left_out[name], strict=True)]
            changes[other] = [round(x, 3) for x in interval(differences, ratio(counts, spent[other]) - value)]
        answer["ways"].append({
            "name": name, "tree": tree, "law": law, "verifier": verifier,
            "tokens_per_call": [round(value, 3), round(error, 3)], "changes": changes,
        })
    (arguments.results / "defaults.json").write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(answer, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`specgap.hf` on the real pair: a tree of strata in transformers' own `generate`, audited.

    models/build hf                   # models/out/hf/target, models/out/hf/draft
    pip install WHEEL torch transformers
    python scripts/engines/hf_tree.py models/out

Decodes the prompts with `specgap.hf.speculative`, which records its rows. `specgap audit --rule text` says whether
the texts follow the target, and `specgap tree` what the replay of these very texts predicts for tokens per call.
Exits with 1 if the audit refutes the text, or the prediction is off by more than its intervals allow. Stands for
the decoder of some hundred lines that this script was before `specgap.hf`.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import sys
import tempfile

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import specgap as sg
from specgap.hf import speculative
from texts import HONEST, PLAIN, chat_prompts, concluded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, help="folder with hf/target and hf/draft")
    parser.add_argument("--out", type=pathlib.Path, help="keeps the log and what is said of it")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=32, help="tokens of each text")
    parser.add_argument("--tree", default="4-2-1", help="children of a node at each depth")
    parser.add_argument("--rule", default="level-4")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    out = arguments.out or pathlib.Path(tempfile.mkdtemp())
    tokenizer = AutoTokenizer.from_pretrained(arguments.models / "hf/target")
    target, draft = (
        AutoModelForCausalLM.from_pretrained(arguments.models / "hf" / name, dtype=torch.float32).eval()
        for name in ("target", "draft")
    )
    target.generation_config.update(**PLAIN, pad_token_id=0, eos_token_id=None)
    decode = speculative(draft, arguments.tree, "stratified", arguments.rule, seed=0, record=out / "log")
    calls = []
    for number, prompt in enumerate(chat_prompts(arguments.prompts)):
        inputs, before = tokenizer(prompt, return_tensors="pt"), decode.rounds
        target.generate(**inputs, custom_generate=decode, max_new_tokens=arguments.tokens)
        calls.append(decode.rounds - before)
        print(f"{number + 1}: {arguments.tokens / calls[-1]:.2f} tokens per call", file=sys.stderr, flush=True)
    decode.close()
    audit, name = sg.audit(out / "log", rule="text"), f"prefix-{arguments.tree}"
    tree = sg.tree(out / "log", topology=[name], schemes=["stratified"], verifiers=[arguments.rule])
    for report, folder in ((audit, "audit"), (tree, "tree")):
        report.save(out / folder)
    rows = json.loads(tree.json)["results"]
    predicted = next(row for row in rows if row["tree"] == name)["tokens_per_call"]
    # Calls per text, less what the replay of that text expects, would be paired; from totals alone: the
    # spread over texts.
    spread = 1.96 * np.std(calls, ddof=1) * math.sqrt(len(calls)) * decode.tokens / sum(calls) ** 2
    print(f"tokens per call: {decode.tokens_per_call:.3f} ± {spread:.3f} here, {predicted['mean']:.3f} predicted by the replay")
    said = json.loads(audit.json)
    conclusion = concluded(said)
    print(f"audit of the text: {conclusion}, log10 e = {max(part['log10_e_value'] for part in said['parts']):.1f}")
    print(json.dumps(decode.stats))
    close = abs(decode.tokens_per_call - predicted["mean"]) <= spread + (predicted["ci95"][1] - predicted["ci95"][0]) / 2
    return 0 if conclusion in HONEST.split(" or ") and close else 1


if __name__ == "__main__":
    sys.exit(main())

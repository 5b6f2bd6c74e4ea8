"""Stratified drafts and the level rule in transformers: a tree of drafts on the real pair, audited.

    models/build target draft hf      # models/out/hf/target, models/out/hf/draft
    pip install WHEEL torch transformers
    python scripts/engines/hf_tree.py models/out --specgap target/release/specgap

Each round drafts the tree prefix-4-2-1 (20 tokens) from the draft model, each node's children by
`specgap.kernels.draft_strata`, verifies it in one pass of the target, and walks down by
`specgap.kernels.verify_level`: some forty lines, marked below. Then both models score the finished texts in
plain passes: `specgap audit --rule text` says whether they follow the target, and `specgap tree` what the
replay of these very texts predicts for tokens per call. Exits with 1 if the audit refutes the text, or the
prediction is off by more than its intervals allow.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, __version__

from specgap import kernels
from specgap.rules import STRATA_LEVELS
from texts import HONEST, chat_prompts, concluded, write_log

CHILDREN = (4, 2, 1)
TREE = "prefix-4-2-1"


class Model:
    """A causal model with the cache of one text; rows are probabilities in float64."""

    def __init__(self, path: pathlib.Path):
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="sdpa").eval()
        self.begin()

    def begin(self) -> None:
        self.cache, self.length = DynamicCache(config=self.model.config), 0

    def drop(self, count: int) -> None:
        """Forgets the last tokens."""
        if count:
            self.cache.crop(-count)

    @torch.no_grad()
    def rows(self, text: list[int], nodes: list[int], parents: list[int]) -> torch.Tensor:
        """The row behind a text, and behind each node of a tree that follows it: [1 + nodes, V].

        A node sees the text, its ancestors and itself. The text stays in the cache, the tree does not. Of a
        text that is there the last token is asked about again.
        """
        if self.length == len(text):
            self.drop(1)
            self.length -= 1
        pending, known = text[self.length :], self.length
        new = len(pending)
        size = new + len(nodes)
        sees = torch.zeros(size, known + size, dtype=torch.bool)
        sees[:, :known] = True
        depth = []
        for at in range(new):
            sees[at, known : known + at + 1] = True
        for at, parent in enumerate(parents):
            above = new - 1 if parent < 0 else new + parent
            sees[new + at] = sees[above]
            sees[new + at, known + new + at] = True
            depth.append(1 + (depth[parent] if parent >= 0 else 0))
        positions = [known + at for at in range(new)] + [known + new - 1 + d for d in depth]
        found = self.model(
            input_ids=torch.tensor([pending + nodes]),
            attention_mask=torch.zeros(1, 1, size, known + size).masked_fill(~sees, torch.finfo(torch.float32).min),
            position_ids=torch.tensor([positions]),
            past_key_values=self.cache, use_cache=True,
        )
        self.length = known + new
        self.drop(len(nodes))
        return torch.softmax(found.logits[0, new - 1 :].double(), dim=-1)

    @torch.no_grad()
    def scored(self, prompt: list[int], text: list[int]) -> np.ndarray:
        """Logits [text, V] of a plain pass."""
        found = self.model(input_ids=torch.tensor([prompt + text[:-1]]))
        return found.logits[0, len(prompt) - 1 :].float().numpy()


def round_of(target: Model, draft: Model, text: list[int], levels: int, coins: torch.Generator) -> list[int]:
    """The tokens of a round: a tree of so many levels is drafted, verified in one pass, and walked down."""
    # --- the draft: what an engine takes, from here ---
    nodes: list[int] = []
    parents: list[int] = []
    kids: dict[int, list[int]] = {}
    rows_of_draft: dict[int, torch.Tensor] = {}
    last = [-1]
    for children in CHILDREN[:levels]:
        rows = draft.rows(text, nodes, parents)
        following = []
        for node in last:
            q = rows[1 + node][None]
            rows_of_draft[node] = q
            drafts = kernels.draft_strata(q, children, torch.rand(1, children, generator=coins, dtype=torch.float64))
            kids[node] = []
            for token in drafts[0].tolist():
                # A row with fewer tokens than children has -1 behind them.
                kids[node].append(len(nodes) if token >= 0 else -1)
                if token >= 0:
                    following.append(len(nodes))
                    nodes.append(token)
                    parents.append(node)
        last = following
    # --- the pass and the walk ---
    rows = target.rows(text, nodes, parents)
    written, node = [], -1
    while True:
        p = rows[1 + node][None]
        if node not in kids:
            written.append(int(torch.multinomial(p[0], 1, generator=coins)))
            break
        drafts = torch.tensor([[nodes[kid] if kid >= 0 else -1 for kid in kids[node]]])
        uniform = torch.rand(1, len(STRATA_LEVELS) * drafts.shape[1] + 1, generator=coins, dtype=torch.float64)
        token, slot = kernels.verify_level(p, rows_of_draft[node], drafts, uniform)
        written.append(int(token))
        if int(slot) < 0:
            break
        node = kids[node][int(slot)]
    # --- to here ---
    return written


def decode(target: Model, draft: Model, prompt: list[int], tokens: int, seed: int) -> tuple[list[int], int]:
    """A text, and how many passes of the target wrote it."""
    target.begin()
    draft.begin()
    coins = torch.Generator().manual_seed(seed)
    text, calls = list(prompt), 0
    while (left := tokens - len(text) + len(prompt)) > 0:
        text += round_of(target, draft, text, min(len(CHILDREN), left - 1), coins)
        calls += 1
    return text[len(prompt) :], calls


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, help="folder with hf/target and hf/draft")
    parser.add_argument("--specgap", default="specgap", help="the program")
    parser.add_argument("--out", type=pathlib.Path, help="keeps the log and what is said of it")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=32, help="tokens of each text")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    out = arguments.out or pathlib.Path(tempfile.mkdtemp())
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = AutoTokenizer.from_pretrained(arguments.models / "hf/target")
    prompts = [tokenizer(prompt)["input_ids"] for prompt in chat_prompts(arguments.prompts)]
    target, draft = (Model(arguments.models / "hf" / name) for name in ("target", "draft"))
    texts, calls, rows = [], [], {"target_logits": [], "draft_logits": []}
    for seed, prompt in enumerate(prompts):
        text, passes = decode(target, draft, prompt, arguments.tokens, seed)
        texts.append(text)
        calls.append(passes)
        rows["target_logits"].append(target.scored(prompt, text))
        rows["draft_logits"].append(draft.scored(prompt, text))
        print(f"{seed + 1} of {len(prompts)}: {len(text) / passes:.2f} tokens per call", file=sys.stderr, flush=True)
    write_log(out / "log.npz", texts, rows, f"transformers {__version__}")
    answers = {}
    for name, more in {
        "audit": ["--rule", "text"],
        "tree": ["--trees", TREE, "--laws", "stratified", "--verifiers", "level-4"],
    }.items():
        command = [arguments.specgap, name, out / "log.npz", *more, "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1, 4):
            print(done.stderr, file=sys.stderr)
            return 2
        (out / f"{name}.json").write_text(done.stdout, encoding="utf-8")
        answers[name] = json.loads(done.stdout)
    predicted = next(
        row for row in answers["tree"]["results"]
        if (row["tree"], row["scheme"], row["verifier"]) == (TREE, "stratified", "level-4")
    )["tokens_per_call"]
    count, total = len(texts) * arguments.tokens, sum(calls)
    # Calls per text, less what the replay of that text expects, would be paired; from totals alone: the
    # spread over texts.
    spread = 1.96 * np.std(calls, ddof=1) * math.sqrt(len(calls)) * count / total**2
    print(f"tokens per call: {count / total:.3f} ± {spread:.3f} here, {predicted['mean']:.3f} predicted by the replay of these texts")
    conclusion = concluded(answers["audit"])
    print(f"audit of the text: {conclusion}, log10 e = {max(part['log10_e_value'] for part in answers['audit']['parts']):.1f}")
    close = abs(count / total - predicted["mean"]) <= spread + (predicted["ci95"][1] - predicted["ci95"][0]) / 2
    return 0 if conclusion in HONEST.split(" or ") and close else 1


if __name__ == "__main__":
    sys.exit(main())

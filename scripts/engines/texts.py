"""What the scripts of this folder share: prompts, logs of texts that an engine wrote, and the trial of an engine:
its texts in every mode, scored by one pass of the target's graph, audited, and noted as a result.

A result is one file an engine and pair in reports/engines/results; the tables of reports/engines/report.md are
made of these.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRAFTS = 4
# transformers takes what a call does not say from the model's generation_config, which may cut or penalise.
PLAIN = {
    "do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": None, "typical_p": 1.0,
    "epsilon_cutoff": 0.0, "eta_cutoff": 0.0, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0,
    "bad_words_ids": None, "suppress_tokens": None,
}


@dataclasses.dataclass
class Text:
    """One request: tokens are ids."""

    prompt: list[int]
    tokens: list[int]
    # Tokens that the engine masks, as it says itself.
    masked: list[int]


@dataclasses.dataclass
class Run:
    """What an engine did in one mode."""

    texts: list[Text]
    seconds: float
    # Accepted drafts a round, and other files worth keeping, if the engine counts.
    accepted: float | None = None
    failed: list[str] = dataclasses.field(default_factory=list)
    files: dict[str, str] = dataclasses.field(default_factory=dict)


# What an audit says of an engine that does what it claims: where the texts are short it wants more tokens.
HONEST = "as-claimed or undecided"


@dataclasses.dataclass(frozen=True)
class Mode:
    """A way to run an engine: its settings in words, and what the audit is expected to conclude.

    A conclusion that is no longer true is news: change it and the page. Where requests fail, the texts that are
    left are a choice, which the audit does not know of: hence `lossy or failing`.
    """

    name: str
    settings: str
    expected: str = HONEST


def chat_prompts(count: int) -> list[str]:
    """The first prompts of the repository's captures."""
    lines = (ROOT / "models/prompts/capture-chat.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["prompt"] for line in lines[:count]]


def tokenized(folder: pathlib.Path, count: int) -> list[list[int]]:
    """The same, as ids."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return [tokenizer.encode(prompt).ids for prompt in chat_prompts(count)]


def made_up(count: int) -> list[list[int]]:
    """Prompts of the fixture pair: four of its tokens each."""
    chosen = np.random.default_rng(7)
    return [chosen.integers(3, 299, 4).tolist() for _ in range(count)]


def write_log(path: pathlib.Path, texts: list[list[int]], rows: dict[str, list[np.ndarray]], engine: str) -> None:
    """A log of texts at T = 1, each of a request with a seed of its own; `rows` are logits by tensor and text."""
    each = [len(text) for text in texts]
    tokens, request = np.concatenate(texts).astype(np.int64), np.repeat(np.arange(len(each)), each)
    np.savez(
        path,
        **{name: np.concatenate(all_rows) for name, all_rows in rows.items()},
        token=tokens, output=tokens, prompt_id=request, seed=request,
        position=np.concatenate([np.arange(count) for count in each]),
    )
    metadata = {
        "rows_from": "scoring", "temperature_applied": 1.0, "engine": engine,
        "sampling": {"temperature": 1.0, "top_k": None, "top_p": None, "seed": 0},
    }
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("log.json", json.dumps(metadata))


class Scorer:
    """p of every token of a finished text, by the target's graph."""

    def __init__(self, graph: pathlib.Path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self.past = [i for i in self.session.get_inputs() if i.name.startswith("past_key_values.")]

    def rows(self, text: Text) -> np.ndarray:
        """Logits [tokens, V], masked as the engine says."""
        ids = np.array([text.prompt + text.tokens[:-1]], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(ids.size)[None]}
        feed |= {i.name: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32) for i in self.past}
        rows = self.session.run(["logits"], feed)[0][0, len(text.prompt) - 1 :].copy()
        rows[:, text.masked] = -np.inf
        return rows


def surprise(rows: np.ndarray, tokens: list[int]) -> np.ndarray:
    """Sums over a text, in nats: what its tokens cost under p, and the entropies of p."""
    rows = rows.astype(np.float64) - rows.max(axis=1, keepdims=True)
    logs = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    entropy = -(np.exp(logs) * np.where(np.isneginf(logs), 0.0, logs)).sum()
    return np.array([-logs[np.arange(len(tokens)), tokens].sum(), entropy])


def parser(description: str | None, prompts: int = 40, tokens: int = 40) -> argparse.ArgumentParser:
    """The options that all trials have."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--specgap", required=True, help="the program")
    made.add_argument("--models", type=pathlib.Path, help="folder of `models/build gguf` and `models/build hf`")
    made.add_argument("--out", type=pathlib.Path, help="keeps logs, counters and audits here")
    made.add_argument("--results", type=pathlib.Path, help="notes the results in this folder")
    made.add_argument("--prompts", type=int, default=prompts)
    made.add_argument("--tokens", type=int, default=tokens, help="tokens of each text")
    made.add_argument("--mode", help="this one alone")
    return made


def plain_name(mode: str) -> str:
    """A mode's name as a folder's."""
    return mode.replace(" ", "-").replace(",", "")


def missing(paths: list[pathlib.Path]) -> bool:
    """Says which of the files is not there."""
    for path in paths:
        if not path.exists():
            print(f"{path}: not there; `models/build gguf` and `models/build hf` make it", file=sys.stderr)
            return True
    return False


def audited(specgap: str, log: pathlib.Path, rule: str = "text") -> dict:
    """What `specgap audit` says of a log; kept beside it."""
    command = [specgap, "audit", log, "--rule", rule, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 4):
        raise SystemExit(done.stderr)
    (log.parent / f"audit-{rule}.json").write_text(done.stdout, encoding="utf-8")
    return json.loads(done.stdout)


def concluded(audit: dict) -> str:
    """What an audit concludes. Undecided is what an honest engine may be for want of tokens, and of nothing else."""
    if audit["conclusion"] != "undecided" or audit["tokens_wanted"] and len(audit["open"]) == 1:
        return audit["conclusion"]
    return "undecided, " + "; ".join(audit["open"])


def pair(arguments) -> str:
    """Which of the two pairs runs."""
    return "real" if arguments.models else "fixture"


def note(results: pathlib.Path | None, found: list[dict]) -> None:
    """Writes results; those of modes that were not run again stay."""
    if results is None or not found:
        return
    results.mkdir(parents=True, exist_ok=True)
    file = results / f"{found[0]['pair']}-{found[0]['engine']}.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    new = {one["mode"]: one for one in found}
    kept = [new.pop(one["mode"], one) for one in kept] + list(new.values())
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def trial(engine, version: str, prompts: list[list[int]], scorer: Scorer, arguments) -> tuple[list[str], list[Text]]:
    """Runs an engine in its modes, and audits each: what is not as expected, and the texts of the first mode.

    `engine` has `package`, `modes`, `run(mode, prompts, tokens)` and `script`.
    """
    kept = arguments.out or pathlib.Path(tempfile.mkdtemp())
    wrong, found, first = [], [], []
    for mode in engine.modes:
        if arguments.mode not in (None, mode.name):
            continue
        run = engine.run(mode.name, prompts, arguments.tokens)
        first = first or run.texts
        folder = kept / f"{engine.package}-{plain_name(mode.name)}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in (run.files | {"failed.txt": "\n".join(run.failed)}).items():
            (folder / name).write_text(content, encoding="utf-8")
        rows = [scorer.rows(text) for text in run.texts]
        write_log(folder / "log.npz", [text.tokens for text in run.texts], {"target_logits": rows}, f"{engine.package} {version}")
        audit = audited(arguments.specgap, folder / "log.npz")
        tokens, failed, conclusion = sum(len(text.tokens) for text in run.texts), len(run.failed), audit["conclusion"]
        costs = sum(surprise(row, text.tokens) for row, text in zip(rows, run.texts, strict=True)) / tokens
        found.append({
            "engine": engine.package, "version": version, "mode": mode.name, "settings": mode.settings,
            "pair": pair(arguments), "date": datetime.date.today().isoformat(),
            "prompts": len(prompts), "tokens": tokens, "failed": failed, "seconds": round(run.seconds, 1),
            "accepted_per_round": None if run.accepted is None else round(run.accepted, 3),
            "surprise": round(float(costs[0]), 3), "entropy": round(float(costs[1]), 3),
            "conclusion": conclusion, "expected": mode.expected,
            "log10_e_value": round(max(part["log10_e_value"] for part in audit["parts"]), 2),
            "script": engine.script,
        })
        note(arguments.results, found)
        print(line(found[-1]), flush=True)
        if conclusion == "undecided":
            print(f"{mode.name}: {'; '.join(audit['open'])}", file=sys.stderr)
        got = "failing" if failed and conclusion != "lossy" else concluded(audit)
        if got not in mode.expected.split(" or "):
            wrong.append(
                f"{engine.package} {version}, {mode.name}: {got}, where {engine.script} expects {mode.expected}. "
                f"Look at {folder}, then change the script and the page."
            )
    return wrong, first


def note_rounds(arguments, engine: str, mode: str, rule: str, audit: dict) -> None:
    """Writes what an audit says of the rounds that an engine's hook recorded beside the result of that mode."""
    rounds = {
        "rule": rule, "positions": audit["positions"], "conclusion": audit["conclusion"],
        "log10_e_value": round(max(part["log10_e_value"] for part in audit["parts"]), 2),
    }
    print(f"rounds of {mode}, --rule {rule}: {rounds['conclusion']}, 1e{rounds['log10_e_value']:.1f}, {rounds['positions']} positions")
    if arguments.results is not None:
        file = arguments.results / f"{pair(arguments)}-{engine}.json"
        kept = json.loads(file.read_text(encoding="utf-8"))
        for one in kept:
            if one["mode"] == mode:
                one["rounds"] = rounds
        file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


HEAD = (
    "| engine | mode | tokens | requests that fail | tokens/s | accepted drafts a round | surprise, entropy | conclusion | evidence |\n"
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |"
)


def line(one: dict) -> str:
    """A result as a line of the table."""
    accepted = "–" if one["accepted_per_round"] is None else f"{one['accepted_per_round']:.2f}"
    return (
        f"| {one['engine']} {one['version']} | {one['mode']} | {one['tokens']} | {one['failed']} of {one['prompts']} "
        f"| {one['tokens'] / one['seconds']:.1f} | {accepted} | {one['surprise']:.2f}, {one['entropy']:.2f} "
        f"| {one['conclusion']} | 1e{one['log10_e_value']:.1f} |"
    )


def installed(package: str) -> str:
    """The version of an installed package."""
    return importlib.metadata.version(package)

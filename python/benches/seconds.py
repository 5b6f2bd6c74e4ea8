"""What drafts and rules are worth by the clock, in transformers, on the SmolLM2 pair.

    models/build hf                                       # models/out/hf/target, models/out/hf/draft
    pip install WHEEL torch transformers
    python python/benches/seconds.py models/out --out reports/seconds

All arms decode the same prompts in one process, in an order that rotates from prompt to prompt; the first prompt
warms up and is not counted. A speed is the ratio of seconds a token, plain `generate` over the arm, of the same
prompt: the median over prompts, with a bootstrap over prompts. Prefill is left out on both sides. Beside the clock
stand two predictions: tokens a call by `specgap tree` on texts of these prompts, and the speed that follows from
these and from `specgap.hf.timings`, measured before the arms. One run of `4-2-1` is recorded, and its text audited.

Writes results.json, and report.md from it; `--from results.json` writes the page alone. Exits with 1 where the audit
refutes the text, or a tree's tokens a call are further from the replay than both intervals allow.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import json
import pathlib
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/engines"))
from texts import HONEST, PLAIN, chat_prompts, concluded, installed  # noqa: E402

HEAD = 8192


@dataclasses.dataclass(frozen=True)
class Arm:
    """A shape, a law and a rule; `replay` is the tree's name, its law and rule in `specgap tree`."""

    name: str
    tree: str
    law: str
    rule: str
    head: int | None = None
    replay: tuple[str, str, str] | None = None


ARMS = [
    Arm("chain of 4, token", "chain-4", "with-replacement", "token", None, ("chain-4", "with-replacement", "rrs")),
    Arm("chain of 4, block", "chain-4", "with-replacement", "block", None, ("chain-4", "with-replacement", "traversal")),
    Arm("4 likeliest", "4", "top", "traversal", None, ("prefix-4", "top", "exact-match")),
    Arm("4 i.i.d., rrs", "4", "with-replacement", "rrs", None, ("prefix-4", "with-replacement", "rrs")),
    Arm("4 strata, level-4", "4", "stratified", "level-4", None, ("prefix-4", "stratified", "level-4")),
    Arm("2-1 strata, traversal-4", "2-1", "stratified", "traversal-4", None, ("prefix-2-1", "stratified", "traversal-4")),
    Arm("4-2-1 i.i.d., rrs", "4-2-1", "with-replacement", "rrs", None, ("prefix-4-2-1", "with-replacement", "rrs")),
    Arm("4-2-1 strata, level-4", "4-2-1", "stratified", "level-4", None, ("prefix-4-2-1", "stratified", "level-4")),
    Arm("4-2-1 strata, traversal-4", "4-2-1", "stratified", "traversal-4", None, ("prefix-4-2-1", "stratified", "traversal-4")),
    Arm(f"4 strata, level-4, head of {HEAD}", "4", "stratified", "level-4", HEAD),
    Arm(f"2-1 strata, traversal-4, head of {HEAD}", "2-1", "stratified", "traversal-4", HEAD),
    Arm(f"auto, strata, head of {HEAD}", "auto", "stratified", "traversal-4", HEAD),
]
#: Arms that are compared on the same prompts.
PAIRS = [
    ("4 strata, level-4", "4 i.i.d., rrs"),
    ("4 strata, level-4", "4 likeliest"),
    (f"4 strata, level-4, head of {HEAD}", "4 strata, level-4"),
    ("4-2-1 strata, traversal-4", "4-2-1 strata, level-4"),
    ("chain of 4, block", "chain of 4, token"),
]
PLAIN_ARM, LOADED, ASSISTED = "plain generate", "plain generate, weights as loaded", "assisted generation, its defaults"


class Clock:
    """As a stopping criterion: when tokens came."""

    def __init__(self) -> None:
        self.first = self.last = 0.0
        self.tokens = 0

    def __call__(self, ids: Any, scores: Any, **more: Any) -> Any:
        import torch

        self.last = time.perf_counter()
        if not self.first:
            self.first, self.start = self.last, ids.shape[1]
        self.tokens = ids.shape[1] - self.start
        return torch.zeros(len(ids), dtype=torch.bool)


def by_generate(target: Any, inputs: Any, options: dict[str, Any], **more: Any) -> dict[str, Any]:
    """From the first token to the last."""
    clock, calls = Clock(), [0]
    hook = target.register_forward_pre_hook(lambda *_: calls.__setitem__(0, calls[0] + 1))
    try:
        target.generate(**inputs, **options, stopping_criteria=[clock], **more)
    finally:
        hook.remove()
    seconds, rounds = clock.last - clock.first, max(calls[0] - 1, 1)
    return {"tokens": clock.tokens, "rounds": rounds, "seconds": seconds, "parts": {}}


def by_specgap(target: Any, inputs: Any, options: dict[str, Any], decode: Any) -> dict[str, Any]:
    """What a decoder's own counts grow by."""
    before = decode.stats
    target.generate(**inputs, custom_generate=decode, **options)
    after = decode.stats
    parts = {name: after["seconds"][name] - before["seconds"][name] for name in ("draft", "target", "rule", "rest")}
    return {
        "tokens": after["tokens"] - before["tokens"], "rounds": after["rounds"] - before["rounds"],
        "seconds": sum(parts.values()), "parts": parts,
        "trees": {name: rounds - before["trees"].get(name, 0) for name, rounds in after["trees"].items()},
    }  # fmt: skip


@contextlib.contextmanager
def packed(decode: Any, *models: Any) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for model in models:
            stack.enter_context(decode._packing(model))
        yield


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """All arms on all prompts."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import specgap as sg
    from specgap.hf import speculative, timings

    torch.set_num_threads(arguments.threads)
    tokenizer = AutoTokenizer.from_pretrained(arguments.models / "hf/target")
    target, draft = (
        AutoModelForCausalLM.from_pretrained(arguments.models / "hf" / name, dtype=torch.bfloat16).eval()
        for name in ("target", "draft")
    )
    for model in (target, draft):
        model.generation_config.update(**PLAIN, pad_token_id=0, eos_token_id=None)
    prompts = [tokenizer(prompt, return_tensors="pt") for prompt in chat_prompts(arguments.prompts + 1)]
    made: dict[str, Any] = {
        "date": datetime.date.today().isoformat(), "prompts": arguments.prompts, "tokens": arguments.tokens,
        "threads": arguments.threads, "machine": machine(), "temperatures": {},
        "versions": {name: installed(name) for name in ("torch", "transformers", "specgap")},
    }  # fmt: skip
    made["timings"] = timings(target, draft, pack=True)
    made["timings_as_loaded"] = timings(target, draft)
    arms = [arm for arm in ARMS if arguments.arms is None or arguments.arms in arm.name]
    for temperature in arguments.temperature:
        options = {"do_sample": True, "temperature": temperature, "max_new_tokens": arguments.tokens}
        decoders = {
            arm.name: speculative(
                draft, arm.tree, arm.law, arm.rule, seed=0, pack=True,
                draft_tokens=None if arm.head is None else range(arm.head),
            )
            for arm in arms
        }  # fmt: skip
        pack = next(iter(decoders.values()))
        names = [PLAIN_ARM, LOADED, ASSISTED, *decoders]
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for number, inputs in enumerate(prompts):
            turn = number % len(names)
            for name in [*names[turn:], *names[:turn]]:
                torch.manual_seed(number)
                if name == PLAIN_ARM:
                    with packed(pack, target):
                        run = by_generate(target, inputs, options)
                elif name == LOADED:
                    run = by_generate(target, inputs, options)
                elif name == ASSISTED:
                    with packed(pack, target, draft):
                        run = by_generate(target, inputs, options, assistant_model=draft)
                else:
                    run = by_specgap(target, inputs, options, decoders[name])
                if number:
                    runs[name].append(run)
            print(f"T = {temperature}, prompt {number} of {arguments.prompts}", file=sys.stderr, flush=True)
        recorded = speculative(draft, "4-2-1", "stratified", "traversal-4", seed=1, pack=True, record=arguments.log / str(temperature))
        for inputs in prompts[1:]:
            target.generate(**inputs, custom_generate=recorded, **options)
        recorded.close()
        made["temperatures"][str(temperature)] = {"runs": runs, **checked(sg, arguments.log, temperature, made["timings"], recorded)}
    return made


def checked(sg: Any, folder: pathlib.Path, temperature: float, times: dict[str, Any], decode: Any) -> dict[str, Any]:
    """The audit of a recorded run, and what its replay predicts for each arm."""
    log = folder / str(temperature)
    audit = json.loads(sg.audit(log, rule="text").json)
    (folder / "timings.json").write_text(json.dumps(times), encoding="utf-8")
    predicted = {}
    for arm in ARMS:
        if arm.replay is not None:
            tree, law, rule = arm.replay
            rows = json.loads(
                sg.tree(log, topology=[tree], schemes=[law], verifiers=[rule], timings=folder / "timings.json").json
            )["results"]
            row = next(row for row in rows if row["tree"] == tree)
            predicted[arm.name] = {"tokens_per_call": row["tokens_per_call"], "speedup": row["speedup"]}
    return {
        "predicted": predicted,
        "audit": {
            "conclusion": concluded(audit), "positions": audit["positions"],
            "log10_e_value": max(part["log10_e_value"] for part in audit["parts"]),
        },
        "recorded": {"tokens": decode.tokens, "rounds": decode.rounds},
    }  # fmt: skip


def machine() -> str:
    """The processor's name."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


def interval(values: np.ndarray, of: Any = np.median) -> tuple[float, float, float]:
    """A statistic, and its bootstrap over prompts (95%)."""
    random = np.random.default_rng(0)
    drawn = [of(values[random.integers(0, len(values), len(values))]) for _ in range(4000)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(of(values)), float(low), float(high)


def ratio_of_sums(pairs: np.ndarray) -> float:
    return float(pairs[:, 0].sum() / pairs[:, 1].sum())


def rows_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Each arm's numbers at one temperature, fastest first."""
    runs = found["runs"]
    token = {name: np.array([run["seconds"] / run["tokens"] for run in all_]) for name, all_ in runs.items()}
    plain = token[PLAIN_ARM]
    made = []
    for name, all_ in runs.items():
        calls = interval(np.array([(run["tokens"], run["rounds"]) for run in all_], dtype=float), ratio_of_sums)
        speed, low, high = interval(plain / token[name])
        round_ = np.median([run["seconds"] / run["rounds"] for run in all_])
        parts = {
            part: float(np.median([run["parts"][part] / run["rounds"] for run in all_])) for part in all_[0]["parts"]
        }
        made.append({
            "name": name, "calls": calls, "round": float(round_), "parts": parts,
            "token": float(np.median(token[name])), "speed": (speed, low, high),
            "steady": float(np.median(plain) * calls[0] / round_), "predicted": found["predicted"].get(name),
        })  # fmt: skip
    return sorted(made, key=lambda row: -row["speed"][0])


def page(made: dict[str, Any]) -> str:
    """The report, in Markdown."""
    lines = ["# Seconds", ""]
    tables = {}
    for temperature, found in made["temperatures"].items():
        tables[temperature] = rows_of(found)
    for temperature, rows in tables.items():
        best = rows[0]
        speed, low, high = best["speed"]
        slower = [row["name"] for row in rows if row["speed"][2] < 1 and row["name"] not in (LOADED,)]
        sentence = (
            f"**T = {temperature}: {best['name']} writes {speed:.2f} times ({low:.2f} to {high:.2f}) as many tokens a second "
            f"as plain `generate`.**"
            if low > 1
            else f"**T = {temperature}: no arm is told apart from plain `generate` as faster;** the best, {best['name']}, "
            f"has {speed:.2f} ({low:.2f} to {high:.2f})."
        )
        if slower:
            sentence += f" Slower than plain: {'; '.join(slower)}."
        lines += [sentence, ""]
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    lines += [
        f"SmolLM2-135M-Instruct and its distilled draft, bfloat16, batch 1, {made['threads']} thread of {made['machine']}, "
        f"{made['prompts']} prompts of {made['tokens']} tokens, {versions}, {made['date']}. Weights are packed in all arms but "
        "one. On a CPU this small a pass over more than a few tokens is no longer free, so that these numbers do not "
        "carry over to a GPU. The fastest arm is named by the prompts that measure it.", "",
        "Tokens a call and speeds are Monte Carlo: 95% by bootstrap over prompts. *Speed* is the median over prompts of "
        "seconds a token, plain over arm. *Steady* is plain's median times tokens a call over the median round, which "
        "bursts of other work move less. *Predicted* is `specgap tree` on a recorded text of the same prompts with the "
        "times below, before any arm ran; it charges i.i.d. trees for twins that a pass takes once. Prefill is left out.", "",
    ]  # fmt: skip
    for temperature, rows in tables.items():
        lines += [
            f"## T = {temperature}", "",
            "| arm | speed | steady | predicted | tokens a call | predicted | round, ms: draft, target, rule, rest | ms a token |",
            "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
        ]  # fmt: skip
        for row in rows:
            said = row["predicted"]
            speedup = f"{said['speedup']['mean']:.2f}" if said and said["speedup"] else "–"
            calls = f"{said['tokens_per_call']['mean']:.2f}" if said else "–"
            parts = ": " + ", ".join(f"{1000 * value:.1f}" for value in row["parts"].values()) if row["parts"] else ""
            speed, low, high = row["speed"]
            mean, least, most = row["calls"]
            lines.append(
                f"| {row['name']} | {speed:.2f} ({low:.2f}–{high:.2f}) | {row['steady']:.2f} | {speedup} "
                f"| {mean:.2f} ({least:.2f}–{most:.2f}) | {calls} | {1000 * row['round']:.0f}{parts} | {1000 * row['token']:.1f} |"
            )
        found = made["temperatures"][temperature]
        lines += ["", "Seconds a token on the same prompts, the second arm's over the first's (medians of paired ratios):", ""]
        for first, second in PAIRS:
            if first in found["runs"] and second in found["runs"]:
                one, other = (np.array([run["seconds"] / run["tokens"] for run in found["runs"][name]]) for name in (first, second))
                middle, low, high = interval(other / one)
                lines.append(f"- {first} over {second}: {middle:.2f} ({low:.2f}–{high:.2f})")
        audit, recorded = found["audit"], found["recorded"]
        trees: dict[str, int] = {}
        for name, all_ in found["runs"].items():
            if name.startswith("auto"):
                for run in all_:
                    for tree, rounds in run["trees"].items():
                        trees[tree] = trees.get(tree, 0) + rounds
        most = ", ".join(f"{tree} in {rounds}" for tree, rounds in sorted(trees.items(), key=lambda one: -one[1]) if rounds)
        lines += [
            "",
            f"Audit of the recorded text of `4-2-1` by `traversal-4`: {audit['conclusion']}, {audit['positions']} positions, "
            f"largest evidence 1e{audit['log10_e_value']:.1f}. It made {recorded['tokens'] / recorded['rounds']:.2f} tokens a call."
            + (f" Rounds of `auto` by tree: {most}." if most else ""),
            "",
        ]
    lines += ["## Passes", "", "| tokens of the pass | ms, packed | as loaded |", "| ---: | ---: | ---: |"]
    for one, other in zip(made["timings"]["verify"], made["timings_as_loaded"]["verify"], strict=True):
        lines.append(f"| {one['tokens']} | {1000 * one['seconds']:.1f} | {1000 * other['seconds']:.1f} |")
    draft = [1000 * made[name]["draft_step"]["seconds"] for name in ("timings", "timings_as_loaded")]
    lines += [f"| 1, of the draft | {draft[0]:.1f} | {draft[1]:.1f} |", "", "Medians of nine passes behind 100 tokens.", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, nargs="?", help="folder with hf/target and hf/draft")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("reports/seconds"))
    parser.add_argument("--from", dest="before", type=pathlib.Path, help="results of an earlier run: writes the page alone")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=48, help="tokens of each text")
    parser.add_argument("--temperature", type=float, nargs="+", default=[1.0, 0.6])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--arms", help="those whose name has this in it alone")
    parser.add_argument("--log", type=pathlib.Path, help="keeps the recorded logs here")
    arguments = parser.parse_args()
    arguments.log = arguments.log or pathlib.Path(tempfile.mkdtemp())
    if arguments.before is None:
        if arguments.models is None:
            parser.error("give the folder of `models/build hf`, or --from")
        made = measured(arguments)
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "results.json").write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")
    else:
        made = json.loads(arguments.before.read_text(encoding="utf-8"))
    (arguments.out / "report.md").write_text(page(made), encoding="utf-8")
    wrong = []
    for temperature, found in made["temperatures"].items():
        if found["audit"]["conclusion"] not in HONEST.split(" or "):
            wrong.append(f"T = {temperature}: the audit of the text is {found['audit']['conclusion']}")
        for row in rows_of(found):
            said = row["predicted"]
            low, high = said["tokens_per_call"]["ci95"] if said else (0.0, np.inf)
            # Both are estimates of the same texts' law on other texts.
            if row["calls"][1] > high + (high - low) / 2 or row["calls"][2] < low - (high - low) / 2:
                wrong.append(f"T = {temperature}, {row['name']}: {row['calls'][0]:.2f} tokens a call, predicted {low:.2f} to {high:.2f}")
    print("\n".join(wrong) or "audits and tokens a call are as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

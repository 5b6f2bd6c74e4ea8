"""Samples text from the target and keeps what the heads of the draft learn from.

At every position t of an answer y, sampled from the target at T = 1:

    before     the draft's final hidden state after y_{<t}: its row q_t follows from it
    drafted    the draft's final hidden state after y_{<t}, Y_t, with Y_t ~ q_t
    mixed      the same state after a text that mixes both, as SpecDec++ trains on:
               each token is the target's y_t with probability 0.15, else Y_t; kept
               where the token is Y_t
    p, q of y_t and of Y_t; the overlap sum_i min(p_i, q_i); the row's features

`drafted` is what a decoder sees at a round's first token, `mixed` is cheaper to make
where the draft is long. The prompts are those of prompts/distil.json that the draft was
not distilled on; `--held-out` takes prompts/capture.jsonl instead, for evaluation alone.
Shards that exist are not made again.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from tokenizers import Tokenizer

from chat import END, chat, held_out_prompts, training_prompts
from session import pad_left

SEED = 23
BATCH = 32
NEW_TOKENS = 128
# Of the training prompts, `models/build distil` used those before 1,536 and from 10,240
# to 11,007.
FIRST_PROMPT = 2048
# The part of a mixed text that is the target's.
KEPT = 0.15
# Sequences leave a batch in steps of so many tokens.
COMPACT = 16


def expose_hidden(draft: Path, keep_rows: bool) -> Path:
    """The draft's graph with its final hidden state as output `hidden`, beside it.

    Without rows it has no logits and no grown cache, which the runtime then leaves out.
    """
    model = onnx.load(draft, load_external_data=False)
    head = next(node for node in model.graph.node if node.op_type == "Gemm")
    rows = next(node for node in model.graph.node if head.input[0] in node.output)
    width = next(t for t in model.graph.initializer if t.name == head.input[1]).dims[1]
    if not keep_rows:
        del model.graph.output[:]
    model.graph.output.append(
        onnx.helper.make_tensor_value_info("hidden", onnx.TensorProto.FLOAT, ["batch", "sequence", width])
    )
    model.graph.node.append(onnx.helper.make_node("Identity", [rows.input[0]], ["hidden"]))
    path = draft.with_name(f"{draft.stem}-{'rows' if keep_rows else 'states'}.{os.getpid()}.onnx")
    path.write_bytes(model.SerializeToString())
    return path


class Stepper:
    """A graph whose cache stays inside the runtime."""

    def __init__(self, path: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.past = [i for i in self.session.get_inputs() if i.name.startswith("past_key_values.")]
        self.names = [o.name for o in self.session.get_outputs()]

    def empty(self, batch: int) -> list[onnxruntime.OrtValue]:
        return [
            onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((batch, i.shape[1], 0, i.shape[3]), np.float32))
            for i in self.past
        ]

    def run(
        self, ids: np.ndarray, mask: np.ndarray, cache: list[onnxruntime.OrtValue]
    ) -> tuple[dict[str, np.ndarray], list[onnxruntime.OrtValue]]:
        """(outputs other than the cache, grown cache); `mask` covers old and new positions."""
        positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, -ids.shape[1]:]
        feed = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value, np.int64))
            for name, value in (("input_ids", ids), ("attention_mask", mask), ("position_ids", positions))
        }
        feed |= {i.name: value for i, value in zip(self.past, cache, strict=True)}
        found = dict(zip(self.names, self.session.run_with_ort_values(self.names, feed), strict=True))
        grown = [found.pop(name) for name in self.names if name.startswith("present.")]
        return {name: value.numpy() for name, value in found.items()}, grown


def kept_rows(cache: list[onnxruntime.OrtValue], rows: np.ndarray) -> list[onnxruntime.OrtValue]:
    return [onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(v.numpy()[rows])) for v in cache]


def softmax(logits: np.ndarray) -> np.ndarray:
    rows = np.exp(logits - logits.max(-1, keepdims=True))
    rows /= rows.sum(-1, keepdims=True, dtype=np.float64).astype(np.float32)
    return rows


def draw(rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    mass = np.cumsum(rows, axis=1, dtype=np.float64)
    points = random.random(len(rows)) * mass[:, -1]
    return np.array([np.searchsorted(m, x, side="right") for m, x in zip(mass, points)])


def sample(
    target: Stepper, draft: Stepper, states: Stepper, prompts: list[list[int]], length: int,
    random: np.random.Generator,
) -> list[dict[str, np.ndarray]]:
    """One answer to each prompt, with what was seen at each of its positions."""
    found: list[dict[str, list]] = [{} for _ in prompts]
    live = np.arange(len(prompts))
    ids, mask = pad_left(prompts)
    past_p, past_q = target.empty(len(prompts)), draft.empty(len(prompts))
    ended = np.zeros(len(prompts), bool)
    for step in range(length):
        out, past_p = target.run(ids, mask, past_p)
        p = softmax(out["logits"][:, -1])
        out, past_q = draft.run(ids, mask, past_q)
        q, before = softmax(out["logits"][:, -1]), out["hidden"][:, -1]
        y, drafted = draw(p, random), draw(q, random)
        mask = np.concatenate([mask, np.ones((len(live), 1), mask.dtype)], 1)
        after = states.run(drafted[:, None], mask, past_q)[0]["hidden"][:, -1]
        two = -np.partition(-q, 1, axis=1)[:, :2]
        rows = np.arange(len(live))
        seen = {
            "token": y, "drafted": drafted,
            "p_token": p[rows, y], "q_token": q[rows, y], "p_drafted": p[rows, drafted], "q_drafted": q[rows, drafted],
            "overlap": np.minimum(p, q).sum(-1, dtype=np.float64),
            "entropy": -(q * np.log(np.maximum(q, 1e-38))).sum(-1, dtype=np.float64),
            "top1": two[:, 0], "margin": two[:, 0] - two[:, 1],
            "before": before.astype(np.float16), "after": after.astype(np.float16),
        }
        for row in np.flatnonzero(~ended):
            for name, values in seen.items():
                found[live[row]].setdefault(name, []).append(values[row])
        ended |= y == END
        if ended.all():
            break
        ids = y[:, None]
        if step % COMPACT == COMPACT - 1 and ended.any():
            rows = np.flatnonzero(~ended)
            past_p, past_q = kept_rows(past_p, rows), kept_rows(past_q, rows)
            live, ids, mask, ended = live[rows], ids[rows], mask[rows], ended[rows]
    return [{name: np.array(values) for name, values in one.items()} for one in found]


def mixed_states(
    states: Stepper, prompts: list[list[int]], found: list[dict[str, np.ndarray]], random: np.random.Generator
) -> None:
    """Adds `is_mixed` and `mixed`: states of texts that mix tokens of both models."""
    texts = []
    for prompt, one in zip(prompts, found):
        one["is_mixed"] = random.random(len(one["token"])) >= KEPT
        texts.append(prompt + np.where(one["is_mixed"], one["drafted"], one["token"]).tolist())
    for start in range(0, len(texts), 8):
        ids, mask = pad_left(texts[start : start + 8])
        hidden = states.run(ids, mask, states.empty(len(ids)))[0]["hidden"]
        for one, row in zip(found[start : start + 8], hidden):
            one["mixed"] = row[len(row) - len(one["token"]) :].astype(np.float16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="folder of the built graphs")
    parser.add_argument("--output", type=Path, required=True, help="folder of the shards")
    parser.add_argument("--shards", type=int, default=16, help=f"batches of {BATCH} prompts")
    parser.add_argument("--held-out", action="store_true", help="the held-out prompts, for evaluation")
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    a.output.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(a.models / "tokenizer.json"))
    if a.held_out:
        texts = [text for _, text in held_out_prompts()]
        kind = "held-out"
    else:
        texts = training_prompts(FIRST_PROMPT + BATCH * a.shards, 7)[FIRST_PROMPT:]
        kind = "train"
    target = Stepper(a.models / "target.onnx", a.threads)
    paths = [expose_hidden(a.models / "draft.onnx", keep_rows) for keep_rows in (True, False)]
    try:
        draft, states = (Stepper(path, a.threads) for path in paths)
    finally:
        for path in paths:
            path.unlink()
    for shard, start in enumerate(range(0, len(texts), BATCH)):
        path = a.output / f"{kind}-{shard:03}.npz"
        if path.exists():
            continue
        begun = time.monotonic()
        prompts = [tokenizer.encode(chat(text)).ids for text in texts[start : start + BATCH]]
        random = np.random.default_rng([SEED, int(a.held_out), shard])
        found = sample(target, draft, states, prompts, NEW_TOKENS, random)
        mixed_states(states, prompts, found, random)
        columns = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        lengths = np.array([len(one["token"]) for one in found])
        columns["prompt"] = start + np.repeat(np.arange(len(found)), lengths)
        temporary = path.with_suffix(".part")
        with temporary.open("wb") as file:
            np.savez(file, **columns)
        os.replace(temporary, path)
        seconds = time.monotonic() - begun
        print(
            f"{path.name}: {lengths.sum()} positions, overlap {columns['overlap'].mean():.4f}, "
            f"{lengths.sum() / seconds:.0f} positions/s", flush=True,
        )


if __name__ == "__main__":
    main()

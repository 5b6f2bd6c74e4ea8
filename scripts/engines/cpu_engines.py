"""Released engines on a CPU, audited by their texts alone.

    python3 -m venv V && V/bin/pip install -r scripts/engines/requirements.txt
    V/bin/python scripts/engines/cpu_engines.py --specgap target/release/specgap [--models FOLDER] [--out DIR]

Every engine writes texts with and without speculation, from the same models. One pass of the target's
ONNX graph over each finished text gives p; `specgap audit` says whether the text follows it. Without
speculation is the control: if that is refuted, p is not what the engine runs. The 1,600 tokens of a mode tell
lossy engines from others. To call an honest one as claimed an audit wants more, and says how many: `--prompts`.

FOLDER has target.onnx, and target.gguf and draft.gguf: by default the fixture pair of the tests (two layers, V
= 299, random weights). With `--models models/out` it is the real pair of `models/build gguf`.
Exits with 1 if an engine is not what its modes expect, 2 if one cannot be run.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

from texts import DRAFTS, HEAD, ROOT, Mode, Run, Scorer, Text, installed, made_up, missing, parser, tokenized, trial

# A token of the fixture pair that is a whole character.
DIGIT = 19
SCRIPT = "scripts/engines/cpu_engines.py"


class LlamaCpp:
    """llama.cpp's server, as xllamacpp builds it; greedy drafts are its default."""

    package = "xllamacpp"
    script = SCRIPT
    modes = (
        Mode("plain", "no speculation"),
        Mode("greedy", "`draft-simple`, 4 drafts, `p_min` 0"),
        Mode("probabilistic", "the same, drafts sampled"),
        Mode("ngram", "`ngram-simple`, n = 1"),
    )

    def __init__(self, target: pathlib.Path, draft: pathlib.Path):
        self.target, self.draft = target, draft

    def server(self, mode: str):
        import xllamacpp as x

        params = x.CommonParams()
        params.model.path = str(self.target)
        params.n_ctx, params.n_parallel = 512, 1
        params.warmup, params.fit_params, params.endpoint_metrics, params.verbosity = False, False, True, 0
        # Rows should differ from the graph's by rounding alone.
        params.flash_attn_type = x.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        drafter, kinds = params.speculative.draft, x.common_speculative_type
        for side in (params, drafter):
            side.cache_type_k = side.cache_type_v = x.ggml_type.GGML_TYPE_F32
            # More threads than idle cores wait for each other at barriers.
            side.cpuparams.n_threads = side.cpuparams_batch.n_threads = 1
        if mode in ("greedy", "probabilistic"):
            params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
            drafter.mparams.path = str(self.draft)
            drafter.n_max, drafter.n_min, drafter.p_min = DRAFTS, 0, 0.0
            drafter.probabilistic = mode == "probabilistic"
        elif mode == "ngram":
            params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
            params.speculative.ngram_simple.size_n, params.speculative.ngram_simple.size_m = 1, DRAFTS
        return x.Server(params)

    def run(self, mode: str, prompts: list[list[int]], tokens: int) -> Run:
        server = self.server(mode)
        started, texts, responses = time.monotonic(), [], []
        for seed, prompt in enumerate(prompts):
            body = {
                "prompt": prompt, "n_predict": tokens, "seed": seed, "samplers": ["temperature"],
                "temperature": 1.0, "ignore_eos": True, "return_tokens": True, "cache_prompt": False,
            }
            text = posted(server, body)
            answer = json.loads(text)
            responses.append(text)
            masked = [bias["token"] for bias in answer["generation_settings"]["logit_bias"] if bias["bias"] is None]
            texts.append(Text(prompt, answer["tokens"], masked))
        seconds = time.monotonic() - started
        with urllib.request.urlopen(server.listening_address + "/metrics") as answer:
            metrics = answer.read().decode()
        counted = {
            line.split()[0]: float(line.split()[1])
            for line in metrics.splitlines()
            if line.startswith("llamacpp:spec_decode")
        }
        rounds = counted.get("llamacpp:spec_decode_num_drafts_total", 0.0)
        kept = counted.get("llamacpp:spec_decode_num_accepted_tokens_total", 0.0)
        files = {"metrics.txt": metrics, "responses.jsonl": "\n".join(responses) + "\n"}
        return Run(texts, seconds, kept / rounds if rounds else None, files=files)


def check_import(specgap: str, engine: LlamaCpp, texts: list[Text], scorer: Scorer, folder: pathlib.Path) -> str:
    """Rows of both models from the server, one request per prefix, as the docs ask for them: `import` reads
    them, and they are the graph's."""
    vocabulary, folder = 0, folder / "import"
    folder.mkdir(parents=True, exist_ok=True)
    worst = 0.0
    for side, model in (("target", engine.target), ("draft", engine.draft)):
        server = LlamaCpp(model, model).server("plain")
        lines = []
        for prompt_id, text in enumerate(texts):
            rows = scorer.rows(dataclasses.replace(text, masked=[]))
            vocabulary = rows.shape[1]
            for position, token in enumerate(text.tokens):
                body = {
                    "prompt": text.prompt + text.tokens[:position], "n_predict": 1, "n_probs": 64,
                    "return_tokens": True, "temperature": 1.0, "samplers": ["temperature"],
                    # A token that ends the text or half a character comes without its row. So a digit comes;
                    # rows are from before all of this.
                    "logit_bias": [[DIGIT, 100.0]],
                }
                answer = json.loads(posted(server, body))
                lines.append(json.dumps(answer | {"prompt_id": prompt_id, "position": position, "token": token}))
                if side == "target":
                    row = rows[position] - np.logaddexp.reduce(rows[position].astype(np.float64))
                    said = answer["completion_probabilities"][0]["top_logprobs"]
                    worst = max(worst, *(abs(one["logprob"] - row[one["id"]]) for one in said))
        (folder / f"{side}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [
        specgap, "import", "--from", "llama-cpp", "--target-rows", folder / "target.jsonl", "--draft-rows", folder / "draft.jsonl",
        "--vocab", str(vocabulary), "--out", folder / "log",
    ]
    for more in (command, [specgap, "gap", folder / "log", "--temperature", "1", "--quiet", "--out", folder / "gap"]):
        done = subprocess.run(more, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"import: {done.stderr}"
    positions = sum(len(text.tokens) for text in texts)
    print(f"\nimport --from llama-cpp: {positions} positions of both models, log-probabilities within {worst:.1e} of the graph's")
    return "" if worst < 0.05 else f"import: rows of llama.cpp are {worst} from the graph's"


def posted(server, body: dict) -> str:
    request = urllib.request.Request(
        server.listening_address + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


class OpenVino:
    """openvino-genai. It reads a target in GGUF, and a draft only as its own files."""

    package = "openvino-genai"
    script = SCRIPT
    modes = (
        Mode("plain", "no speculation"),
        Mode("draft model", "`draft_model`, `num_assistant_tokens` 4", "lossy or failing"),
    )
    SETTINGS = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}

    def __init__(self, target: pathlib.Path, draft: pathlib.Path):
        import openvino_genai

        self.genai = openvino_genai
        self.folder = tempfile.TemporaryDirectory()
        for name, path in (("target", target), ("draft", draft)):
            own = pathlib.Path(self.folder.name) / name
            own.mkdir()
            (own / path.name).symlink_to(path.resolve())
            openvino_genai.LLMPipeline(str(own / path.name), "CPU", enable_save_ov_model=True)

    def run(self, mode: str, prompts: list[list[int]], tokens: int) -> Run:
        speculates = mode == "draft model"
        pipeline, started, texts, failed = None, time.monotonic(), [], []
        counted = np.zeros(2, int)
        for seed, prompt in enumerate(prompts):
            # Once a request has failed, a pipeline no longer speculates.
            pipeline = pipeline or self.pipeline(speculates)
            try:
                tokens_of, more = self.one(pipeline, prompt, tokens, seed, speculates)
                texts.append(Text(prompt, tokens_of, []))
                counted += more
            except RuntimeError as error:
                pipeline = None
                failed.append(f"request {seed}: {str(error).splitlines()[0].split(' at ')[0]}")
        seconds = time.monotonic() - started
        accepted, rejected = counted
        # A round drafts DRAFTS tokens, but for the last ones of a text.
        rounds = (accepted + rejected) / DRAFTS
        return Run(texts, seconds, accepted / rounds if rounds else None, failed)

    def pipeline(self, speculates: bool):
        more = {}
        if speculates:
            more["draft_model"] = self.genai.draft_model(f"{self.folder.name}/draft", "CPU", **self.SETTINGS)
        return self.genai.LLMPipeline(f"{self.folder.name}/target", "CPU", **more, **self.SETTINGS)

    def one(self, pipeline, prompt: list[int], tokens: int, seed: int, speculates: bool):
        """The text's tokens, and (accepted, rejected) drafts as the engine counts them."""
        import openvino

        config = self.genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos = tokens, True
        config.do_sample, config.temperature, config.rng_seed = True, 1.0, seed
        config.top_k, config.top_p, config.min_p = 1 << 30, 1.0, 0.0
        config.repetition_penalty, config.presence_penalty, config.frequency_penalty = 1.0, 0.0, 0.0
        config.no_repeat_ngram_size = 1 << 30
        if speculates:
            config.num_assistant_tokens = DRAFTS
        ids = np.array([prompt], dtype=np.int64)
        inputs = self.genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(np.ones_like(ids)))
        found = pipeline.generate(inputs, config)
        counted = found.extended_perf_metrics if speculates else None
        each = (counted.get_num_accepted_tokens(), counted.get_num_rejected_tokens()) if counted else (0, 0)
        return list(found.tokens[0]), np.array(each)


def models(folder: pathlib.Path | None) -> tuple[pathlib.Path, dict[str, tuple[pathlib.Path, pathlib.Path]]]:
    """The graph, and (target, draft) of each engine."""
    if folder is None:
        folder = ROOT / "tests/fixtures/tiny-model"
        pair = (folder / "target.gguf", folder / "draft.gguf")
        return folder / "target.onnx", {"xllamacpp": pair, "openvino-genai": pair}
    files = {
        package: (folder / f"gguf/target-{kind}.gguf", folder / f"gguf/draft-{kind}.gguf")
        # openvino-genai reads no F32.
        for package, kind in (("xllamacpp", "f32"), ("openvino-genai", "f16"))
    }
    return folder / "target.onnx", files


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--engine", choices=("xllamacpp", "openvino-genai"), help="this one alone")
    arguments = options.parse_args()
    arguments.out = arguments.out or pathlib.Path(tempfile.mkdtemp())
    graph, files = models(arguments.models)
    if missing([graph, *(path for pair in files.values() for path in pair)]):
        return 2
    prompts = tokenized(arguments.models, arguments.prompts) if arguments.models else made_up(arguments.prompts)
    scorer, wrong = Scorer(graph), []
    print(HEAD)
    for engine in (LlamaCpp, OpenVino):
        if arguments.engine not in (None, engine.package):
            continue
        running = engine(*files[engine.package])
        found, texts = trial(running, installed(engine.package), prompts, scorer, arguments)
        wrong += found
        few = [Text(text.prompt, text.tokens[:8], []) for text in texts[:6]]
        if engine is LlamaCpp and (refused := check_import(arguments.specgap, running, few, scorer, arguments.out)):
            wrong.append(refused)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

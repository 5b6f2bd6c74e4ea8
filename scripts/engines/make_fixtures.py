"""Makes tests/fixtures/engines/ with the packages' own types.

    python make_fixtures.py --vllm DIR --sglang DIR OUT

DIR is the unpacked wheel (`pip download --no-deps vllm==0.33.0 sglang==0.5.23`, `unzip`): both
are read as sources, because their wheels do not import without a GPU's libraries. The classes
and functions named below run as they stand there; only the model is made up. transformers,
torch, pydantic and the wheel of specgap have to be installed.

Every fixture is of the same two models: `truth.npz` has their rows.
"""

import argparse
import ast
import dataclasses
import itertools
import json
import logging
import pathlib
import types
import typing

import numpy

from texts import PLAIN

V, K, PROMPT, TEXTS, LENGTH = 12, 4, 3, 3, 5
TEMPERATURE = 0.5


class Bigrams:
    """A model whose next token depends on the last one alone."""

    def __init__(self, seed):
        logits = numpy.random.default_rng(seed).normal(0, 1.5, (V, V))
        self.logits = logits.astype(numpy.float32)

    def logprobs(self, last, temperature=1.0):
        row = self.logits[last].astype(numpy.float64) / temperature
        row = row - row.max()
        return (row - numpy.log(numpy.exp(row).sum())).astype(numpy.float32)


TARGET, DRAFT = Bigrams(1), Bigrams(2)


def texts():
    """Prompts and what the target wrote behind them."""
    random = numpy.random.default_rng(3)
    for _ in range(TEXTS):
        prompt = random.integers(0, V, PROMPT).tolist()
        ids = list(prompt)
        for _ in range(LENGTH):
            p = numpy.exp(TARGET.logprobs(ids[-1]).astype(numpy.float64))
            ids.append(int(random.choice(V, p=p / p.sum())))
        yield prompt, ids


def top(row, count):
    return [int(i) for i in numpy.argsort(-row, kind="stable")[:count]]


def parts(path, names, namespace):
    """Definitions of a source file, executed as they stand."""
    tree = ast.parse(pathlib.Path(path).read_text())
    found = {}
    for node in ast.walk(tree):
        if getattr(node, "name", None) in names and isinstance(
            node, (ast.FunctionDef, ast.ClassDef)
        ):
            found.setdefault(node.name, node)
    missing = set(names) - set(found)
    if missing:
        raise SystemExit(f"{path} has no {missing}")
    for name in names:
        module = ast.Module(
            [ast.ImportFrom("__future__", [ast.alias("annotations")], 0), found[name]], []
        )
        exec(compile(ast.fix_missing_locations(module), str(path), "exec"), namespace)
    return types.SimpleNamespace(**{name: namespace[name] for name in names})


class Vllm:
    """The response's types, and what fills them."""

    def __init__(self, root):
        import pydantic

        root = pathlib.Path(root) / "vllm"
        logprobs = {"__name__": "vllm.logprobs"}
        module = types.ModuleType("vllm_logprobs")
        import sys

        sys.modules["vllm_logprobs"] = module
        exec(compile((root / "logprobs.py").read_text(), "logprobs.py", "exec"), module.__dict__)
        self.logprobs = module
        space = {
            "itertools": itertools,
            "Field": pydantic.Field,
            "ClassVar": typing.ClassVar,
            "OpenAIBaseModel": pydantic.BaseModel,
            "Logprob": module.Logprob,
            "logger": logging.getLogger(),
            "GenericSequence": typing.Sequence,
            "VLLMValidationError": ValueError,
            "TokenizerLike": typing.Any,
        }
        openai = root / "entrypoints/openai"
        base = parts(
            root / "entrypoints/generate/base/serving.py",
            [
                "format_token_id_placeholder",
                "chat_top_logprobs_limit",
                "completion_top_logprobs_limit",
                "_get_decoded_token",
                "clamp_prompt_logprobs",
            ],
            space | {"PromptLogprobs": typing.Any},
        )
        space |= vars(base)
        self.clamp = base.clamp_prompt_logprobs
        chat_types = [
            "ChatCompletionLogProb",
            "ChatCompletionLogProbsContent",
            "ChatCompletionLogProbs",
        ]
        chat = vars(parts(openai / "chat_completion/protocol.py", chat_types, space))
        completion = vars(parts(openai / "completion/protocol.py", ["CompletionLogProbs"], space))
        space |= chat | completion
        for model in (chat | completion).values():
            model.model_rebuild(_types_namespace=space)
        serving = parts(
            openai / "chat_completion/serving.py",
            ["_get_top_logprobs", "_create_chat_logprobs"],
            space,
        )
        more = parts(openai / "completion/serving.py", ["_create_completion_logprobs"], space)
        self.serving = types.SimpleNamespace(
            return_tokens_as_token_ids=False,
            _get_decoded_token=base._get_decoded_token,
        )
        for name, function in (vars(serving) | vars(more)).items():
            setattr(self.serving, name, types.MethodType(function, self.serving))

    def position(self, container, row, token):
        """One position, as the output processor appends it."""
        ids = [token, *top(row, K)]
        rank = int((row > row[token]).sum()) + 1
        self.logprobs.append_logprobs_for_next_position(
            container, ids, [float(row[i]) for i in ids], [word(i) for i in ids], rank, K
        )

    def generated(self, model, ids, flat=False):
        container = self.logprobs.create_sample_logprobs(flat)
        for last, token in zip(ids[PROMPT - 1 :], ids[PROMPT:]):
            self.position(container, model.logprobs(last), token)
        return container

    def scored(self, model, ids):
        container = self.logprobs.create_prompt_logprobs(False)
        for last, token in zip(ids, ids[1:]):
            self.position(container, model.logprobs(last), token)
        return self.clamp(container)

    def chat(self, model, ids, as_ids=True):
        made = self.serving._create_chat_logprobs(
            ids[PROMPT:], self.generated(model, ids), None, K, None, as_ids
        )
        return {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            "model": "made-up",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "".join(map(word, ids[PROMPT:]))},
                    "logprobs": made.model_dump(mode="json"),
                    "finish_reason": "length",
                }
            ],
            "prompt_logprobs": None,
        }

    def completion(self, model, ids, as_ids=True):
        made = self.serving._create_completion_logprobs(
            ids[PROMPT:], self.generated(model, ids), K, None, return_as_token_id=as_ids
        )
        return {
            "id": "cmpl-0",
            "object": "text_completion",
            "model": "made-up",
            "choices": [
                {
                    "index": 0,
                    "text": "".join(map(word, ids[PROMPT:])),
                    "logprobs": made.model_dump(mode="json"),
                    "finish_reason": "length",
                    "token_ids": ids[PROMPT:],
                    "prompt_logprobs": None,
                }
            ],
        }

    def score(self, model, ids):
        """/v1/completions with prompt_logprobs, and one token generated."""
        return {
            "object": "text_completion",
            "choices": [
                {
                    "index": 0,
                    "text": "x",
                    "logprobs": None,
                    "prompt_token_ids": ids,
                    "prompt_logprobs": plain(self.scored(model, ids)),
                }
            ],
        }

    def offline(self, model, ids, flat=False):
        """What dataclasses.asdict makes of a RequestOutput's fields."""
        return {
            "prompt_token_ids": ids[:PROMPT],
            "prompt_logprobs": None,
            "outputs": [
                {"token_ids": ids[PROMPT:], "logprobs": plain(self.generated(model, ids, flat))}
            ],
        }


def plain(container):
    if dataclasses.is_dataclass(container):
        return dataclasses.asdict(container)
    return [
        None if row is None else {str(i): dataclasses.asdict(value) for i, value in row.items()}
        for row in container
    ]


def word(token):
    """Tokens 10 and 11 look alike."""
    return " " + "abcdefghijj"[min(token, 10)]


class Sglang:
    def __init__(self, root):
        root = pathlib.Path(root) / "sglang/srt/managers"
        space = {name: getattr(typing, name) for name in ["Any", "Dict", "List", "Optional", "Tuple"]}
        space |= {"np": numpy}
        import base64

        space["pybase64"] = base64
        layout = ["flat_top_logprobs_layout", "build_flat_top_logprobs_arrays"]
        parts(root / "io_struct.py", layout, space)
        flat = ["_build_flat_top_logprobs_fields_from_arrays", "_build_flat_top_logprobs_fields"]
        manager = parts(
            root / "tokenizer_manager.py",
            flat + ["detokenize_logprob_tokens", "detokenize_top_logprobs_tokens"],
            space,
        )
        self.flat = manager._build_flat_top_logprobs_fields
        self.manager = types.SimpleNamespace()
        for name in ["detokenize_logprob_tokens", "detokenize_top_logprobs_tokens"]:
            setattr(self.manager, name, types.MethodType(getattr(manager, name), self.manager))

    def response(self, model, ids, *, scored=False, flat=None, temperature=1.0):
        begin = 0 if scored else PROMPT - 1
        rows = [model.logprobs(last, temperature) for last in ids[begin:-1]]
        tokens = ids[begin + 1 :]
        values = [float(row[token]) for row, token in zip(rows, tokens)]
        top_ids = [top(row, K) for row in rows]
        top_values = [[float(row[i]) for i in best] for row, best in zip(rows, top_ids)]
        if scored:
            values, tokens = [None, *values], ids
            top_ids, top_values = [None, *top_ids], [None, *top_values]
        side = "input" if scored else "output"
        pairs = self.manager.detokenize_logprob_tokens(values, tokens, False)
        info = {"id": "0", "prompt_tokens": len(ids) if scored else PROMPT}
        info[f"{side}_token_logprobs"] = pairs
        if flat is None:
            nested = self.manager.detokenize_top_logprobs_tokens(top_values, top_ids, False)
            info[f"{side}_top_logprobs"] = nested
        else:
            info |= self.flat(side, top_values, top_ids, K, return_b64=flat == "b64")
        if not scored:
            info |= {"spec_verify_ct": 3, "spec_num_proposed_drafts": 9, "spec_num_correct_drafts": 2}
        return {"text": None, "output_ids": [] if scored else ids[PROMPT:], "meta_info": info}


def llama_cpp(model, ids, after=False):
    """`completion_token_output` of tools/server/server-task.cpp."""
    entries = []
    for last, token in zip(ids[PROMPT - 1 :], ids[PROMPT:]):
        row = model.logprobs(last, TEMPERATURE if after else 1.0)
        kind, many = ("prob", "top_probs") if after else ("logprob", "top_logprobs")
        best = top(row, 5)
        if after:
            kept = numpy.full_like(row, -numpy.inf)
            kept[best] = row[best]
            row = kept - numpy.log(numpy.exp(kept.astype(numpy.float64)).sum())

        def entry(i):
            value = float(numpy.exp(row[i])) if after else float(row[i])
            if not after and not numpy.isfinite(value):
                value = float(numpy.finfo(numpy.float32).min)
            return {"id": i, "token": word(i), "bytes": list(word(i).encode()), kind: value}

        entries.append(entry(token) | {many: [entry(i) for i in best]})
    return {
        "index": 0,
        "content": "".join(map(word, ids[PROMPT:])),
        "tokens": ids[PROMPT:],
        "id_slot": 0,
        "stop": True,
        "model": "made-up.gguf",
        "generation_settings": {
            "temperature": TEMPERATURE if after else 1.0,
            "top_k": 5 if after else 0,
            "n_probs": 5,
            "post_sampling_probs": after,
        },
        "completion_probabilities": entries,
        "timings": {"prompt_n": PROMPT, "predicted_n": LENGTH},
    }


class Calls:
    """Calls of transformers' `_speculative_sampling`, under the names of its arguments and
    results: what `specgap import --from hf` reads."""

    def __init__(self):
        self.text = -1
        self.parts = {}

    def add(self, ids, candidate_logits, length, new_logits, result):
        """One call."""
        valid_tokens, n_matches = result
        one = {
            "candidate_logits": candidate_logits[0, :length].detach().float().numpy(),
            "new_logits": new_logits[0, : length + 1].detach().float().numpy(),
            "candidate_input_ids": ids[0, -length:].numpy().astype(numpy.int64),
            "valid_tokens": valid_tokens[0].numpy().astype(numpy.int64),
            "candidate_length": numpy.array([length]),
            "n_matches": numpy.array([int(n_matches)]),
            "prompt_id": numpy.array([self.text]),
        }
        for name, rows in one.items():
            self.parts.setdefault(name, []).append(rows)

    def arrays(self):
        """All of them, one behind the other."""
        return {name: numpy.concatenate(rows) for name, rows in self.parts.items()}


def transformers_rounds(path):
    """Assisted generation of two random models of 64 tokens."""
    import torch
    import transformers
    from specgap.record.hf import verified

    torch.manual_seed(5)
    torch.set_num_threads(1)
    models = []
    for layers in (2, 1):
        config = transformers.LlamaConfig(
            vocab_size=64,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=4,
            initializer_range=0.5,
            bos_token_id=1,
            eos_token_id=None,
            pad_token_id=0,
        )
        models.append(transformers.LlamaForCausalLM(config).eval())
    target, draft = models
    draft.generation_config.num_assistant_tokens = 3
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    written = []
    calls = Calls()
    with verified(calls.add):
        for prompt in ([1, 5, 9], [1, 7]):
            calls.text += 1
            ids = target.generate(
                torch.tensor([prompt]),
                attention_mask=torch.ones((1, len(prompt)), dtype=torch.long),
                assistant_model=draft,
                max_new_tokens=24,
                **PLAIN | {"temperature": 1.5},
            )
            written.append(ids[0].tolist())
    numpy.savez(path, **calls.arrays())
    with torch.no_grad():
        rows = [[model(torch.tensor([ids])).logits[0].numpy() for ids in written] for model in models]
    for name, of_model in zip(("target", "draft"), rows):
        for number, (ids, logits) in enumerate(zip(written, of_model)):
            prompt = (3, 2)[number]
            numpy.savez(
                path.with_name(f"hf-{name}-{number}.npz"),
                logits=logits[prompt - 1 : -1][:, None, :],
                sequences=numpy.array([ids]),
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vllm", required=True)
    parser.add_argument("--sglang", required=True)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    out = args.out
    every = list(texts())

    def write(name, records):
        (out / name).write_text("".join(json.dumps(record) + "\n" for record in records))

    rows = {"target_logprobs": [], "draft_logprobs": [], "prompt_id": [], "position": [], "token": []}
    for number, (_, ids) in enumerate(every):
        for index, (last, token) in enumerate(zip(ids[PROMPT - 1 :], ids[PROMPT:])):
            rows["target_logprobs"].append(TARGET.logprobs(last))
            rows["draft_logprobs"].append(DRAFT.logprobs(last))
            rows["prompt_id"].append(number)
            rows["position"].append(index)
            rows["token"].append(token)
    numpy.savez(out / "truth.npz", **{name: numpy.asarray(row) for name, row in rows.items()})

    vllm, sglang = Vllm(args.vllm), Sglang(args.sglang)
    ids = [ids for _, ids in every]
    write("vllm-chat-target.jsonl", [vllm.chat(TARGET, text) for text in ids])
    write("vllm-chat-text-target.jsonl", [vllm.chat(TARGET, text, False) for text in ids])
    write("vllm-completion-target.jsonl", [vllm.completion(TARGET, text) for text in ids])
    write("vllm-completion-draft.jsonl", [vllm.completion(DRAFT, text) for text in ids])
    write("vllm-completion-text-target.jsonl", [vllm.completion(TARGET, text, False) for text in ids])
    write("vllm-scored-target.jsonl", [vllm.score(TARGET, text) for text in ids])
    write("vllm-scored-draft.jsonl", [vllm.score(DRAFT, text) for text in ids])
    (out / "vllm-offline-target.json").write_text(
        json.dumps([vllm.offline(TARGET, text) for text in ids], indent=1)
    )
    write("vllm-flat-draft.jsonl", [vllm.offline(DRAFT, text, True) for text in ids])
    write("sglang-target.jsonl", [sglang.response(TARGET, text) for text in ids])
    (out / "sglang-scored-draft.json").write_text(
        json.dumps([sglang.response(DRAFT, text, scored=True) for text in ids])
    )
    write("sglang-flat-target.jsonl", [sglang.response(TARGET, text, flat="lists") for text in ids])
    write(
        "sglang-b64-draft.jsonl",
        [sglang.response(DRAFT, text, scored=True, flat="b64") for text in ids],
    )
    for name, model in (("target", TARGET), ("draft", DRAFT)):
        write(
            f"sglang-cold-{name}.jsonl",
            [sglang.response(model, text, temperature=TEMPERATURE) for text in ids],
        )
        write(f"llama-cpp-{name}.jsonl", [llama_cpp(model, text) for text in ids])
        write(f"llama-cpp-after-{name}.jsonl", [llama_cpp(model, text, True) for text in ids])
    transformers_rounds(out / "hf-rounds.npz")


if __name__ == "__main__":
    main()

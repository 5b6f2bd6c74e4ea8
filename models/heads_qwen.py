"""Trains an EAGLE-like head on Qwen2.5-Coder's hidden states on a GPU, and logs it by depth.

    models/build qwen
    python models/heads_qwen.py --models models/out/qwen --size 0.5B --output out/qwen-head

The head is `heads.Eagle`, one layer on three fused hidden states and the last token's embedding, over the
16,384 tokens with the most target mass. The target writes the text: answers to prompts of prompts/distil.json
at T = 1 in bfloat16 for training, to the 40 of prompts/capture.jsonl in float32 for what is logged. Training by
KL; from there by KL and by -ln of the overlap (LK), the same steps each. Steps are counted, never the clock.

Writes `eagle-kl.safetensors` and `eagle-lk.safetensors`: whole rows by (start, depth), over the sub-vocabulary
and one token more for all others, which no draft ever is; and `training.json`. Needs torch and transformers 5, and a
GPU of 40 GB; two minutes for the 0.5B on an H200.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import onnx
import torch
import transformers
from safetensors.numpy import save_file
from tokenizers import Tokenizer

import heads
from chat import chat, held_out_prompts, training_prompts
from decoder_graph import DecoderConfig
from heads import DEPTHS, Eagle, Sequence, Target, collate

SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
#: Of each size the graph, the width of a head, and the layers whose inputs are read.
SIZES = {"1.5B": ("target", 128, (2, 14, 25)), "0.5B": ("draft", 64, (2, 12, 21))}
SEED = 29
VOCABULARY = 16_384
RATE = 1e-3
#: Starts of rounds that training takes, one of so many.
EVERY = 2
#: Matrices of a layer, by their names in transformers.
PLACES = {
    "attention_norm": "input_layernorm.weight", "query": "self_attn.q_proj.weight", "key": "self_attn.k_proj.weight",
    "value": "self_attn.v_proj.weight", "query_bias": "self_attn.q_proj.bias", "key_bias": "self_attn.k_proj.bias",
    "value_bias": "self_attn.v_proj.bias", "attention_output": "self_attn.o_proj.weight",
    "feed_forward_norm": "post_attention_layernorm.weight", "gate": "mlp.gate_proj.weight", "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
}  # fmt: skip
OUTSIDE = {"embedding": "model.embed_tokens.weight", "output": "lm_head.weight", "output_norm": "model.norm.weight"}


def read_target(folder: Path, name: str, head_dim: int) -> tuple[DecoderConfig, transformers.PreTrainedModel]:
    """The built graph's weights in transformers' model, float32 on the GPU."""
    path = folder / f"{name}.onnx"
    shapes = {t.name: t for t in onnx.load(path, load_external_data=False).graph.initializer if t.external_data}
    file = np.memmap(folder / f"{name}.bin", "<f4", "r")

    def weight(name: str) -> torch.Tensor:
        where = {entry.key: int(entry.value) for entry in shapes[name].external_data if entry.key != "location"}
        first = where["offset"] // 4
        flat = np.array(file[first : first + where["length"] // 4])
        return torch.from_numpy(flat.reshape(tuple(shapes[name].dims))).cuda()

    layers = 1 + max(int(name.split(".")[1]) for name in shapes if name.startswith("layers."))
    vocabulary, width = shapes["embedding"].dims
    config = DecoderConfig(
        layers=layers, width=width, heads=width // head_dim, kv_heads=shapes["layers.0.key"].dims[1] // head_dim,
        head_dim=head_dim,
        feed_forward=shapes["layers.0.gate"].dims[1], vocabulary=vocabulary, context=4096,
        norm_epsilon=1e-6, rope_base=1e6, projection_bias=True, own_output=True,
    )  # fmt: skip
    with torch.device("cuda"):
        model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
            vocab_size=vocabulary, hidden_size=width, intermediate_size=config.feed_forward, num_hidden_layers=layers,
            num_attention_heads=config.heads, num_key_value_heads=config.kv_heads, rms_norm_eps=config.norm_epsilon,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope_base}, tie_word_embeddings=False, max_position_embeddings=config.context,
        ))
    state = {place: weight(name) for name, place in OUTSIDE.items()}
    for layer in range(layers):
        for part, place in PLACES.items():
            value = weight(f"layers.{layer}.{part}")
            state[f"model.layers.{layer}.{place}"] = value.T.contiguous() if value.ndim == 2 else value
    model.load_state_dict(state, assign=True)
    expected = config.rope_base ** (-2 / config.head_dim)
    if abs(float(model.model.rotary_emb.inv_freq[1]) - expected) > 1e-6:
        raise SystemExit("this version of transformers does not take the rotary base; use 5.17")
    return config, model.eval()


@torch.no_grad()
def written(model, tokenizer, texts: list[str], tokens: int, seed: int, end: int) -> list[tuple[list[int], list[int]]]:
    """Prompts and the target's answers, at T = 1."""
    torch.manual_seed(seed)
    encoded = [tokenizer.encode(chat(text, SYSTEM)).ids for text in texts]
    longest = max(map(len, encoded))
    ids = torch.full((len(encoded), longest), end)
    for row, prompt in enumerate(encoded):
        ids[row, longest - len(prompt) :] = torch.tensor(prompt)
    real = torch.arange(longest) >= longest - torch.tensor([len(prompt) for prompt in encoded])[:, None]
    found = model.generate(
        ids.cuda(), attention_mask=real.long().cuda(), max_new_tokens=tokens, eos_token_id=end, pad_token_id=end,
        # What is not said here comes from the model's generation_config, which may cut or penalise.
        do_sample=True, temperature=1.0, top_k=0, top_p=1.0, min_p=None, typical_p=1.0, epsilon_cutoff=0.0,
        eta_cutoff=0.0, repetition_penalty=1.0, no_repeat_ngram_size=0, bad_words_ids=None, suppress_tokens=None,
    )[:, longest:].tolist()
    answers = [row[: row.index(end) + 1] if end in row else row for row in found]
    return list(zip(encoded, answers))


@torch.no_grad()
def states_of(model, texts: list[tuple[list[int], list[int]]], taps: tuple[int, ...], output: torch.Tensor,
              mass: torch.Tensor | None, stored: torch.dtype) -> list[Sequence]:  # fmt: skip
    """What the head reads: the inputs of three layers, each over its root mean square, and the final state."""
    found = []
    for first in range(0, len(texts), 32):
        part = texts[first : first + 32]
        size = max(len(p) + len(a) for p, a in part)
        ids = torch.zeros(len(part), size, dtype=torch.long, device="cuda")
        for row, (prompt, answer) in enumerate(part):
            ids[row, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        # Padding stands at the end, where a causal model reads it last.
        read = model.model(ids, output_hidden_states=True)
        tapped = [read.hidden_states[t].float() for t in taps]
        tapped = [t * torch.rsqrt(t.square().mean(-1, keepdim=True) + 1e-6) for t in tapped]
        states = torch.stack([*tapped, read.last_hidden_state.float()], 2)
        for row, (prompt, answer) in enumerate(part):
            kept = states[row, : len(prompt) + len(answer) - 1]
            logits = kept[len(prompt) - 1 :, -1].to(output.dtype) @ output.T
            log_sum = torch.logsumexp(logits.float(), -1)
            if mass is not None:
                mass += (logits.float() - log_sum[:, None]).exp_().sum(0)
            tokens = torch.tensor(prompt + answer, device="cuda")
            found.append(Sequence(tokens, len(prompt), kept.to(stored), log_sum))
    return found


@torch.no_grad()
def residual_scale(model, texts: list[tuple[list[int], list[int]]]) -> float:
    """The median root mean square of what the last layer reads, where the head's features start."""
    prompt, answer = texts[0]
    read = model.model(torch.tensor([prompt + answer], device="cuda"), output_hidden_states=True)
    return float(read.hidden_states[-2].float().square().mean(-1).sqrt().median())


@torch.no_grad()
def write_log(path: Path, model: Eagle, held: list[Sequence], chosen: torch.Tensor, output: torch.Tensor, facts: dict) -> None:
    """Whole rows over the sub-vocabulary, and one token more for all others."""
    place = torch.full((int(facts["whole"]),), len(chosen))
    place[chosen] = torch.arange(len(chosen))
    columns: dict[str, list] = {name: [] for name in ("prompt_id", "position", "token", "seed", "target_probs", "draft_probs")}
    for number, one in enumerate(held):
        batch = collate([one])
        features, p = model(batch)[0], heads.target_rows(batch, output)
        q = torch.softmax(features @ output.T, -1)
        q[(torch.arange(one.answer)[:, None] + torch.arange(DEPTHS)) >= one.answer] = 0
        columns["target_probs"].append(torch.cat([p, (1 - p.sum(1, keepdim=True)).clamp(min=0)], 1).cpu().numpy())
        columns["draft_probs"].append(torch.nn.functional.pad(q, (0, 1)).cpu().numpy())
        columns["token"].append(place[one.tokens[one.prompt :]].int().cpu().numpy())
        columns["prompt_id"].append(np.full(one.answer, number, np.int32))
        columns["position"].append(np.arange(one.answer, dtype=np.int32))
        columns["seed"].append(np.full(one.answer, -1, np.int32))  # all answers draw from one generator
    titles = [name for name, _ in held_out_prompts()][: len(held)]
    metadata = {
        "tool": "specgap models/heads_qwen.py", "target": {"name": facts["target"]},
        "draft": {"name": f"{path.stem} of models/heads_qwen.py"}, "temperature_applied": 1.0,
        "sampling": {"temperature": 1.0, "seed": SEED, "max_tokens": facts["tokens"], "chat": "none"},
        "vocabulary": len(chosen) + 1,
        "prompts": [{"id": i, "name": n, "positions": s.answer} for i, (n, s) in enumerate(zip(titles, held))],
    }  # fmt: skip
    arrays = {name: np.ascontiguousarray(np.concatenate(parts)) for name, parts in columns.items()}
    save_file(arrays, path, metadata={"specgap": json.dumps(metadata)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="folder of `models/build qwen`")
    parser.add_argument("--size", choices=SIZES, default="1.5B")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--answers", type=int, default=6144, help="answers of the target to train on")
    parser.add_argument("--tokens", type=int, default=96, help="most tokens of an answer")
    parser.add_argument("--trunk", type=int, default=700, help="steps by KL that both heads have in common")
    parser.add_argument("--branch", type=int, default=300, help="steps by each loss after that")
    parser.add_argument("--batch", type=int, default=48)
    a = parser.parse_args()
    a.output.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    graph, head_dim, taps = SIZES[a.size]
    config, model = read_target(a.models, graph, head_dim)
    tokenizer = Tokenizer.from_file(str(a.models / "tokenizer.json"))
    end = tokenizer.token_to_id("<|im_end|>")
    print(f"target on the GPU after {time.monotonic() - begin:.0f} s", flush=True)
    held_text = written(model, tokenizer, [text for _, text in held_out_prompts()], a.tokens, SEED, end)
    output = model.lm_head.weight.detach()
    held = states_of(model, held_text, taps, output, None, torch.float32)
    embedding = model.model.embed_tokens.weight.detach()
    last = {name: model.state_dict()[f"model.layers.{config.layers - 1}.{place}"] for name, place in PLACES.items()}
    scale = residual_scale(model, held_text)
    layer = {name: (v.T if v.ndim == 2 else v).cpu().numpy().copy() for name, v in last.items() if "bias" not in name}
    output_norm = model.model.norm.weight.detach().cpu().clone()
    model = model.bfloat16()
    texts: list[tuple[list[int], list[int]]] = []
    prompts = training_prompts(2048, SEED)
    while len(texts) < a.answers:
        some = prompts[len(texts) % len(prompts) :][:1024]
        texts += written(model, tokenizer, some, a.tokens, SEED + 1 + len(texts), end)
    mass = torch.zeros(config.vocabulary, device="cuda")
    data = states_of(model, texts, taps, output.bfloat16(), mass, torch.bfloat16)
    del model
    torch.cuda.empty_cache()
    positions = sum(s.answer for s in data)
    print(f"{len(data)} answers, {positions} positions after {time.monotonic() - begin:.0f} s", flush=True)

    torch.set_default_device("cuda")
    torch.set_float32_matmul_precision("high")
    heads.TAPS, heads.BATCH, heads.EVERY, heads.RATE, heads.CHUNK = taps, a.batch, EVERY, RATE, 4096
    chosen = torch.topk(mass, min(VOCABULARY, config.vocabulary - 1)).indices.sort().values
    covered = float(mass[chosen].sum() / mass.sum())
    rows = output[chosen].contiguous()
    torch.manual_seed(SEED)
    target = Target(config, embedding.float(), output_norm.cuda(), layer)
    with torch.device("cpu"):
        trunk = Eagle(Target(config, embedding.float().cpu(), output_norm, layer))
    trunk = trunk.cuda()
    with torch.no_grad():
        trunk.feature_norm.fill_(scale)
    trunk.embedding = [target.embedding]

    def train(name: str, steps: int, decay: bool) -> dict:
        return heads.train(trunk, name, steps, SEED, decay, data, held, chosen, rows, warm=50, measure=max(1, steps // 4))

    runs = [train("kl", a.trunk, False)]
    torch.set_float32_matmul_precision("highest")
    state = {name: value.clone() for name, value in trunk.state_dict().items()}
    for name in ("kl", "lk"):
        trunk.load_state_dict(state)
        torch.set_float32_matmul_precision("high")
        runs.append(train(name, a.branch, True))
        torch.set_float32_matmul_precision("highest")
        trunk.eval()
        name_of_target = f"Qwen2.5-Coder-{a.size}-Instruct, GGUF Q4_K_M dequantised"
        facts = {"target": name_of_target, "whole": config.vocabulary, "tokens": a.tokens}
        write_log(a.output / f"eagle-{name}.safetensors", trunk, held, chosen, rows, facts)
    settings = {
        "target": name_of_target,
        "seed": SEED, "depths": DEPTHS, "draft_vocabulary": len(chosen), "covered": round(covered, 5), "answers": len(data),
        "positions": positions, "batch": a.batch, "starts_every": EVERY, "rate": RATE, "taps": taps,
        "parameters": sum(p.numel() for p in trunk.parameters()), "held_out_positions": sum(s.answer for s in held),
        "device": torch.cuda.get_device_name(), "torch": torch.__version__, "transformers": transformers.__version__,
        "curve_columns": ["step", "loss since the row before", "E[tau]", *(f"overlap {j}" for j in range(DEPTHS))],
        "runs": runs, "seconds": round(time.monotonic() - begin),
    }  # fmt: skip
    (a.output / "training.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

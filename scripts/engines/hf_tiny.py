"""A real run of transformers' assisted generation, recorded and audited.

    pip install WHEEL torch transformers
    python scripts/engines/hf_tiny.py [FOLDER] [--models models/out]

With --models it is the pair of `models/build hf`, on the prompts of the repository's captures. Otherwise two
Llama models of a few thousand weights, with random weights from fixed seeds: nothing is
downloaded. The draft model is the target with noise on its weights, so that some drafts are kept.
`generate(assistant_model=..)` decodes, `specgap.record.hf` writes the log, and `gap` and `audit` read
it. Exits with 1 if the audit refutes anything. Checked with transformers 5.23.0 and torch 2.15.0
on the CPU.
"""

import argparse
import copy
import pathlib
import tempfile

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

import specgap as sg
from texts import PLAIN, chat_prompts

TEXTS, TOKENS, DRAFTS = 24, 40, 4

torch.set_num_threads(1)


def real(folder):
    """The pair of a folder, and its prompts."""
    target, draft = (LlamaForCausalLM.from_pretrained(folder / "hf" / name).eval() for name in ("target", "draft"))
    tokenizer = AutoTokenizer.from_pretrained(folder / "hf/target")
    return target, draft, [tokenizer(text, return_tensors="pt")["input_ids"] for text in chat_prompts(TEXTS)]


def tiny():
    """Random weights, and prompts of three tokens."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=256,
        bos_token_id=0, eos_token_id=None, pad_token_id=0, initializer_range=0.35,
    )
    target = LlamaForCausalLM(config).eval()
    draft = copy.deepcopy(target)
    with torch.no_grad():
        for weights in draft.parameters():
            weights += 0.06 * torch.randn_like(weights)
    return target, draft, [torch.tensor([[0, 1 + text % 63, 2 + text % 61]]) for text in range(TEXTS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path)
    arguments = parser.parse_args()
    folder = arguments.folder or pathlib.Path(tempfile.mkdtemp())
    target, draft, prompts = real(arguments.models) if arguments.models else tiny()
    for model in (target, draft):
        model.generation_config.update(**PLAIN, pad_token_id=0, eos_token_id=None)
    # The defaults end drafts early, and draft 20.
    draft.generation_config.assistant_confidence_threshold = 0.0
    draft.generation_config.num_assistant_tokens = DRAFTS
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    with sg.record.hf(target, draft, out=folder / "log") as recording:
        for seed, prompt in enumerate(prompts):
            torch.manual_seed(seed)
            target.generate(
                prompt, attention_mask=torch.ones_like(prompt), assistant_model=draft, max_new_tokens=TOKENS, **PLAIN
            )
    print(f"{recording.rounds} rounds, {recording.positions} positions: {folder / 'log'}\n")
    report = sg.gap(folder / "log", drafts=[2, 3], temperature=1.0)
    print(report.text()[:1200], "\n")
    audited = sg.audit(folder / "log", rule="token")
    print(audited)
    report.save(folder / "gap")
    audited.save(folder / "audit")
    return 0 if audited.ok else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""A real run of transformers' assisted generation, recorded and audited.

    pip install WHEEL torch transformers
    python scripts/engines/hf_tiny.py [FOLDER]

Two Llama models of a few thousand weights, with random weights from fixed seeds: nothing is
downloaded. The draft model is the target with noise on its weights, so that some drafts are kept.
`generate(assistant_model=..)` decodes, `specgap.record.hf` writes the log, and `gap` and `audit` read
it. Exits with 1 if the audit refutes anything. Checked with transformers 5.23.0 and torch 2.15.0
on the CPU.
"""

import copy
import pathlib
import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import specgap as sg

TEXTS, TOKENS, DRAFTS = 24, 40, 4

torch.set_num_threads(1)


def models():
    """The pair."""
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
    for model in (target, draft):
        model.generation_config.update(
            do_sample=True, top_k=0, top_p=1.0, temperature=1.0, pad_token_id=0,
        )
    # The defaults end drafts early, and draft 20.
    draft.generation_config.assistant_confidence_threshold = 0.0
    draft.generation_config.num_assistant_tokens = DRAFTS
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    return target, draft


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    target, draft = models()
    with sg.record.hf(target, draft, out=folder / "log") as recording:
        for text in range(TEXTS):
            prompt = torch.tensor([[0, 1 + text % 63, 2 + text % 61]])
            target.generate(
                prompt, attention_mask=torch.ones_like(prompt), assistant_model=draft,
                max_new_tokens=TOKENS, do_sample=True,
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
    sys.exit(main())

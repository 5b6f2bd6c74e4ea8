"""How many tokens does one call of a transformers model write?

`generate` with strata and a rule, on a tiny pair with random weights: another draft is the target with its last layer
skipped. With models of yours, only the two names change.
"""

import matplotlib.pyplot as plt
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from specgap.hf import skip, speculative

torch.manual_seed(0)
size = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4)
target = LlamaForCausalLM(LlamaConfig(**size, initializer_range=0.3)).eval()
calls = {}
for tree, rule in (("chain-4", "token"), ("4", "level-4"), ("4-2-1", "level-4"), ("4-2-1", "traversal-4")):
    decode = speculative(skip(target, [3]), tree=tree, law="stratified", rule=rule, seed=0)
    for prompt in range(3):
        ids = torch.tensor([[1, 2, 3 + prompt]])
        target.generate(ids, attention_mask=torch.ones_like(ids), custom_generate=decode, do_sample=True, top_k=0,
                        max_new_tokens=24, pad_token_id=0)
    calls[f"{tree}\n{rule}"] = decode.tokens_per_call
plt.bar(list(calls), list(calls.values()), color="#9db7d5")
plt.axhline(1, color="gray", linewidth=0.8)
plt.ylabel("tokens per call of the target")
plt.tight_layout()
plt.savefig("gallery.svg")
print("; ".join(f"{name.replace(chr(10), ' ')}: {value:.2f}" for name, value in calls.items()))

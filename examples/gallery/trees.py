"""Which tree, and which rule on it?

Tokens per call of the best tree of each size, by three rules: from the leaves (traversal-4), from the root (level-4), and
recursive rejection of independent children.
"""

import matplotlib.pyplot as plt

import specgap as sg

LOG = "models/logs/smollm2-chat"
RULES = [("stratified", "traversal-4"), ("stratified", "level-4"), ("with-replacement", "rrs")]
said = []
for law, rule in RULES:
    rows = sg.tree(LOG, budget=16, schemes=law, verifiers=rule).to_dict()["best"][0]["by_budget"]
    calls = [row["tokens_per_call"]["mean"] for row in rows]
    plt.plot([row["nodes"] for row in rows], calls, "o-", label=f"{rule}, {law}")
    said.append(f"{rule} {calls[-1]:.2f}")
plt.xlabel("drafted tokens a call")
plt.ylabel("tokens per call of the target")
plt.legend()
plt.tight_layout()
plt.savefig("gallery.svg")
print(", ".join(said), "(16 tokens)")

"""How many tokens should I draft?

The speed by the number of drafts, at three costs of a draft step. Each is replayed along the text of a shipped log.
"""

import matplotlib.pyplot as plt

import specgap as sg

LOG = "models/logs/smollm2-chat"
chosen = []
for cost in (0.02, 0.1, 0.3):
    rows = sg.length(LOG, lengths=range(1, 9), verifiers="block", drafts="sampled", cost_ratio=cost).to_dict()["results"]
    line = {row["parameter"]: row["speedup"] for row in rows if row["policy"] == "fixed"}
    means = [line[k]["mean"] for k in sorted(line)]
    plt.plot(sorted(line), means, "o-", label=f"draft step {cost} of a target step")
    best = max(line, key=lambda k: line[k]["mean"])
    chosen.append(f"c = {cost}: {best:.0f} drafts, {line[best]['mean']:.2f} times")
plt.axhline(1, color="gray", linewidth=0.8)
plt.xlabel("drafts a round")
plt.ylabel("speed, times the target alone")
plt.legend()
plt.tight_layout()
plt.savefig("gallery.svg")
print("; ".join(chosen))

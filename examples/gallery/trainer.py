"""What is a drafter in training worth to the engine that serves it?

Five checkpoints of a made drafter, nearer and nearer to the target. `sg.drafter` sums up batches as a validation loop has
them; the lines are tokens a round by what an engine drafts.
"""

import matplotlib.pyplot as plt
import numpy as np

import specgap as sg

V, B, T, K = 50, 16, 40, 3
rng = np.random.default_rng(0)
table = 2 * rng.normal(size=(V, V))
wrong = rng.normal(size=(V, V))
ids = np.zeros((B, T + 1), dtype=int)
for t in range(1, T + 1):
    ids[:, t] = [rng.choice(V, p=np.exp(z) / np.exp(z).sum()) for z in table[ids[:, t - 1]]]
lines: dict[str, list[float]] = {"acceptance_length": [], "acceptance_length_one_hot": []}
for noise in (1.5, 1.2, 0.9, 0.6, 0.3):
    draft = np.zeros((B, T, K, V))
    for j in range(K):
        draft[:, : T - j, j] = (table + noise * wrong)[ids[:, j:-1]]
    drafter = sg.drafter(depth=K, temperature=1.0)
    drafter.add(table[ids[:, :-1]], draft, ids[:, 1:], prompt_id=range(B))
    metrics = drafter.report().metrics()
    for name, line in lines.items():
        line.append(metrics[name])
for name, line in lines.items():
    plt.plot(range(1, 6), line, "o-", label=name)
plt.xlabel("checkpoint")
plt.ylabel("tokens a round of three drafts")
plt.legend()
plt.tight_layout()
plt.savefig("gallery.svg")
print(", ".join(f"{name} {line[0]:.2f} to {line[-1]:.2f}" for name, line in lines.items()))

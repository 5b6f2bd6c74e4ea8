"""How much more can strata give than independent drafts?

alpha* of both laws, and what four level passes and recursive rejection get of them, by the number of drafts. The rows
agree well: with six drafts and more, four fixed levels are too high, and a mark falls below recursive rejection.
"""

import matplotlib.pyplot as plt
import numpy as np

import specgap as sg

rng = np.random.default_rng(0)
p = rng.dirichlet(np.full(1000, 0.05), 64)
q = 0.6 * p + 0.4 * rng.dirichlet(np.full(1000, 0.05), 64)
q /= q.sum(axis=1, keepdims=True)
drafts = [1, 2, 3, 4, 6, 8]
lines = {
    "strata, optimum": [sg.alpha(p, q, n, "stratified").value.mean() for n in drafts],
    "strata, level-4": [sg.acceptance("level-4", p, q, n, "stratified").value.mean() for n in drafts],
    "i.i.d., optimum": [sg.alpha(p, q, n).value.mean() for n in drafts],
    "i.i.d., rrs": [sg.acceptance("rrs", p, q, n).value.mean() for n in drafts],
}
for name, line in lines.items():
    plt.plot(drafts, line, "o-" if "level" in name else "-", label=name)
plt.xlabel("drafts")
plt.ylabel("accepted, mean of 64 rows")
plt.legend()
plt.tight_layout()
plt.savefig("gallery.svg")
print(", ".join(f"{name} {line[3]:.4f}" for name, line in lines.items()), "(four drafts)")

"""What does one noise for draft and target give?

Engines that compare tokens keep a draft if the target draws it too. With the same Gumbel noise for both they agree far
more often: the rule shared-gumbel.
"""

import matplotlib.pyplot as plt
import numpy as np

import specgap as sg

rng = np.random.default_rng(2)
p = rng.dirichlet(np.full(200, 0.1), 32)
q = 0.5 * p + 0.5 * rng.dirichlet(np.full(200, 0.1), 32)
drafts = [1, 2, 3, 4, 6, 8]
law = "without-replacement"
lines = {
    "optimum": [sg.alpha(p, q, n, law).value.mean() for n in drafts],
    "rrs-wo": [sg.acceptance("rrs-wo", p, q, n, law).value.mean() for n in drafts],
    "shared noise": [sg.acceptance("shared-gumbel", p, q, n, law).value.mean() for n in drafts],
    "own noise": [sg.acceptance("exact-match", p, q, n, law).value.mean() for n in drafts],
}
for name, line in lines.items():
    plt.plot(drafts, line, "o-" if "noise" in name else "-", label=name)
plt.xlabel("drafts")
plt.ylabel("accepted, mean of 32 rows")
plt.legend()
plt.tight_layout()
plt.savefig("gallery.svg")
print(", ".join(f"{name} {line[0]:.3f}" for name, line in lines.items()), "(one draft)")

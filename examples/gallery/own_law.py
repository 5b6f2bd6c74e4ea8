"""Does another way of drawing drafts leave more room?

Each draft has a row of its own: a temperature of its own makes the first sure and the second bold. alpha* of such drafts,
by how far the two temperatures are apart.
"""

import matplotlib.pyplot as plt
import numpy as np

import specgap as sg

rng = np.random.default_rng(1)
z = 2.5 * rng.normal(size=(32, 500))
p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
noisy = z + 1.2 * rng.normal(size=z.shape)


def row(t):
    e = np.exp((noisy - noisy.max(axis=1, keepdims=True)) / t)
    return e / e.sum(axis=1, keepdims=True)


spread = [1.0, 1.1, 1.25, 1.5, 2.0]
best = [
    np.mean([sg.alpha(p[i], scheme=sg.laws.independent([row(1 / s)[i], row(s)[i]])).value for i in range(32)])
    for s in spread
]
plt.plot(spread, best, "o-")
plt.xlabel("temperature of the second draft, and 1/that of the first")
plt.ylabel("alpha*, mean of 32 rows")
plt.tight_layout()
plt.savefig("gallery.svg")
print(", ".join(f"{s}: {value:.4f}" for s, value in zip(spread, best)))

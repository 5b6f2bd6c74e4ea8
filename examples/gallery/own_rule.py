"""Is a rule of my own lossless, and does it beat recursive rejection?

`slower` keeps less of the first draft than it may. `sg.Sequential` sums its law over the vocabulary: no noise. What it
refuses at first leaves more to the later drafts, and it accepts more in all.
"""

import matplotlib.pyplot as plt
import numpy as np

import specgap as sg

LOG = "models/logs/smollm2-chat"


def slower(p, q, i, n):
    keep = np.minimum(1.0, p / (1 + 0.2 * (n - 1 - i)) / q)
    left = np.maximum(p - np.where(q > 0, q * keep, 0.0), 0.0)
    return keep, left / left.sum()


found = {n: sg.evaluate(sg.Sequential(slower), LOG, n) for n in (1, 2, 4)}
more = {n: one.differences["rrs"] for n, one in found.items()}
plt.axhline(0, color="gray", linewidth=0.8)
plt.errorbar(list(more), [one[0] for one in more.values()], [one[2] - one[0] for one in more.values()], fmt="o-")
plt.xlabel("drafts")
plt.ylabel("accepted more than by rrs")
plt.tight_layout()
plt.savefig("gallery.svg")
print(", ".join(f"n = {n}: {one[0]:+.4f}, lossless {found[n].lossless}" for n, one in more.items()))

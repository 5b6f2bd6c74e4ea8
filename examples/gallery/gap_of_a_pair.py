"""How much do a pair's usual rules leave?

Four drafts at each of 1,906 positions of a shipped log. A bar is what a rule accepts, the mark over it the optimum of the
same drafts.
"""

import matplotlib.pyplot as plt

import specgap as sg

LOG = "models/logs/smollm2-chat"
PAIRS = [("top", "exact-match"), ("with-replacement", "rrs"), ("without-replacement", "rrs-wo"), ("stratified", "level-4")]

report = sg.gap(LOG, drafts=4)
cells = {cell["scheme"]: cell for cell in report.to_dict()["cells"]}
best = [cells[law]["optimal_acceptance_rate"]["mean"] for law, _ in PAIRS]
rates = [next(row["acceptance"] for row in cells[law]["verifiers"] if row["name"] == rule) for law, rule in PAIRS]
names = [f"{rule}\n{law}" for law, rule in PAIRS]
plt.bar(names, [rate["mean"] for rate in rates], color="#9db7d5")
plt.plot(names, best, "k_", markersize=40, label="optimum of these drafts")
plt.ylabel("accepted, share of positions")
plt.xticks(fontsize=8)
plt.ylim(0, 0.8)
plt.legend()
plt.tight_layout()
plt.savefig("gallery.svg")
print(", ".join(f"{rule} {rate['mean']:.3f} of {most:.3f}" for (_, rule), rate, most in zip(PAIRS, rates, best)))

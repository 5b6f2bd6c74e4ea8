"""Does an engine draw its drafts at the temperature that it tests them with?

Two made engines write logs of 500 texts, one token each; the second draws drafts at 1.5 times the temperature. The audit
names the cause and its size.
"""

import matplotlib.pyplot as plt
import numpy as np

import specgap as sg

rng = np.random.default_rng(3)


def log(path, heat):
    with sg.LogWriter(path, dtype="float32") as rows:
        for text in range(500):
            a, b = (2 * rng.normal(size=(2, 50))).astype(np.float32)
            p, q, hot = (np.exp(z.astype(float)) / np.exp(z.astype(float)).sum() for z in (a, b, b / heat))
            draft = int(rng.choice(50, p=hot))
            kept = rng.random() < p[draft] / q[draft]
            left = np.maximum(p - q, 0)
            out = draft if kept else int(rng.choice(50, p=left / left.sum()))
            rows.append(target_logits=a, draft_logits=b, prompt_id=text, drafts=[draft], accepted=int(kept), output=out,
                        round=0, seed=text)


for name, heat in (("right", 1.0), ("hot", 1.5)):
    log(f"rounds-{name}", heat)
    found = sg.audit(f"rounds-{name}", rule="token", temperature=1.0, noise=0.0).to_dict()
    parts = {part["part"]: np.log10(part["e_value"]) for part in found["parts"] if part["e_value"]}
    plt.plot(list(parts), list(parts.values()), "o", label=f"{name}: {found['conclusion']}")
    print(f"{name}: {found['conclusion']}, {(found['cause'] or {}).get('name')}", end="; " if heat == 1 else "\n")
plt.ylabel("log10 of the evidence")
plt.legend()
plt.tight_layout()
plt.savefig("gallery.svg")

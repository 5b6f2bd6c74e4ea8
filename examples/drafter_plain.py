"""Trains heads that draft three tokens, in a plain loop, and logs what they would accept.

    pip install torch specgap [tensorboard]; python examples/drafter_plain.py [--steps 150] [--logs FOLDER]

The target is a small recurrent model with random weights; it writes its own text. The drafter is three heads on
the target's hidden state, as Medusa's: in a round that starts at s, head j is about the token at s + j.
"""

import argparse

import torch
from torch import nn

import specgap as sg

VOCABULARY, WIDTH, DEPTH = 64, 32, 3


class Target(nn.Module):
    """logits[:, t] and hidden[:, t] are made of ids[:, : t + 1], so that they are about the token at t + 1."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.recurrent = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        with torch.no_grad():
            self.head.weight *= 12

    @torch.no_grad()
    def forward(self, ids):
        hidden, _ = self.recurrent(self.embedding(ids))
        return self.head(hidden), hidden

    @torch.no_grad()
    def write(self, texts, length):
        """Text that the target draws itself, at temperature 1: [texts, length + 1]."""
        ids = torch.randint(VOCABULARY, (texts, 1))
        while ids.shape[1] <= length:
            p = torch.softmax(self(ids)[0][:, -1], -1)
            ids = torch.cat([ids, torch.multinomial(p, 1)], 1)
        return ids


class Heads(nn.Module):
    """heads[:, t, j] is about the token at t + 1 + j."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 64), nn.SiLU(), nn.Linear(64, VOCABULARY)) for _ in range(DEPTH)
        )

    def forward(self, hidden):
        return torch.stack([layer(hidden) for layer in self.layers], 2)


def rows(target, heads, ids):
    """What sg.drafter takes: p, q and the tokens that they are about. Both models shift by one."""
    logits, hidden = target(ids[:, :-1])
    return logits, heads(hidden), ids[:, 1:]


@torch.no_grad()
def evaluated(target, heads, batches):
    """The report of validation texts: (prompts, ids) of each batch."""
    acc = sg.drafter(depth=DEPTH)
    for prompts, ids in batches:
        acc.add(*rows(target, heads, ids), prompt_id=prompts)
    return acc.report()


def shown(step, metrics):
    """One line of a flat dict."""
    names = ("acceptance_length", "acceptance_length_one_hot", "lost_to_drafter_1")
    told = ", ".join(
        f"{name} {metrics[f'eval/{name}']:.3f} ± {metrics[f'eval/{name}_ci95']:.3f}" for name in names
    )
    print(f"step {step}: {told}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--logs", help="a folder for TensorBoard")
    args = parser.parse_args()
    torch.manual_seed(0)
    writer = None
    if args.logs:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(args.logs)
    target, heads = Target(), Heads()
    training = target.write(64, 48)
    validation = [(torch.arange(k, k + 8), target.write(8, 48)) for k in range(0, 24, 8)]
    optimizer = torch.optim.Adam(heads.parameters(), lr=1e-2)
    reports = []
    for step in range(args.steps + 1):
        if step % max(args.steps // 3, 1) == 0:
            reports.append(evaluated(target, heads, validation))
            metrics = reports[-1].metrics("eval/")              # a flat dict of floats
            shown(step, metrics)
            for name, value in metrics.items() if writer else ():
                writer.add_scalar(name, value, step)
        some = training[torch.randint(len(training), (16,))]
        p, q, _ = rows(target, heads, some)
        loss = sg.torch.drafter_loss(p, q)                       # minus the sum of overlaps
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if writer:
        writer.close()
    print(sg.compare(reports[0], reports[-1]))


if __name__ == "__main__":
    main()

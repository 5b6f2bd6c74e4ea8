"""Rules of one's own, of which the law is summed here from its definition, through `sg.evaluate`."""

import itertools

import numpy
import specgap as sg

KEEPS = [lambda p, q: min(1.0, p / q), lambda p, q: min(1.0, 0.5 * p / q), lambda p, q: min(1.0, 1.2 * p / q),
         lambda p, q: float(p >= 0.6 * q), lambda p, q: 1.0, lambda p, q: min(1.0, p), lambda p, q: 0.0]  # fmt: skip
LEFTS = [lambda p, q, x: numpy.maximum(p - q, 0), lambda p, q, x: p, lambda p, q, x: q, lambda p, q, x: numpy.maximum(p - q / 2, 0),
         lambda p, q, x: numpy.where(numpy.arange(len(p)) == x, 0, p)]  # fmt: skip
KINDS = {"plain": 0.3, "mixed": 0.2, "permuted": 0.2, "inside": 0.26, "state": 0.02, "own-numbers": 0.015, "loop": 0.005}


def normal(row, instead):
    return row / row.sum() if row.sum() > 1e-12 else instead


class Rule:
    """A rule that goes draft by draft: token or recursive rejection, or with one thing wrong."""

    def __init__(self, random):
        wrong, self.most = random.choice(["power", "keep", "left", "", "", ""]), int(random.integers(1, 4))
        self.power = random.choice([0.5, 0.9, 0.999, 1.2, 2.0]) if wrong == "power" else 1.0
        self.keep = KEEPS[random.integers(1, 7) if wrong == "keep" else 0]
        self.left = LEFTS[random.integers(1, 5) if wrong == "left" else 0]

    def law(self, p, q, drafts):
        """The law of the output given the drafts."""
        left, out, reach = normal(p**self.power, p), numpy.zeros(len(p)), 1.0
        for x in drafts[: self.most]:
            kept = self.keep(left[x], q[x])
            out[x] += reach * kept
            left, reach = normal(self.left(left, q, x), p), reach * (1 - kept)
        return out + reach * left

    def play(self, p, q, drafts, rng, style, inside):
        """The same with coins; `inside`: all that it is given is written to."""
        whole, left = p.copy(), p if inside else p.copy()
        left[:] = normal(left**self.power, whole)
        for slot, x in enumerate(drafts[: self.most]):
            kept = self.keep(left[x], q[x])
            if rng.branch(kept) if style == "choice" else rng.random() < kept:
                return int(x), slot
            left[:] = normal(self.left(left, q, x), whole)
        q[:], drafts[:] = (0, 0) if inside else (q, drafts)
        if style == "choice":
            return rng.choice(len(p), p=left), None
        u, ends, likely = rng.random(), left.cumsum(), numpy.flatnonzero(left)
        return int(next((y for y in likely[:-1] if u < ends[y]), likely[-1])), None


def row(random, size):
    return normal(random.integers(0, 10, size) * (random.random(size) < 0.8) + (numpy.arange(size) == random.integers(size)), None)


def own(random):
    size, n = int(random.integers(2, 6)), int(random.integers(1, 4))
    p, q, rule, other = row(random, size), row(random, size), Rule(random), Rule(random)
    kind, style = str(random.choice(list(KINDS), p=list(KINDS.values()))), str(random.choice(["choice", "compare", "law"]))
    orders, share, period = list(itertools.permutations(range(n))), random.random(), int(random.integers(2, 6))
    chances, bound = random.dirichlet(numpy.ones(len(orders))), p.max() * random.choice([1.0, 0.7])
    how, calls, numbers = "choice" if style == "law" else style, itertools.count(), numpy.random.default_rng(int(random.integers(1 << 60)))

    def law(drafts):
        weight = {"mixed": share, "state": 1 - 1 / period}.get(kind, 1)
        if kind == "permuted":
            return sum(chance * rule.law(p, q, drafts[list(order)]) for chance, order in zip(chances, orders))
        if kind == "loop":
            return normal(numpy.minimum(1, p / bound), p)
        return weight * rule.law(p, q, drafts) + (1 - weight) * other.law(p, q, drafts)

    def verifier(p, q, drafts, rng):
        while kind == "loop":
            y = rng.choice(size)
            if rng.branch(min(1.0, p[y] / bound)):
                return y
        now = other if (kind == "mixed" and not rng.branch(share)) or (kind == "state" and next(calls) % period == 0) else rule
        if kind == "permuted":
            return now.play(p, q, drafts[list(orders[rng.choice(len(orders), p=chances)])], rng, how, False)[0]
        if style == "law" and kind in ("plain", "inside", "state"):
            found = now.law(p, q, drafts)
            p[:], q[:], drafts[:] = (0, 0, 0) if kind == "inside" else (p, q, drafts)
            return found
        by = (numbers, "compare") if kind == "own-numbers" else (rng, how)
        return now.play(p, q, drafts, *by, kind == "inside")

    output, accepted = numpy.zeros(size), 0.0
    for drafts in map(numpy.array, itertools.product(numpy.flatnonzero(q), repeat=n)):
        chance, given = q[drafts].prod(), law(drafts)
        output, accepted = output + chance * given, accepted + chance * given[numpy.unique(drafts)].sum()
    moved, wrong, found = 0.5 * numpy.abs(output - p).sum(), None, sg.evaluate(verifier, p, q, n, samples=3000, progress=False)
    if found.lossless == ("refuted" if moved < 1e-9 else "exact"):
        wrong = f"{found.lossless} with TV {found.total_variation}, and TV is {moved}: {found.reason}"
    elif found.lossless == "not refuted" and moved > found.smallest_tv_excluded:
        wrong = f"TV {moved} is not found, and {found.smallest_tv_excluded} would be"
    elif found.exact and kind != "state" and numpy.hypot(found.total_variation - moved, found.acceptance[0] - accepted) > 1e-12:
        wrong = f"TV {found.total_variation} for {moved}, acceptance {found.acceptance[0]} for {accepted}"
    elif moved < 1e-9 and accepted > found.optimal_acceptance[2] + 1e-9:
        wrong = f"accepts {accepted}, above alpha* {found.optimal_acceptance}"
    return kind, ("" if found.exact else "simulated, ") + found.lossless, wrong

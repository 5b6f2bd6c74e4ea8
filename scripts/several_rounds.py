#!/usr/bin/env python3
"""The least target calls of any lossless rule of one drafted path, by linear programs in fractions.

    python3 scripts/several_rounds.py            # some minutes
    python3 scripts/several_rounds.py --quick    # fewer and smaller models

This script shares no code with the crate. It is written from the definition of a decoder, uses the
Python standard library only, and takes every number as a fraction.

The program
-----------
A text has N tokens. p(y|x) and q(y|x) are rows of target and draft behind each prefix x, made at
random. Let m(z, D, i, y) be the probability that a round starts behind the prefix z, that it drafts
the path D, accepts i tokens of D, and puts out y behind them. D has min(L, N - 1 - |z|) tokens: the
last token of a text is not drafted. A decoder of any memory and any coupling has such masses, and

    sum over i, y of m(z, D, i, y) = S(z) q(D|z),    S(z) = P(a round starts behind z),

since drafts are fresh: S(empty) = 1, and S(z) is the sum of all m whose text ends in z. It is
lossless if the masses that end in a whole text x add up to p(x). Its target calls are the sum of S.
Conversely masses that satisfy this are a decoder: behind z, with D, it takes (i, y) with
probability m(z, D, i, y) / (S(z) q(D|z)). So the least sum of S is the least number of calls of any
lossless decoder of L drafts a round. Nothing is taken from the theory of the closed form.

How it is solved, and what guards it
------------------------------------
Two-phase simplex with Bland's rule. The answer is believed for its certificate alone: x >= 0,
A x = b and multipliers u with A'u <= c and b.u = c.x, all checked against the program as written.

What it is compared with
------------------------
    closed     the mean over texts of the sum of s_t,
               s_t = (1 - sum over k = 1..min(L, t) of s_(t-k) r_(t-k+1) ... r_t)+
    unlimited  for L >= N - 1: the sum over x of N - 1 tokens of the largest of
               p(x_1..x_j) q(x_(j+1)..x_(N-1) | x_1..x_j) over j
    block      for L >= N - 1: calls of block verification, by its own masses
    token, carried, block   for every L: at least the least calls

Several drafts for one position
-------------------------------
Rounds that draft K tokens for one position, i.i.d. or one from each of K strata of q, have masses
m(z, A, x, y): the set A is drafted, x of A is kept or nothing, y is put out behind it. The same
program over these has the least calls of any lossless decoder of such rounds. It is compared with

    siblings   the rule for one draft a round that carries a number, on the law s of one draft that is
               selected from A as evenly against p as can be. s is found by its definition: the set
               H with the largest Q(H)/p(H) gets p in that proportion, and so on with what is left. It is
               at least the least calls; lossless; accepts at every token as much as any rule can
               that finds drafts there as often; and makes at most the calls that selecting evenly
               makes without carrying
Exit status: 0 if all agree, else 1.
"""

import random
import sys
from fractions import Fraction as F
from itertools import product


def rows(rng, vocab, tokens, zeros):
    """Behind every prefix: p and q."""
    def row():
        while True:
            weights = [rng.randint(0 if zeros else 1, 6) for _ in range(vocab)]
            if sum(weights):
                return [F(w, sum(weights)) for w in weights]
    return {x: (row(), row()) for n in range(tokens) for x in product(range(vocab), repeat=n)}


def along(models, which, start, path):
    """Probability of a path behind a prefix."""
    weight = F(1)
    for i, token in enumerate(path):
        weight *= models[start + path[:i]][which][token]
    return weight


def program(models, vocab, tokens, drawn, kept):
    """A, b, c of: least c.x with A x = b, x >= 0. Columns are sparse. A round from z draws D with
    drawn(z)[D], and keeps one of kept(D)."""
    equations, bounds = {}, []

    def equation(key, bound):
        equations[key] = len(bounds)
        bounds.append(bound)

    columns, cost = [], []
    starts = [z for n in range(tokens) for z in product(range(vocab), repeat=n)]
    laws = {z: drawn(z) for z in starts}
    for z in starts:
        for draft, chance in laws[z].items():
            equation(("drafted", z, draft), chance if not z else F(0))
    for x in product(range(vocab), repeat=tokens):
        equation(("text", x), along(models, 0, (), x))
    for z in starts:
        for draft in laws[z]:
            for some in kept(draft):
                for y in range(vocab):
                    end = z + some + (y,)
                    column = {equations["drafted", z, draft]: F(1)}
                    if len(end) == tokens:
                        column[equations["text", end]] = F(1)
                    else:
                        # S(end) q(D|end) on the other side.
                        for then, chance in laws[end].items():
                            row = equations["drafted", end, then]
                            column[row] = column.get(row, F(0)) - chance
                    columns.append(column)
                    cost.append(F(1))
    return columns, bounds, cost


def of_paths(models, vocab, tokens, length):
    """The program of rounds that draft one path, and keep the first tokens of it."""
    def drawn(z):
        paths = product(range(vocab), repeat=min(length, tokens - 1 - len(z)))
        chances = {path: along(models, 1, z, path) for path in paths}
        return {path: chance for path, chance in chances.items() if chance}
    kept = lambda path: [path[:i] for i in range(len(path) + 1)]
    return program(models, vocab, tokens, drawn, kept)


def of_siblings(models, laws, vocab, tokens):
    """The program of rounds that draft a set of tokens for one position, and keep one or none."""
    nothing = {frozenset(): F(1)}
    kept = lambda some: [()] + [(x,) for x in sorted(some)]
    return program(models, vocab, tokens, lambda z: laws.get(z, nothing), kept)


def simplex(columns, bounds, cost):
    """The least c.x, by a certificate. Bounds are not negative."""
    m, n = len(bounds), len(columns)
    # Row by row: columns, then artificials, then the bound.
    table = [{} for _ in range(m)]
    for j, column in enumerate(columns):
        for i, value in column.items():
            table[i][j] = value
    right = list(bounds)
    for i in range(m):
        table[i][n + i] = F(1)
    basis = [n + i for i in range(m)]

    def reduced(costs):
        line = dict(costs)
        value = F(0)
        for i, j in enumerate(basis):
            factor = costs.get(j, F(0))
            if factor:
                value += factor * right[i]
                for k, entry in table[i].items():
                    line[k] = line.get(k, F(0)) - factor * entry
        return line, value

    def pivot(line, value, row, column):
        scale = table[row][column]
        table[row] = {k: v / scale for k, v in table[row].items()}
        right[row] /= scale
        own = table[row]

        def clear(other, factor):
            for k, v in own.items():
                left = other.get(k, F(0)) - factor * v
                if left:
                    other[k] = left
                else:
                    other.pop(k, None)
        for i in range(m):
            factor = table[i].get(column)
            if i != row and factor:
                clear(table[i], factor)
                right[i] -= factor * right[row]
        factor = line.get(column)
        if factor:
            clear(line, factor)
            value += factor * right[row]
        basis[row] = column
        return value

    def descend(line, value, allowed):
        steps = 0
        while True:
            entering = [j for j, v in line.items() if v < 0 and j < allowed]
            if not entering:
                return line, value
            # Steepest at first, Bland's rule if that goes on for long.
            steps += 1
            j = min(entering, key=lambda j: (line[j], j)) if steps < 500 else min(entering)
            ratios = [(right[i] / table[i][j], basis[i], i) for i in range(m)
                      if table[i].get(j, 0) > 0]
            if not ratios:
                raise AssertionError("unbounded")
            value = pivot(line, value, min(ratios)[2], j)

    line, value = reduced({n + i: F(1) for i in range(m)})
    line, value = descend(line, value, n)
    assert value == 0, "no lossless decoder"
    for i in range(m):
        if basis[i] >= n:
            for j in list(table[i]):
                if j < n:
                    pivot({}, F(0), i, j)
                    break
    line, value = reduced(dict(enumerate(cost)))
    line, value = descend(line, value, n)
    # The certificate: multipliers are minus the reduced costs of the artificials.
    x = [F(0)] * n
    for i, j in enumerate(basis):
        if j < n:
            x[j] = right[i]
        else:
            assert right[i] == 0
    u = [-line.get(n + i, F(0)) for i in range(m)]
    sums = [F(0)] * m
    for j, column in enumerate(columns):
        assert x[j] >= 0
        assert sum(u[i] * v for i, v in column.items()) <= cost[j], "dual"
        for i, v in column.items():
            sums[i] += v * x[j]
    assert sums == list(bounds), "primal"
    total = sum(c * v for c, v in zip(cost, x))
    assert total == sum(a * b for a, b in zip(u, bounds)) == value, "duality"
    return total


def texts(models, vocab, tokens):
    """Texts with their probability and q/p of every token."""
    for x in product(range(vocab), repeat=tokens):
        weight = along(models, 0, (), x)
        if weight:
            yield weight, [models[x[:i]][1][x[i]] / models[x[:i]][0][x[i]] for i in range(tokens)]


def closed(ratios, length):
    s = [F(1)]
    for t in range(1, len(ratios)):
        supply, share = F(0), F(1)
        for k in range(1, min(length, t) + 1):
            share *= ratios[t - k]
            supply += s[t - k] * share
        s.append(max(F(0), 1 - supply))
    return sum(s)


def hybrids(models, vocab, tokens):
    n = tokens - 1
    return sum(max(along(models, 0, (), x[:j]) * along(models, 1, x[:j], x[j:]) for j in range(n + 1))
               for x in product(range(vocab), repeat=n))


def renewal(ratios, length, survive):
    """Calls of a rule whose rounds accept i drafts with probability m_i, given the text."""
    n = len(ratios)
    starts = [F(1)] + [F(0)] * n
    for s in range(n):
        m = survive(ratios[s:s + min(length, n - 1 - s)])
        for i in range(1, len(m)):
            starts[s + i] += starts[s] * (m[i - 1] - m[i])
        if s + len(m) <= n:
            starts[s + len(m)] += starts[s] * m[-1]
    return sum(starts[:n])


def token(ratios):
    m = [F(1)]
    for r in ratios:
        m.append(m[-1] * min(F(1), r))
    return m


def block(ratios):
    m, big = [F(1)], F(1)
    for r in ratios:
        big *= r
        m.append(min(m[-1], big))
    return m


def carried(models, vocab, tokens, length):
    """Every draft and coin of the carried rule; its calls and whether its text is the target's."""
    calls, layer = F(0), {(): [F(1)] + [F(0)] * length}
    for n in range(tokens):
        following = {}
        for x, w in layer.items():
            p, q = models[x]
            calls += w[0]
            here = sum(w)
            d = sum(w[:length]) / here if n < tokens - 1 else F(0)
            left = [max(F(0), a - d * b) for a, b in zip(p, q)]
            for age, weight in enumerate(w):
                free = weight
                if age < length and n < tokens - 1:
                    for y in range(vocab):
                        if q[y] and weight:
                            keep = weight * q[y] * min(F(1), p[y] / (d * q[y]))
                            free -= keep
                            following.setdefault(x + (y,), [F(0)] * (length + 1))[age + 1] += keep
                if free:
                    for y in range(vocab):
                        if left[y]:
                            at = following.setdefault(x + (y,), [F(0)] * (length + 1))
                            at[0] += free * left[y] / sum(left)
        layer = {x: w for x, w in following.items() if any(w)}
    lossless = all(sum(layer.get(x, [F(0)])) == along(models, 0, (), x)
                   for x in product(range(vocab), repeat=tokens))
    return calls, lossless


def sets_of(q, drafts, strata):
    """The law of the set of drafts: i.i.d., or one from each of as many strata of q."""
    if strata:
        order = sorted(range(len(q)), key=lambda x: (-q[x], x))
        laws = []
        for k in range(drafts):
            law, at = [F(0)] * len(q), F(0)
            for x in order:
                low, high = max(at, F(k, drafts)), min(at + q[x], F(k + 1, drafts))
                law[x] = max(F(0), high - low) * drafts
                at += q[x]
            laws.append(law)
    else:
        laws = [q] * drafts
    found = {}
    for drawn in product(range(len(q)), repeat=drafts):
        chance = F(1)
        for law, x in zip(laws, drawn):
            chance *= law[x]
        if chance:
            key = frozenset(drawn)
            found[key] = found.get(key, F(0)) + chance
    return found


def subsets(tokens):
    for mask in product((False, True), repeat=len(tokens)):
        yield frozenset(x for x, inside in zip(tokens, mask) if inside)


def inside(law, held):
    """Q(H): the probability that all drafts are in H."""
    return sum((chance for drawn, chance in law.items() if drawn <= held), F(0))


def evenly(p, law):
    """The law of the draft that is selected as evenly against p as can be."""
    tokens = range(len(p))
    selected, done = [F(0)] * len(p), frozenset(x for x in tokens if not p[x])
    spent = inside(law, done)
    # What is only drafted where p is 0 is all alike: any of it.
    left = spent
    for x in sorted(done):
        selected[x], left = left, F(0)
    while len(done) < len(p):
        others = [x for x in tokens if x not in done]
        best = None
        for more in subsets(others):
            mass = sum((p[x] for x in more), F(0))
            if mass:
                ratio = (inside(law, done | more) - spent) / mass
                if best is None or (ratio, len(more)) > best[:2]:
                    best = (ratio, len(more), more)
        ratio, _, more = best
        for x in more:
            selected[x] = ratio * p[x]
        done |= more
        spent = inside(law, done)
    return selected


def siblings(models, laws, vocab, tokens):
    """Calls of the rule that carries on the selected law, and without carrying; and whether the law
    can be selected, and whether the rule accepts as much as any at each token."""
    chosen = {x: (p, evenly(p, laws[x]) if x in laws else q) for x, (p, q) in models.items()}
    fine = True
    for x, law in laws.items():
        p, s = chosen[x]
        fine &= sum(s) == 1 and all(sum((s[y] for y in held), F(0)) >= inside(law, held)
                                    for held in subsets(range(vocab)))
    known = list(texts(chosen, vocab, tokens))
    mean = lambda of: sum(weight * of(ratios) for weight, ratios in known)
    calls, lossless = carried(chosen, vocab, tokens, 1)
    fine &= lossless and calls == mean(lambda r: closed(r, 1))
    # d along each text, and the most that any rule accepts there.
    layer = {(): F(1)}
    for n in range(tokens - 1):
        following = {}
        for x, d in layer.items():
            p, s = chosen[x]
            most = min(d + sum((p[y] for y in held), F(0)) - d * inside(laws[x], held)
                       for held in subsets(range(vocab)))
            fine &= most == sum(min(a, d * b) for a, b in zip(p, s))
            for y in range(vocab):
                if p[y]:
                    following[x + (y,)] = 1 - min(F(1), d * s[y] / p[y])
        layer = following
    return calls, mean(lambda r: renewal(r, 1, token)), fine


SIBLINGS = [(2, 3, 2, False, 20), (2, 4, 2, False, 10), (3, 3, 2, False, 20), (2, 3, 3, False, 10),
            (3, 3, 2, True, 20), (2, 4, 2, True, 10), (3, 3, 3, True, 10)]


def compare_siblings(rng, quick, wrong):
    counts = {"models of siblings": 0, "siblings": 0, "siblings attain": 0, "below selecting": 0}
    above = F(0)
    for vocab, tokens, drafts, strata, many in SIBLINGS:
        for index in range(min(many, 3) if quick else many):
            models = rows(rng, vocab, tokens, zeros=index % 3 == 2)
            laws = {x: sets_of(q, drafts, strata)
                    for x, (_, q) in models.items() if len(x) < tokens - 1}
            least = simplex(*of_siblings(models, laws, vocab, tokens))
            calls, selecting, fine = siblings(models, laws, vocab, tokens)
            counts["models of siblings"] += 1
            if fine and least <= calls <= selecting:
                counts["siblings"] += 1
            else:
                wrong.append(f"V = {vocab}, N = {tokens}, K = {drafts}, number {index}: siblings")
            counts["siblings attain"] += calls == least
            counts["below selecting"] += calls < selecting
            above = max(above, calls / least - 1)
    print(", ".join(f"{name} {count}" for name, count in counts.items())
          + f", at most {float(above):.4f} above the least")


SHAPES = [(2, 3, 1, 30), (2, 3, 2, 24), (2, 4, 1, 24), (2, 4, 2, 30), (2, 4, 3, 18), (3, 3, 1, 24),
          (3, 3, 2, 24), (2, 5, 2, 4), (2, 5, 3, 4)]


def main(arguments):
    quick = "--quick" in arguments
    rng = random.Random(21)
    counts = {"models": 0, "closed form": 0, "hybrids": 0, "long block": 0, "carried": 0,
              "below token": 0, "below block": 0, "carried attains": 0}
    wrong = []
    for vocab, tokens, length, many in SHAPES:
        if quick and vocab ** tokens > 16:
            continue
        for index in range(min(many, 3) if quick else many):
            models = rows(rng, vocab, tokens, zeros=index % 3 == 2)
            least = simplex(*of_paths(models, vocab, tokens, length))
            counts["models"] += 1

            def holds(what, condition):
                if condition:
                    counts[what] += 1
                else:
                    wrong.append(f"V = {vocab}, N = {tokens}, L = {length}, number {index}: {what}")
            known = list(texts(models, vocab, tokens))
            mean = lambda of: sum(weight * of(ratios) for weight, ratios in known)
            holds("closed form", mean(lambda r: closed(r, length)) == least)
            by_token = mean(lambda r: renewal(r, length, token))
            by_block = mean(lambda r: renewal(r, length, block))
            if length >= tokens - 1:
                holds("hybrids", hybrids(models, vocab, tokens) == least)
                holds("long block", by_block == least)
            calls, lossless = carried(models, vocab, tokens, length)
            holds("carried", lossless and calls >= least and by_token >= by_block >= least)
            counts["below token"] += least < by_token
            counts["below block"] += least < by_block
            counts["carried attains"] += calls == least
    compare_siblings(random.Random(22), quick, wrong)
    for line in wrong:
        print(line)
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Recompute the expected values of single-step problem files in exact rationals.

    python3 scripts/oracle.py problems/              # files or directories
    python3 scripts/oracle.py problems/hand --quiet  # only what is not `ok`

This script shares no code with the crate. It is written from the definitions,
it uses the Python standard library only (3.11 or newer), and it is slow on
purpose: everything is enumerated.

Definitions
-----------
    p       target distribution over the tokens 0..V
    X       the tuple of draft tokens; A(X) is the set of its distinct tokens
    D       law of X under the problem's draft scheme
    P(H)    sum of p over a set H of tokens
    Q(H)    probability that every draft token lies in H: sum of D(X), A(X) in H
    alpha*  = 1 + min over ALL 2^V subsets H of P(H) - Q(H)

The empty set gives P - Q = 0, so alpha* <= 1. A set H is a certificate: it
proves alpha* <= 1 + P(H) - Q(H).

How alpha* is found, and what guards it
---------------------------------------
1. `tuples`: every X with D(X) > 0 is listed with its exact probability, written
   straight from the scheme's definition, while there are at most MAX_TUPLES.
2. `steps`: the law of A(X) by following the draft one token at a time and
   merging equal sets. It reaches large n (V = 2, n = 64). Where both 1 and 2
   apply, the two laws of A(X) must be equal.
3. `subsets`: Q(H) for all H by summing D over subsets, then the minimum
   (V <= MAX_SUBSET_VOCAB).
4. `flow`: an Edmonds-Karp maximum flow, source -> set (capacity D) -> its tokens
   (unbounded) -> sink (capacity p), in integers over one common denominator.
   Its value is a lower bound on alpha* and its cut is an upper bound; the
   script recomputes P(H) - Q(H) for the cut from the data, and both must be
   equal. Where 3 and 4 both apply they must be equal too.
A failed guard is an error of this script and ends it with exit status 3.

Conventions
-----------
* TOML numbers are taken as the dyadic rationals they are, strings such as "3/10"
  as fractions. Each distribution (the target, q, every row of qs, the
  probabilities of explicit tuples) is then divided by its exact sum, which must
  be within 1e-6 of 1.
* Schemes that draw distinct tokens (without-replacement, distinct-conditioned,
  greedy, hub, top, stratified): where fewer than n tokens have q > 0, the draw is the whole
  support.
* greedy takes the n-1 most probable tokens, equal probabilities in order of token
  id, lowest first; the last token follows q renormalised over the rest.
* hub (n = 2): a is the most probable token, the lowest id among equals. For
  every other x the pair (x, a) has probability q(x), the pair (a, x) has
  probability q(a) q(x) / (1 - q(a)). With q(a) = 1 the draft is {a}.
* top takes the n most probable tokens, with the ties of greedy; nothing is random.
* stratified: the most probable token is certain while n - 1 are not, and while it has at
  least 1/(drafts left) of what is left of q, but for one part in 2^40. The rest of q is laid on [0, 1), most probable
  first, and cut into as many equal strata as drafts are left; one token comes from each. A
  token that straddles a cut is in two strata. `straddle = "independent"`: it may be drafted
  in both. `"once"`, the default: behind it the next stratum is drawn without it, else it comes
  with the chance that keeps its share. Certain tokens come first in the tuple.
* composed: parts within parts, see Part. A row is cut to its top_k, then to its top_p, then
  tokens to avoid are taken out, and it is renormalised. `stop` ends sequential draws before
  each draw with probability stop / (stop + q of what is left).
* explicit: tuples that occur more than once, or in another order, or with
  repeated tokens, simply add up on their set of tokens.

Verifiers in [expected.acceptance_rate]
---------------------------------------
The number is P(output in A(X)). All but k-seq are exact:
    token    sum of min(p, law of the one draft)                        (n = 1)
    exact-match  sum over sets A of D(A) P(A)
    rrs      recursive rejection, i.i.d. drafts: one minus the product of the
             rejection probabilities of the rounds
    rrs-wo   recursive rejection without replacement: all paths of rejections
    shared-gumbel  drafts are the n tokens of least E/q, the output that of least E/p, of one noise
             E ~ Exp(1): each set of tokens that may come before the output, in fractions
    gls      draft k is the token of least E^k/q, the output that of least E^k/p of all k: sums of
             exponentials in the time of the output, in fractions
    naive-tree  the first draft by rejection, else a draw from the residual that may
             be another draft: all tuples
    spechub  the pair-by-pair rule: (x, a), then (a, x), then what is left goes to a
    greedy   P(top n-1) + sum of min(p, law of the last token)
    importance  sum of min(p, s), s the law of the draft that is selected, by all sets of tokens
    optimal  alpha*
    k-seq    rho by bisection in floating point, hence compared to 1e-12 at best
    level-4  stratified: passes at levels 4/5, 1/2, 1/5 and 0, in each the strata from the last
             to the first; a draft is accepted with what brings the ratio of what is left of
             the target to the law of the draft, both given that nothing is accepted yet, down
             to the level. with-replacement: eight passes over all drafts at once; how much of
             each token a pass takes is rounded to a float, hence compared to 1e-9 at best
    level    alpha*: proved for i.i.d. drafts, and for strata where no token is in two of them
             (docs/theory/level-rule.md); other strata are skipped
    rrs      of stratified drafts: independent ones from the last stratum to the first; drafts
             that straddle once in order, each with its law given the one before

Exit status: 0 all compared values agree, 1 some disagree, 2 a file could not be
read as a problem, 3 two derivations inside this script disagree.
"""

import itertools
import math
import sys
import tomllib
from collections import deque
from fractions import Fraction
from pathlib import Path

MAX_TUPLES = 20_000  # route `tuples` is used up to this many draft tuples
MAX_STEP_SETS = 5_000  # route `steps` is used up to this many sets at a time
MAX_SUBSET_VOCAB = 12  # route `subsets` is used up to this vocabulary
MAX_FLOW_ARCS = 8_000  # route `flow` is used up to this many set -> token arcs
NORMALISATION = Fraction(1, 10**6)
KSEQ_TOLERANCE = Fraction(1, 10**12)
PASS_TOLERANCE = Fraction(1, 10**9)  # of level-4 on i.i.d. drafts
STRATA_LEVELS = (Fraction(4, 5), Fraction(1, 2), Fraction(1, 5), Fraction(0))
IID_LEVELS = (0.8, 0.6, 0.45, 0.3, 0.15, 0.0, 0.0, 0.0)

SCHEMES = {
    "with-replacement": {"q"},
    "without-replacement": {"q"},
    "distinct-conditioned": {"q"},
    "greedy": {"q"},
    "hub": {"q"},
    "product": {"qs"},
    "explicit": {"tuples", "probabilities"},
    "top": {"q"},
    "stratified": {"q", "straddle"},
    "composed": {"law", "q"},
}
PARTS = {
    "fixed": {"tokens"},
    "top": {"drafts", "q", "top_k", "top_p", "avoid", "avoid_top"},
    "with-replacement": {"drafts", "q", "top_k", "top_p", "avoid", "avoid_top"},
    "without-replacement": {"drafts", "q", "top_k", "top_p", "avoid", "avoid_top", "stop"},
    "distinct-conditioned": {"drafts", "q", "top_k", "top_p", "avoid", "avoid_top"},
    "poisson": {"chances"},
    "union": {"of"},
    "mixture": {"of", "weights"},
    "avoiding": {"tokens", "of"},
    "merged": {"into", "of"},
}
DISTINCT = {"without-replacement", "distinct-conditioned", "greedy", "hub", "top", "stratified"}


class BadProblem(Exception):
    """The file is not a problem of schema 1."""


class TooLarge(Exception):
    """No route of this script fits the problem's size."""


class Inconsistent(Exception):
    """Two derivations of the same number differ: a bug in this script."""


# --------------------------------------------------------------------- reading


def exact(value, where):
    """A TOML number or a fraction string as a Fraction."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise BadProblem(f"{where}: {value!r} is neither a number nor a fraction")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadProblem(f"{where}: {value!r} is not finite")
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError) as error:
        raise BadProblem(f"{where}: {value!r}: {error}") from error


def distribution(values, length, where):
    """A list of probabilities, divided by its exact sum."""
    if not isinstance(values, list) or len(values) != length:
        raise BadProblem(f"{where}: expected {length} entries")
    numbers = [exact(v, f"{where}[{i}]") for i, v in enumerate(values)]
    if any(x < 0 for x in numbers):
        raise BadProblem(f"{where}: negative entry")
    total = sum(numbers)
    if abs(total - 1) > NORMALISATION:
        raise BadProblem(f"{where}: sums to {float(total)}")
    return [x / total for x in numbers]


def only(table, allowed, where):
    unknown = sorted(set(table) - set(allowed))
    if unknown:
        raise BadProblem(f"{where}: unknown fields {unknown}")


class Problem:
    """One single-step problem, every number exact."""

    def __init__(self, data):
        only(data, {"schema", "name", "target", "drafts", "draft", "expected"}, "problem")
        if data.get("schema") != 1:
            raise BadProblem(f"schema: {data.get('schema')!r}, only 1 is known")
        self.name = data.get("name")
        self.vocab = len(data.get("target", []))
        if self.vocab == 0:
            raise BadProblem("target: the vocabulary is empty")
        self.target = distribution(data["target"], self.vocab, "target")
        self.drafts = data.get("drafts")
        if type(self.drafts) is not int or not 1 <= self.drafts <= 64:
            raise BadProblem(f"drafts: {self.drafts!r} is not in 1..=64")
        draft = data.get("draft", {})
        self.scheme = draft.get("scheme")
        if self.scheme not in SCHEMES:
            raise BadProblem(f"draft.scheme: {self.scheme!r}")
        only(draft, SCHEMES[self.scheme] | {"scheme"}, "draft")
        if self.scheme in DISTINCT and self.drafts > self.vocab:
            raise BadProblem(f"drafts: {self.drafts} distinct tokens of {self.vocab}")
        if self.scheme == "hub" and self.drafts != 2:
            raise BadProblem("drafts: hub needs 2")
        if self.scheme == "product":
            rows = draft.get("qs", [])
            if len(rows) != self.drafts:
                raise BadProblem(f"draft.qs: {len(rows)} rows for {self.drafts} drafts")
            self.qs = [distribution(r, self.vocab, f"draft.qs[{k}]") for k, r in enumerate(rows)]
        elif self.scheme == "composed":
            self.q = draft.get("q")
            self.law = Part(draft.get("law"), self.vocab, self.q, "draft.law")
        elif self.scheme == "explicit":
            self.listed = draft.get("tuples", [])
            for k, tokens in enumerate(self.listed):
                if len(tokens) != self.drafts:
                    raise BadProblem(f"draft.tuples[{k}]: expected {self.drafts} tokens")
                if any(type(x) is not int or not 0 <= x < self.vocab for x in tokens):
                    raise BadProblem(f"draft.tuples[{k}]: token out of range")
            self.listed_probability = distribution(
                draft.get("probabilities"), len(self.listed), "draft.probabilities"
            )
        else:
            self.q = distribution(draft.get("q"), self.vocab, "draft.q")
        self.once = draft.get("straddle", "once") == "once"
        if draft.get("straddle", "once") not in ("once", "independent"):
            raise BadProblem(f"draft.straddle: {draft['straddle']!r}")
        self.expected = data.get("expected", {})
        only(
            self.expected,
            {"optimal_acceptance_rate", "tolerance", "source", "acceptance_rate"},
            "expected",
        )


# ------------------------------------------------------- the parts of composed laws


class Part:
    """A part of a composed law, its rows cut and every number exact."""

    def __init__(self, data, vocab, default, where):
        if not isinstance(data, dict) or data.get("law") not in PARTS:
            raise BadProblem(f"{where}.law: unknown")
        self.kind, self.vocab = data["law"], vocab
        only(data, PARTS[self.kind] | {"law"}, where)
        inner = len(data["into"]) if self.kind == "merged" else vocab
        inherited = None if self.kind == "merged" else default
        self.of = [
            Part(part, inner, inherited, f"{where}.of[{k}]") for k, part in enumerate(data.get("of", []))
        ]
        self.tokens = data.get("tokens", [])
        self.into = data.get("into")
        self.stop = exact(data["stop"], f"{where}.stop") if "stop" in data else None
        if self.kind == "poisson":
            self.chances = [exact(c, f"{where}.chances") for c in data["chances"]]
        if self.kind == "mixture":
            weights = [exact(w, f"{where}.weights") for w in data["weights"]]
            self.weights = [w / sum(weights) for w in weights]
        if "drafts" in data:
            self.n = data["drafts"]
            q = distribution(data.get("q", default), vocab, f"{where}.q")
            if "top_k" in data:
                q = kept(q, by_rank(q)[: data["top_k"]])
            if "top_p" in data:
                wanted, held, nucleus = exact(data["top_p"], f"{where}.top_p"), Fraction(0), []
                for x in by_rank(q):
                    if held < wanted:
                        nucleus.append(x)
                        held += q[x]
                q = kept(q, nucleus)
            q = kept(q, set(range(vocab)) - set(data.get("avoid", [])))
            self.q = kept(q, set(range(vocab)) - set(by_rank(q)[: data.get("avoid_top", 0)]))


def kept(q, tokens):
    """q given that one of the tokens is drawn."""
    mass = sum(q[x] for x in tokens)
    return [q[x] / mass if x in tokens else Fraction(0) for x in range(len(q))]


def part_tuples(part):
    """Every tuple of a part with its probability; tuples may be listed more than once."""
    if part.kind == "fixed":
        yield tuple(part.tokens), Fraction(1)
    elif part.kind == "top":
        yield tuple(by_rank(part.q)[: part.n]), Fraction(1)
    elif part.kind == "poisson":
        for drawn in itertools.product((False, True), repeat=part.vocab):
            mass = math.prod(c if d else 1 - c for c, d in zip(part.chances, drawn))
            if mass:
                yield tuple(x for x in range(part.vocab) if drawn[x]), mass
    elif part.kind == "with-replacement":
        for tokens in itertools.product(support(part.q), repeat=part.n):
            yield tokens, math.prod(part.q[x] for x in tokens)
    elif part.kind == "without-replacement":
        stop, n = part.stop or Fraction(0), min(part.n, len(support(part.q)))
        for size in range(0 if stop else n, n + 1):
            for tokens in itertools.permutations(support(part.q), size):
                mass, left = Fraction(1), Fraction(1)
                for x in tokens:
                    mass *= part.q[x] / (stop + left)
                    left -= part.q[x]
                if size < n:
                    mass *= stop / (stop + left)
                yield tokens, mass
    elif part.kind == "distinct-conditioned":
        n = min(part.n, len(support(part.q)))
        weight = {
            tokens: math.prod(part.q[x] for x in tokens)
            for tokens in itertools.permutations(support(part.q), n)
        }
        for tokens, w in weight.items():
            yield tokens, w / sum(weight.values())
    elif part.kind == "union":
        for choice in itertools.product(*(list(part_tuples(p)) for p in part.of)):
            yield sum((tokens for tokens, _ in choice), ()), math.prod(m for _, m in choice)
    elif part.kind == "mixture":
        for weight, one in zip(part.weights, part.of):
            for tokens, mass in part_tuples(one):
                yield tokens, weight * mass
    elif part.kind == "avoiding":
        left = [(t, m) for t, m in part_tuples(part.of[0]) if not set(t) & set(part.tokens)]
        total = sum(mass for _, mass in left)
        for tokens, mass in left:
            yield tokens, mass / total
    elif part.kind == "merged":
        for tokens, mass in part_tuples(part.of[0]):
            yield tuple(part.into[x] for x in tokens), mass


def part_inside(part, inside):
    """P(every draft of a part lies in a set), without its tuples where there is another way."""
    if part.kind == "fixed":
        return Fraction(set(part.tokens) <= inside)
    if part.kind == "top":
        return Fraction(set(by_rank(part.q)[: part.n]) <= inside)
    if part.kind == "poisson":
        return math.prod(
            (1 - part.chances[x] for x in range(part.vocab) if x not in inside), start=Fraction(1)
        )
    if part.kind == "with-replacement":
        return sum(part.q[x] for x in support(part.q) if x in inside) ** part.n
    if part.kind == "distinct-conditioned":
        # Elementary symmetric polynomials.
        n = min(part.n, len(support(part.q)))
        both = []
        for tokens in (support(part.q), [x for x in support(part.q) if x in inside]):
            e = [Fraction(1)] + [Fraction(0)] * n
            for x in tokens:
                for k in range(n, 0, -1):
                    e[k] += part.q[x] * e[k - 1]
            both.append(e[n])
        return both[1] / both[0]
    if part.kind == "without-replacement":
        # One draw at a time, by the set that was drawn; a draw outside ends it.
        stop, ended = part.stop or Fraction(0), Fraction(0)
        now = {0: Fraction(1)}
        for _ in range(min(part.n, len(support(part.q)))):
            after = {}
            for mask, mass in now.items():
                rest = [x for x in support(part.q) if not mask >> x & 1]
                whole = stop + sum(part.q[x] for x in rest)
                ended += mass * stop / whole
                for x in rest:
                    if x in inside:
                        reached = mask | 1 << x
                        after[reached] = after.get(reached, 0) + mass * part.q[x] / whole
            now = after
        return ended + sum(now.values())
    if part.kind == "union":
        return math.prod((part_inside(p, inside) for p in part.of), start=Fraction(1))
    if part.kind == "mixture":
        return sum(w * part_inside(p, inside) for w, p in zip(part.weights, part.of))
    if part.kind == "avoiding":
        rest = set(range(part.vocab)) - set(part.tokens)
        return part_inside(part.of[0], inside & rest) / part_inside(part.of[0], rest)
    fine = {x for x in range(len(part.into)) if part.into[x] in inside}
    return part_inside(part.of[0], fine)


# ------------------------------------------------------------ the law of the draft


def support(q):
    return [x for x, weight in enumerate(q) if weight > 0]


def by_rank(q):
    """The support of q, most probable first, lowest token id first among equals."""
    return sorted(support(q), key=lambda x: (-q[x], x))


# Rounding of q does not decide which tokens are certain.
SURE = 1 - Fraction(1, 2**40)


def strata(q, n):
    """(certain tokens, the law of the draft of each stratum as {token: probability})."""
    order, left, certain = by_rank(q), Fraction(1), []
    while order and len(certain) < n - 1 and (n - len(certain)) * q[order[0]] >= SURE * left:
        left -= q[order[0]]
        certain.append(order.pop(0))
    count = n - len(certain) if order else 0
    laws = [{} for _ in range(count)]
    start = Fraction(0)
    for x in order:
        end = start + q[x] / left
        for j, law in enumerate(laws):
            share = min(end, Fraction(j + 1, count)) - max(start, Fraction(j, count))
            if share > 0:
                law[x] = count * share
        start = end
    return certain, laws


def next_stratum(laws, j, before, once):
    """The law of the draft of stratum j where the one before it is known."""
    law = laws[j]
    both = [x for x in law if once and j > 0 and x in laws[j - 1]]
    if not both:
        return law
    (straddler,) = both
    if before == straddler:
        chance = Fraction(0)
    else:  # so that it is drafted here with its share: (1 - a) chance = b
        chance = law[straddler] / (1 - laws[j - 1][straddler])
    rest = (1 - chance) / (1 - law[straddler])
    return {x: chance if x == straddler else w * rest for x, w in law.items()}


def strata_tuples(q, n, once):
    certain, laws = strata(q, n)
    drawn = [(tuple(certain), Fraction(1))]
    for j in range(len(laws)):
        drawn = [
            ((*tokens, x), probability * weight)
            for tokens, probability in drawn
            for x, weight in next_stratum(laws, j, tokens[-1] if tokens else None, once).items()
            if weight > 0
        ]
    return drawn


def strata_sets_by_duels(q, n):
    """The law of the set that `once` drafts, as ordered pivotal sampling (Deville and Tille 1998;
    the same design as Deville's systematic one, Chauvet 2012): each token fights the survivor of
    those before it, until one of the two is drafted or out."""
    certain, laws = strata(q, n)
    inclusion = {}
    for law in laws:
        for x, share in law.items():
            inclusion[x] = inclusion.get(x, 0) + share
    states = {(bits(certain), None, Fraction(0)): Fraction(1)}
    for x in by_rank(q):
        if x not in inclusion:
            continue
        after = {}

        def reach(mask, survivor, chance, probability):
            if chance == 1:
                mask, survivor, chance = mask | 1 << survivor, None, Fraction(0)
            key = (mask, survivor, chance)
            after[key] = after.get(key, 0) + probability

        for (mask, y, a), probability in states.items():
            b = inclusion[x]
            if y is None or a == 0:
                reach(mask, x, b, probability)
            elif a + b <= 1:
                reach(mask, y, a + b, probability * a / (a + b))
                reach(mask, x, a + b, probability * b / (a + b))
            else:  # one is drafted, the other goes on
                reach(mask | 1 << y, x, a + b - 1, probability * (1 - b) / (2 - a - b))
                reach(mask | 1 << x, y, a + b - 1, probability * (1 - a) / (2 - a - b))
        states = after
    law = {}
    for (mask, _, _), probability in states.items():
        law[mask] = law.get(mask, 0) + probability
    return {mask: probability for mask, probability in law.items() if probability}


def tuple_count(problem):
    """How many tuples `draft_tuples` would list."""
    n = problem.drafts
    if problem.scheme == "stratified":
        return math.prod(len(law) for law in strata(problem.q, n)[1])
    if problem.scheme == "with-replacement":
        return len(support(problem.q)) ** n
    if problem.scheme == "product":
        return math.prod(len(support(q)) for q in problem.qs)
    if problem.scheme in ("without-replacement", "distinct-conditioned"):
        size = len(support(problem.q))
        return math.perm(size, min(n, size))
    if problem.scheme == "explicit":
        return len(problem.listed)
    if problem.scheme == "composed":
        return 0  # small by intent: there is no other way to its law here
    return 2 * problem.vocab


def draft_tuples(problem):
    """Every draft tuple X with its probability D(X), as (tuple, Fraction)."""
    n, scheme = problem.drafts, problem.scheme

    if scheme == "explicit":
        yield from zip(map(tuple, problem.listed), problem.listed_probability)
        return

    if scheme == "composed":
        yield from part_tuples(problem.law)
        return

    if scheme in ("with-replacement", "product"):
        qs = problem.qs if scheme == "product" else [problem.q] * n
        for tokens in itertools.product(*map(support, qs)):
            yield tokens, math.prod(q[x] for q, x in zip(qs, tokens))
        return

    if scheme == "stratified":
        yield from strata_tuples(problem.q, n, problem.once)
        return

    q = problem.q
    tokens_with_mass = support(q)
    n = min(n, len(tokens_with_mass))  # a small support is drawn as a whole

    if scheme == "without-replacement":
        for tokens in itertools.permutations(tokens_with_mass, n):
            probability, left = Fraction(1), Fraction(1)
            for x in tokens:
                probability *= q[x] / left
                left -= q[x]
            yield tokens, probability
    elif scheme == "distinct-conditioned":
        weight = {
            tokens: math.prod(q[x] for x in tokens)
            for tokens in itertools.permutations(tokens_with_mass, n)
        }
        total = sum(weight.values())
        for tokens, w in weight.items():
            yield tokens, w / total
    elif scheme == "greedy":
        order = by_rank(q)
        top, rest = order[: n - 1], order[n - 1 :]
        mass = sum(q[x] for x in rest)
        for x in rest:
            yield (*top, x), q[x] / mass
    elif scheme == "top":
        yield tuple(by_rank(q)[:n]), Fraction(1)
    elif scheme == "hub":
        a = by_rank(q)[0]
        if q[a] == 1:
            yield (a,), Fraction(1)
            return
        for x in tokens_with_mass:
            if x != a:
                yield (x, a), q[x]
                yield (a, x), q[a] * q[x] / (1 - q[a])


def bits(tokens):
    """A set of tokens as a bit mask."""
    mask = 0
    for x in tokens:
        mask |= 1 << x
    return mask


def tokens_of(mask):
    return [x for x in range(mask.bit_length()) if mask >> x & 1]


def set_law_by_tuples(problem):
    """The law of A(X), from the list of all tuples."""
    law = {}
    for tokens, probability in draft_tuples(problem):
        mask = bits(tokens)
        law[mask] = law.get(mask, 0) + probability
    return law


def set_law_by_steps(problem):
    """The law of A(X), one draft at a time with equal sets merged; None where the
    scheme is not of that kind."""
    n, scheme = problem.drafts, problem.scheme
    if scheme == "composed":
        # Q of every set by another way, and back by inclusion and exclusion.
        law = [
            Fraction(part_inside(problem.law, set(tokens_of(mask))))
            for mask in range(1 << problem.vocab)
        ]
        for x in range(problem.vocab):
            for mask in range(1 << problem.vocab):
                if mask >> x & 1:
                    law[mask] -= law[mask ^ 1 << x]
        return {mask: mass for mask, mass in enumerate(law) if mass}
    if scheme == "stratified" and problem.once:
        return strata_sets_by_duels(problem.q, n)
    law = {0: Fraction(1)}
    if scheme == "stratified":
        certain, laws = strata(problem.q, n)
        law = {bits(certain): Fraction(1)}
        for one in laws:
            after = {}
            for mask, probability in law.items():
                for x, weight in one.items():
                    after[mask | 1 << x] = after.get(mask | 1 << x, 0) + probability * weight
            law = after
        return law
    if scheme in ("with-replacement", "product"):
        for k in range(n):
            q = problem.qs[k] if scheme == "product" else problem.q
            after = {}
            for mask, probability in law.items():
                for x in support(q):
                    reached = mask | 1 << x
                    after[reached] = after.get(reached, 0) + probability * q[x]
            law = after
            if len(law) > MAX_STEP_SETS:
                raise TooLarge(f"more than {MAX_STEP_SETS} sets of draft tokens")
        return law
    if scheme == "without-replacement":
        q = problem.q
        for _ in range(min(n, len(support(q)))):
            after = {}
            for mask, probability in law.items():
                rest = [x for x in support(q) if not mask >> x & 1]
                left = sum(q[x] for x in rest)
                for x in rest:
                    reached = mask | 1 << x
                    after[reached] = after.get(reached, 0) + probability * q[x] / left
            law = after
            if len(law) > MAX_STEP_SETS:
                raise TooLarge(f"more than {MAX_STEP_SETS} sets of draft tokens")
        return law
    if scheme == "distinct-conditioned":
        q = problem.q
        size = min(n, len(support(q)))
        if math.comb(len(support(q)), size) > MAX_STEP_SETS:
            raise TooLarge(f"more than {MAX_STEP_SETS} sets of draft tokens")
        law = {
            bits(tokens): math.prod(q[x] for x in tokens)
            for tokens in itertools.combinations(support(q), size)
        }
        total = sum(law.values())
        return {mask: weight / total for mask, weight in law.items()}
    return None


def set_law(problem):
    """The law of A(X) as {mask: Fraction}, by every route that fits."""
    by_tuples = set_law_by_tuples(problem) if tuple_count(problem) <= MAX_TUPLES else None
    try:
        by_steps = set_law_by_steps(problem)
    except TooLarge:
        if by_tuples is None:
            raise
        by_steps = None
    if by_tuples is not None and by_steps is not None and by_tuples != by_steps:
        raise Inconsistent("law of the draft set: tuples and steps differ")
    law = by_tuples if by_tuples is not None else by_steps
    if law is None:
        raise TooLarge(f"{tuple_count(problem)} draft tuples")
    if sum(law.values()) != 1:
        raise Inconsistent("law of the draft set does not sum to 1")
    return law


# -------------------------------------------------------------------------- alpha*


def scaled(target, law):
    """p and D over one common denominator: (M, [p_i M], {A: D(A) M})."""
    common = math.lcm(
        *(x.denominator for x in target), *(x.denominator for x in law.values())
    )
    return (
        common,
        [int(x * common) for x in target],
        {mask: int(x * common) for mask, x in law.items()},
    )


def optimum_by_subsets(target, law):
    """(alpha*, every minimising subset) over all 2^V subsets H."""
    common, p, d = scaled(target, law)
    size = 1 << len(p)
    q_of = [0] * size
    for mask, weight in d.items():
        q_of[mask] += weight
    for x in range(len(p)):  # now sum over subsets, one token at a time
        bit = 1 << x
        for mask in range(size):
            if mask & bit:
                q_of[mask] += q_of[mask ^ bit]
    p_of = [0] * size
    for mask in range(1, size):
        low = mask & -mask
        p_of[mask] = p_of[mask ^ low] + p[low.bit_length() - 1]
    gap = [a - b for a, b in zip(p_of, q_of)]
    least = min(gap)
    return 1 + Fraction(least, common), [h for h in range(size) if gap[h] == least]


def optimum_by_flow(target, law):
    """(alpha*, the minimum cut's token set) by Edmonds-Karp, flow = cut checked."""
    common, p, d = scaled(target, law)
    masks = sorted(d)
    source, sink = 0, 1
    token = [2 + x for x in range(len(p))]
    node = {mask: 2 + len(p) + k for k, mask in enumerate(masks)}
    count = 2 + len(p) + len(masks)
    head, room, out = [], [], [[] for _ in range(count)]

    def arc(u, v, capacity):  # arc 2k and its reverse 2k + 1
        out[u].append(len(head))
        head.append(v)
        room.append(capacity)
        out[v].append(len(head))
        head.append(u)
        room.append(0)

    for mask in masks:
        arc(source, node[mask], d[mask])
        for x in tokens_of(mask):
            arc(node[mask], token[x], common)  # no flow exceeds the total, common
    for x, capacity in enumerate(p):
        arc(token[x], sink, capacity)

    value = 0
    while True:
        reached_by = [None] * count
        reached_by[source] = -1
        queue = deque([source])
        while queue and reached_by[sink] is None:
            u = queue.popleft()
            for e in out[u]:
                if room[e] > 0 and reached_by[head[e]] is None:
                    reached_by[head[e]] = e
                    queue.append(head[e])
        if reached_by[sink] is None:
            break
        path, v = [], sink
        while v != source:
            path.append(reached_by[v])
            v = head[reached_by[v] ^ 1]
        amount = min(room[e] for e in path)
        for e in path:
            room[e] -= amount
            room[e ^ 1] += amount
        value += amount

    subset = bits(x for x in range(len(p)) if reached_by[token[x]] is not None)
    p_of = sum(p[x] for x in tokens_of(subset))
    q_of = sum(weight for mask, weight in d.items() if mask & ~subset == 0)
    if value != common + p_of - q_of:
        raise Inconsistent("maximum flow and its cut differ")
    return Fraction(value, common), subset


def optimum(problem, law):
    """(alpha*, minimising subsets, names of the routes that found it)."""
    found, subsets, routes = None, [], []
    if problem.vocab <= MAX_SUBSET_VOCAB:
        found, subsets = optimum_by_subsets(problem.target, law)
        routes.append("subsets")
    if sum(mask.bit_count() for mask in law) <= MAX_FLOW_ARCS:
        value, cut = optimum_by_flow(problem.target, law)
        routes.append("flow")
        if found is None:
            found, subsets = value, [cut]
        elif value != found or cut not in subsets:
            raise Inconsistent(f"subsets give {found}, flow gives {value}")
    if found is None:
        raise TooLarge(f"vocabulary {problem.vocab} and {len(law)} sets of draft tokens")
    return found, subsets, routes


# ----------------------------------------------------------------------- verifiers


def positive_part(p, q):
    return [max(a - b, Fraction(0)) for a, b in zip(p, q)]


def overlap(p, q):
    return sum((min(a, b) for a, b in zip(p, q)), Fraction(0))


def rrs(problem):
    """Recursive rejection with i.i.d. drafts. A rejected token has residual 0, so a
    residual sample is never a draft and both notions of acceptance coincide."""
    p, rejected = problem.target, Fraction(1)
    for _ in range(problem.drafts):
        b = overlap(p, problem.q)
        rejected *= 1 - b
        if b == 1:
            break
        residual = positive_part(p, problem.q)
        p = [x / sum(residual) for x in residual]
    return 1 - rejected


def rrs_wo(problem):
    """Recursive rejection without replacement, summed over all rejected paths."""

    def accepted(p, q, drafts):
        mass = sum(q)
        if drafts == 0 or mass == 0:
            return Fraction(0)
        q = [x / mass for x in q]
        residual = positive_part(p, q)
        total = overlap(p, q)
        if total == 1:
            return total
        p_next = [x / sum(residual) for x in residual]
        for x in support(q):
            if q[x] > p[x]:  # drawn and rejected with probability q(x) - p(x)
                q_next = [0 if y == x else w for y, w in enumerate(q)]
                total += (q[x] - p[x]) * accepted(p_next, q_next, drafts - 1)
        return total

    return accepted(problem.target, problem.q, problem.drafts)


def shared_gumbel(problem):
    """P(the token of least E/p is among the n of least E/q), all E ~ Exp(1).

    The output y has its number E_y = p_y t at a time t of density e^-t, and no other j has rung at
    p by then: E_j > p_j t. Those with E_j < q_j p_y t/q_y are drafted before it. Each of them
    has e^(-p_j t) or more left, so y with exactly the tokens of S before it has the density
    p_y e^-t times the product over S of 1 - e^(-a t) and over the others of e^(-a t), which is a
    sum of exponentials in t."""
    p, q, n = problem.target, problem.q, problem.drafts
    total = Fraction(0)
    for y in support(q):
        a = [max(q[j] * p[y] / q[y] - p[j], Fraction(0)) for j in range(len(p)) if j != y]
        a = [x for x in a if x]  # the others are never before y
        for size in range(min(n, len(a) + 1)):
            for before in itertools.combinations(range(len(a)), size):
                rate = 1 + sum(x for j, x in enumerate(a) if j not in before)
                for rung in itertools.product((0, 1), repeat=size):
                    late = sum(a[j] for j, r in zip(before, rung) if r)
                    total += p[y] * (-1) ** sum(rung) / (rate + late)
    return total


def gls(problem):
    """P(the token of least E/p over n noises is that of least E/q in one of them), all E ~ Exp(1).

    At time t no token of a noise has rung at p: chance e^-t. It has not, and its draft is y, where
    E_y = q_y s t for an s > p_y/q_y and every other E_x > t max(s q_x, p_x): an integral over s whose
    exponent t B(s) is a line between two ratios p/q. In the noise of the output, y at t, its draft
    is y where every other E_x > t max(l q_x, p_x), l = p_y/q_y. So y is put out at t and no draft with
    p_y n (e^-t - e^-tB(l)) (e^-t - that integral)^(n-1)."""
    p, q, n = problem.target, problem.q, problem.drafts

    def exponent(s):
        return sum(max(s * y, x) for x, y in zip(p, q))

    def add(terms, rate, weight):
        terms[rate] = terms.get(rate, 0) + weight

    ratios = sorted({p[x] / q[x] for x in support(q)})
    total = Fraction(0)
    for y in support(q):
        own = p[y] / q[y]
        lost, other = {Fraction(1): Fraction(1)}, {Fraction(1): Fraction(1)}
        add(lost, exponent(own), -1)
        later = [s for s in ratios if s >= own]
        for s, end in itertools.zip_longest(later, later[1:]):
            share = q[y] / sum(q[x] for x in support(q) if p[x] <= s * q[x])
            add(other, exponent(s), -share)
            if end is not None:
                add(other, exponent(end), share)
        for _ in range(n - 1):
            product = {}
            for (a, x), (b, z) in itertools.product(lost.items(), other.items()):
                add(product, a + b, x * z)
            lost = product
        total += p[y] * (1 - n * sum(weight / rate for rate, weight in lost.items()))
    return total


def naive_tree(problem):
    """The first draft by rejection; a residual sample is accepted where it is another
    draft. Summed over all tuples."""
    if tuple_count(problem) > MAX_TUPLES:
        raise TooLarge(f"{tuple_count(problem)} draft tuples")
    p, q = problem.target, problem.q
    residual = positive_part(p, q)
    mass = sum(residual)
    total = Fraction(0)
    for tokens, probability in draft_tuples(problem):
        kept = min(Fraction(1), p[tokens[0]] / q[tokens[0]])
        if kept < 1:
            kept += (1 - kept) * sum(residual[y] for y in set(tokens[1:])) / mass
        total += probability * kept
    return total


def importance(problem):
    """Overlap with the most even law that can be selected of i.i.d. drafts: one that gives every
    set G at least q(G)^n. Set after set it gets what q(G)^n grows by, the set of the largest
    growth over P first, in proportion to p (to q where P is 0)."""
    p, q = problem.target, problem.q
    if problem.vocab > 10:
        raise TooLarge(f"all sets of {problem.vocab} tokens")

    def mass(row, mask):
        return sum(row[x] for x in tokens_of(mask))

    done, everything, selected = 0, (1 << problem.vocab) - 1, [Fraction(0)] * problem.vocab
    while done != everything:
        best = None
        for mask in range(1, everything + 1):
            if mask & done:
                continue
            growth = mass(q, mask | done) ** problem.drafts - mass(q, done) ** problem.drafts
            of_p = mass(p, mask)
            slope = (1, growth / of_p) if of_p else (2 if growth else 0, growth)
            key = (slope, mask.bit_count())
            if best is None or key > best[0]:
                best = (key, mask, growth)
        _, mask, growth = best
        row = p if mass(p, mask) else q
        for x in tokens_of(mask):
            if growth:
                selected[x] = growth * row[x] / mass(row, mask)
        done |= mask
    return overlap(p, selected)


def rrs_strata(problem):
    """Recursive rejection over strata, tuple by tuple. A token drawn from the last residual is
    accepted where it was drafted, which certain tokens always are."""
    certain, laws = strata(problem.q, problem.drafts)
    order = range(len(laws)) if problem.once else range(len(laws) - 1, -1, -1)
    accepted, output = Fraction(0), [Fraction(0)] * problem.vocab
    for tokens, reached in draft_tuples(problem):
        r = problem.target
        for j in order:
            if reached == 0:
                break
            x = tokens[len(certain) + j]
            before = tokens[len(certain) + j - 1] if j > 0 else None
            law = next_stratum(laws, j, before, problem.once)
            kept = min(Fraction(1), r[x] / law[x])
            output[x] += reached * kept
            accepted += reached * kept
            reached *= 1 - kept
            if reached > 0:
                r = positive_part(r, [law.get(y, Fraction(0)) for y in range(problem.vocab)])
                r = [y / sum(r) for y in r]
        accepted += reached * sum(r[y] for y in set(tokens))
        output = [o + reached * y for o, y in zip(output, r)]
    if output != problem.target:
        raise Inconsistent("rrs over strata is not lossless")
    return accepted


def level_strata(problem, levels=STRATA_LEVELS):
    """Level passes over strata. All tuples are kept with the weight at which they are drawn and
    nothing of them is accepted yet; the law of a draft is summed from these weights."""
    certain, laws = strata(problem.q, problem.drafts)
    alive = dict(draft_tuples(problem))
    left = list(problem.target)  # not normalised: it sums to what is alive
    for level in levels:
        for j in range(len(laws) - 1, -1, -1):
            at = len(certain) + j
            law = {}
            for tokens, weight in alive.items():
                law[tokens[at]] = law.get(tokens[at], 0) + weight
            kept = {}
            for x, weight in law.items():
                give = min(max((left[x] - level * weight) / (1 - level), Fraction(0)), weight)
                kept[x] = give / weight
                left[x] -= give
            alive = {t: w * (1 - kept[t[at]]) for t, w in alive.items() if kept[t[at]] < 1}
    if min(left) < 0 or sum(left) != sum(alive.values()):
        raise Inconsistent("level passes give out more than the target has")
    rejected = sum(alive.values())
    if rejected == 0:
        return Fraction(1)
    return 1 - sum(
        weight * (1 - sum(left[y] for y in set(tokens)) / rejected)
        for tokens, weight in alive.items()
    )


def level_iid(problem, levels=IID_LEVELS):
    """Passes over all i.i.d. drafts at once. In a pass a draft of token x rings with chance e[x],
    at an even moment; the first to ring is accepted. e is rounded to a float, and lowered until
    no token gives out more than it has; everything else is exact."""
    n, tokens = problem.drafts, support(problem.q)
    left, q, s = list(problem.target), list(problem.q), Fraction(1)

    def price(s, d):  # (s^n - (s - d)^n)/d
        return sum(s**i * (s - d) ** (n - 1 - i) for i in range(n))

    for level in levels:
        if s == 0:
            break
        top = float(price(s, Fraction(0)))
        bound, c, e = level * top, top, {}
        for _ in range(3):
            for x in tokens:
                over = float(left[x]) - bound * float(q[x])
                room = (c - bound) * float(q[x])
                e[x] = 0.0 if over <= 0 else 1.0 if over >= room else over / room
            given = math.fsum(e[x] * float(q[x]) for x in tokens)
            c = max(float(price(s, Fraction(min(given, float(s))))), bound)
        shrink = Fraction(1)
        while True:
            share = {x: min(Fraction(e[x]) * shrink, Fraction(1)) for x in tokens}
            d = sum(share[x] * q[x] for x in tokens)
            true = price(s, d)
            if all(true * share[x] * q[x] <= left[x] for x in tokens):
                break
            shrink *= 1 - Fraction(1, 2**50)
        for x in tokens:
            left[x] -= true * share[x] * q[x]
            q[x] *= 1 - share[x]
        s -= d
    if s == 0:
        return Fraction(1)
    # A draw from what is left is accepted if it is one of the drafts, all of them rejected.
    hit = sum(left[x] * (s**n - (s - q[x]) ** n) for x in tokens)
    return 1 - s**n + hit / s**n


def spechub(problem):
    """The three passes of the rule, each limited by what is left."""
    p, q = problem.target, problem.q
    a = by_rank(q)[0]
    if q[a] == 1:
        return p[a]
    accepted, left_over = Fraction(0), Fraction(0)
    for x in support(q):
        if x != a:
            second = q[a] * q[x] / (1 - q[a])
            first_pass = min(p[x], q[x])
            second_pass = min(p[x] - first_pass, second)
            accepted += first_pass + second_pass
            left_over += q[x] + second - first_pass - second_pass
    return accepted + min(p[a], left_over)


def greedy(problem):
    p, q = problem.target, problem.q
    order = by_rank(q)
    n = min(problem.drafts, len(order))
    top, rest = order[: n - 1], order[n - 1 :]
    mass = sum(q[x] for x in rest)
    return sum(p[x] for x in top) + sum(min(p[x], q[x] / mass) for x in rest)


def k_seq(problem):
    """Membership acceptance of k-seq, in floating point."""
    p = [float(x) for x in problem.target]
    q = [float(x) for x in problem.q]
    n = problem.drafts

    def b(rho):
        return math.fsum(min(x / rho, y) for x, y in zip(p, q))

    low, high = 1.0, float(n)  # 1 - (1 - b)^n - rho b is >= 0 at 1 and <= 0 at n
    for _ in range(200):
        middle = (low + high) / 2
        at_middle = b(middle)
        if 1 - (1 - at_middle) ** n >= middle * at_middle:
            low = middle
        else:
            high = middle
    rho = low
    reject = (1 - b(rho)) ** n
    if b(rho) == 0 or reject < 1e-300:
        return 1 - reject
    each = (1 - reject) / b(rho)
    p_res = [max(x - min(y, x / rho) * each, 0.0) for x, y in zip(p, q)]
    r = [y - min(y, x / rho) for x, y in zip(p, q)]
    p_total, r_total = math.fsum(p_res), math.fsum(r)
    if p_total == 0 or r_total == 0:
        return 1 - reject
    also = math.fsum(
        x / p_total * (1 - (1 - y / r_total) ** n) for x, y in zip(p_res, r)
    )
    return 1 - reject + reject * also


def acceptance(verifier, problem, law, alpha):
    """The membership acceptance of a verifier, or BadProblem where it does not apply."""
    scheme, n = problem.scheme, problem.drafts
    verifier = {"single": "token", "naive": "exact-match"}.get(verifier, verifier)
    strata_drafts = scheme == "stratified"
    applies = {
        "token": n == 1,
        "exact-match": True,
        "optimal": True,
        "rrs": scheme == "with-replacement" or strata_drafts,
        "level-4": scheme == "with-replacement" or strata_drafts,
        "level": scheme == "with-replacement" or strata_drafts,
        "k-seq": scheme == "with-replacement",
        "gls": scheme == "with-replacement",
        "naive-tree": scheme == "with-replacement",
        "importance": scheme == "with-replacement",
        "rrs-wo": scheme == "without-replacement",
        "shared-gumbel": scheme == "without-replacement",
        "spechub": scheme == "hub",
        "greedy": scheme == "greedy",
    }
    if not applies.get(verifier, False):
        raise BadProblem(f"expected.acceptance_rate.{verifier}: not a verifier of {scheme}")
    if verifier == "token":
        return overlap(problem.target, [law.get(1 << x, 0) for x in range(problem.vocab)])
    if verifier == "exact-match":
        return sum(
            weight * sum(problem.target[x] for x in tokens_of(mask))
            for mask, weight in law.items()
        )
    if verifier == "level" and strata_drafts:
        laws = strata(problem.q, n)[1]
        if any(set(one) & set(two) for one, two in zip(laws, laws[1:])):
            raise TooLarge("level: alpha* is proved where no token straddles two strata")
    if verifier in ("optimal", "level"):
        return alpha
    rule = {
        "rrs": rrs_strata if strata_drafts else rrs,
        "level-4": level_strata if strata_drafts else level_iid,
        "rrs-wo": rrs_wo,
        "shared-gumbel": shared_gumbel,
        "gls": gls,
        "spechub": spechub,
        "greedy": greedy,
        "k-seq": k_seq,
        "naive-tree": naive_tree,
        "importance": importance,
    }
    value = Fraction(rule[verifier](problem))
    if value > alpha + (KSEQ_TOLERANCE if verifier == "k-seq" else 0):
        raise Inconsistent(f"{verifier} exceeds alpha*")
    return value


# ----------------------------------------------------------------- the command line


def show(value):
    text = str(value)
    return text if len(text) <= 24 else repr(float(value))


def check(problem):
    """(one line about the problem, True where every expected value agrees)."""
    law = set_law(problem)
    alpha, subsets, routes = optimum(problem, law)
    tolerance = exact(problem.expected.get("tolerance", 0), "expected.tolerance")
    differences, compared = [], []

    def compare(name, got, written, slack):
        wanted = exact(written, name)
        compared.append(name)
        if abs(got - wanted) > slack:
            differences.append(f"{name}: written {written}, found {show(got)}")

    if "optimal_acceptance_rate" in problem.expected:
        compare("alpha*", alpha, problem.expected["optimal_acceptance_rate"], tolerance)
    for verifier, written in problem.expected.get("acceptance_rate", {}).items():
        slack = tolerance
        if verifier == "k-seq":
            slack = max(tolerance, KSEQ_TOLERANCE)
        elif verifier == "level-4" and problem.scheme == "with-replacement":
            slack = max(tolerance, PASS_TOLERANCE)
        compare(verifier, acceptance(verifier, problem, law, alpha), written, slack)

    subset = tokens_of(min(subsets, key=lambda h: (h.bit_count(), h)))
    line = f"alpha* = {show(alpha)}, H = {subset}"
    if len(subsets) > 1:
        line += f" (1 of {len(subsets)})"
    line += f", by {' = '.join(routes)}; "
    if differences:
        return line + "DISAGREES: " + "; ".join(differences), False
    return line + (f"agrees: {', '.join(compared)}" if compared else "nothing expected"), True


def files(arguments):
    for argument in arguments:
        path = Path(argument)
        if path.is_dir():
            yield from sorted(path.rglob("*.toml"))
        else:
            yield path


def main(arguments):
    quiet = "--quiet" in arguments
    arguments = [a for a in arguments if a != "--quiet"]
    if not arguments or any(a.startswith("-") for a in arguments):
        print("usage: oracle.py [--quiet] FILE_OR_DIRECTORY...", file=sys.stderr)
        return 2
    counts = {"ok": 0, "skip": 0, "DIFF": 0, "BAD": 0, "BUG": 0}
    names = {}
    for path in files(arguments):
        try:
            with open(path, "rb") as file:
                data = tomllib.load(file)
            name = data.get("name")
            if name != path.stem:
                raise BadProblem(f"name: {name!r} is not the file's stem")
            if name in names:
                raise BadProblem(f"name: {name!r} is also used by {names[name]}")
            names[name] = path
            if "block" in data:
                word, line = "skip", "block problem; this script covers single steps only"
            else:
                line, agrees = check(Problem(data))
                word = "ok" if agrees else "DIFF"
        except TooLarge as error:
            word, line = "skip", str(error)
        except (BadProblem, OSError, tomllib.TOMLDecodeError) as error:
            word, line = "BAD", str(error)
        except Inconsistent as error:
            word, line = "BUG", f"this script disagrees with itself: {error}"
        counts[word] += 1
        if not (quiet and word == "ok"):
            print(f"{word:<5}{path}: {line}")
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    if counts["BUG"]:
        return 3
    if counts["BAD"]:
        return 2
    return 1 if counts["DIFF"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

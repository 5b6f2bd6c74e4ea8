"""What an engine does at one step, as laws: of the draft, of keeping it, of what replaces it."""

import numpy

from rows import sampled, softmax


def ratio(p, q):
    return numpy.where(q > 0, numpy.minimum(p, q) / numpy.where(q > 0, q, 1), p > 0)


def of_p(p, q):
    return p.copy()


def over(c):
    """Kept with min(1, p/(c q))."""
    return lambda p, q: ratio(p, c * q)


def no_coin(c):
    return lambda p, q: (p >= c * q).astype(float)


def at_least(c):
    return lambda p, q: (p >= c).astype(float)


def everything(p, q):
    return numpy.ones_like(p)


def nothing(p, q):
    return numpy.zeros_like(p)


def refused(p, q):
    return 1 - ratio(p, q)


def of_largest(p, q):
    return p / p.max()


def if_likeliest(p, q):
    return likeliest(p)


def typical(p, q):
    entropy = -(p * numpy.log(numpy.maximum(p, 1e-300))).sum()
    return (p > min(0.3, 0.5 * numpy.exp(-entropy))).astype(float)


def likeliest(p):
    return numpy.eye(p.size)[p.argmax()]


def residual(p, q, x):
    left = numpy.maximum(p - q, 0)
    return left / left.sum() if left.sum() > 0 else p


def without(p, q, x):
    left = p.copy()
    left[x] = 0
    return left / left.sum() if left.sum() > 0 else p


def from_p(p, q, x):
    return p


def from_q(p, q, x):
    return q


def from_likeliest(p, q, x):
    return likeliest(p)


def from_likeliest_left(p, q, x):
    return likeliest(numpy.maximum(p - q, 0))


def first_token(p, q, x):
    return numpy.eye(p.size)[0]


def by_softmax(p, q, x):
    return softmax(numpy.maximum(p - q, 0))


def not_normalised(p, q, x):
    """The search through the residual's sums runs off the end where the number is beyond them."""
    left = numpy.maximum(p - q, 0)
    left[-1] += 1 - left.sum()
    return left


without.by_draft = True
# By rule: the law of the draft (of q), of keeping it, and of what replaces it.
RULES = {
    "text": (None, None, None),
    "token": (lambda q: q, ratio, residual),
    "one-hot": (likeliest, of_p, without),
    "exact-match": (lambda q: q, of_p, without),
}


class View:
    """What a change of a row may use: the raw logits, the claimed law, and the text so far."""

    def __init__(self, claim, logits, past, counted, before):
        self.claim, self.logits, self.law = claim, logits, claim(logits)
        # `counted`: of each round its last token.
        self.past, self.counted, self.before = past, counted, before


# Changes of a row: functions of a view that give a law. `moves` says that they use the text so far.


def same(view):
    return view.law


def request(**settings):
    """The law of another request than the claimed one."""
    return lambda view: view.claim(view.logits, **settings)


def of_law(change):
    return lambda view: (lambda law: law / law.sum())(change(view.law.copy()))


def tempered(factor):
    return of_law(lambda law: numpy.where(law > 0, numpy.maximum(law, 1e-300) ** (1 / factor), 0))


def floor(least):
    return of_law(lambda law: numpy.where(law >= min(least, law.max()), law, 0))


def scaled(tokens, factor):
    def change(law):
        law[tokens] *= factor
        return law if law.sum() > 0 else numpy.ones_like(law)

    return of_law(change)


def banned(place, frequent):
    """A token that never comes: of the commonest by mass the one of this place."""
    return lambda rows: scaled([frequent(rows)[place]], 0)


def biased(deviation):
    def made(rows):
        bias = deviation * numpy.random.default_rng(5).normal(size=rows.vocabulary)
        return lambda view: view.claim(view.logits + bias)

    return made


def mixed(weight):
    return lambda view: weight * view.law + (1 - weight) * view.claim.draft(view)


def moving(change):
    change.moves = True
    return change


def penalty(size, window=None, of=lambda count: count > 0, lag=False):
    """exp(-size) for each token seen: presence, or by `of` its count; `lag`: one token a round."""

    def change(view):
        past = view.counted if lag else view.past
        past = past[-window:] if window else past
        if not past:
            return view.law
        seen, counts = numpy.unique(past, return_counts=True)
        logits = view.logits.copy()
        logits[seen] -= size * of(counts)
        return view.claim(logits)

    return moving(change)


def repetition(factor):
    def change(view):
        logits = view.logits.copy()
        seen = numpy.unique(view.past[-view.claim.vocabulary:]).astype(int)
        logits[seen] = numpy.where(logits[seen] > 0, logits[seen] / factor, logits[seen] * factor)
        return view.claim(logits)

    return moving(change)


def no_repeat(order):
    """No token that would close an n-gram of the text for the second time."""

    def change(view):
        past, logits = view.past, view.logits.copy()
        if order == 1 and past:
            logits[past[-1]] = -numpy.inf
        elif len(past) >= order:
            tail = past[len(past) - order + 1:]
            for at in range(max(0, len(past) - 200), len(past) - order + 1):
                if past[at: at + order - 1] == tail:
                    logits[past[at + order - 1]] = -numpy.inf
        return view.claim(logits) if numpy.isfinite(logits).any() else view.law

    return moving(change)


def pairs_banned(share):
    """A share of all tokens never comes behind a token, which ones depends on that."""

    def change(view):
        if not view.past:
            return view.law
        never = numpy.random.default_rng([11, view.past[-1]]).random(len(view.logits)) < share
        logits = numpy.where(never, -numpy.inf, view.logits)
        return view.claim(logits) if numpy.isfinite(logits).any() else view.law

    return moving(change)


@moving
def row_before(view):
    return view.law if view.before is None else view.before


class Claim:
    """What is claimed of a request: the law of p and of q."""

    def __init__(self, rows, temperature=1.0, cuts=None, order="k,p,m", allowed=None):
        self.vocabulary, self.draft_logits = rows.vocabulary, rows.draft
        self.settings = {"temperature": temperature, "cuts": cuts or {}, "order": order}
        self.allowed, self.context = allowed, 0

    def __call__(self, logits, masked=True, **other):
        if self.allowed is not None and masked:
            logits = numpy.where(self.allowed[self.context], logits, -numpy.inf)
        return sampled(logits, **{**self.settings, **other})

    def draft(self, view=None, temperature=None, cuts=None):
        return sampled(
            self.draft_logits[self.context], temperature or self.settings["temperature"], cuts or {}
        )


class Laws:
    """One step: the draft's law, the chance to keep each draft, its replacement, and an output alone."""

    def __init__(self, drafted, asked, check, correct, bonus, keep, replace):
        self.drafted, self.asked, self.target, self.alone = drafted, asked, correct, bonus
        self.replace, self.rest = replace, None
        self.kept = None if keep is None else keep(check, asked)
        self.exact = keep is of_p and replace is without and check is correct

    def replacement(self, x):
        # One for each draft would fill the memory at V = 2,000.
        if self.rest is None or getattr(self.replace, "by_draft", False):
            self.rest = self.replace(self.target, self.asked, x)
        return self.rest

    def outputs(self):
        """The law of what comes out, or None where the sum over drafts is too long."""
        if self.kept is None:
            return self.alone
        if self.exact:
            return self.target
        through = self.drafted * self.kept
        if not getattr(self.replace, "by_draft", False):
            return through + (1 - through.sum()) * self.replacement(0)
        support = numpy.flatnonzero(self.drafted)
        if support.size > 48:
            return None
        law = through
        for x in support:
            law = law + self.drafted[x] * (1 - self.kept[x]) * self.replacement(x)
        return law

"""A kernel that does what the rules say, in NumPy and double precision."""

import numpy


def row(values):
    values = numpy.asarray(values, numpy.float64)
    return values / values.sum()


def positive(p, q):
    left = numpy.maximum(p - q, 0)
    return left / left.sum() if left.sum() > 0 else p


def keep(p, q):
    return 0.0 if p == 0 else 1.0 if p >= q else p / q


def invert(law, coins):
    """The token at which the distribution function passes each coin."""
    ends = numpy.cumsum(law)
    place = numpy.searchsorted(ends, numpy.asarray(coins) * ends[-1], side="right")
    return numpy.minimum(place, numpy.flatnonzero(law)[-1])


def token_coins(vector, coins, final_coin):
    # As fractions of rows whose sums are equal but for rounding.
    kept = [
        keep(float(vector.target[k][x]), float(vector.draft[k][x]))
        for k, x in enumerate(vector.drafts)
    ]
    accepted = leading(numpy.asarray(coins) < kept)
    token = numpy.empty(accepted.size, numpy.int64)
    for count in numpy.unique(accepted):
        if count == len(vector.drafts):
            law = row(vector.target[count])
        else:
            law = positive(vector.target[count].astype(float), vector.draft[count].astype(float))
        chosen = accepted == count
        token[chosen] = invert(law, numpy.asarray(final_coin)[chosen])
    return accepted, token


def leading(kept):
    """How many drafts are kept before the first that is not, in each row."""
    return numpy.cumprod(kept, axis=1).sum(axis=1)


def token(vector, samples, seed):
    random = numpy.random.default_rng(seed)
    return token_coins(vector, random.random((samples, len(vector.drafts))), random.random(samples))


one_hot, one_hot_coins = token, token_coins


def siblings(vector, samples, seed, distinct):
    random = numpy.random.default_rng(seed)
    left, q, reached = row(vector.target[0]), row(vector.draft[0]), 1.0
    law = numpy.zeros_like(left)
    if numpy.array_equal(vector.target[0], vector.draft[0]):
        q = left.copy()
    for x in vector.drafts:
        kept = keep(left[x], q[x])
        law[x] += reached * kept
        reached *= 1 - kept
        left = positive(left, q)
        if distinct:
            q[x] = 0
            q /= q.sum()
    return invert(law + reached * left, random.random(samples))


def rrs(vector, samples, seed):
    return siblings(vector, samples, seed, False)


def rrs_wo(vector, samples, seed):
    return siblings(vector, samples, seed, True)


def exact_match(vector, samples, seed):
    return invert(row(vector.target[0]), numpy.random.default_rng(seed).random(samples))

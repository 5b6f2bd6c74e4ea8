"""A kernel that does what the rules say, in NumPy and double precision."""

import functools
import math

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


def shared_gumbel(vector, noise):
    """By Gumbel noise, -ln of the noise, on logits: the n largest of q's, the largest of p's."""
    with numpy.errstate(divide="ignore"):
        gumbel = -numpy.log(numpy.asarray(noise, numpy.float64))
        of_draft, of_target = (numpy.log(rows[0].astype(float)) + gumbel for rows in (vector.draft, vector.target))
    drafts = numpy.argsort(-of_draft, axis=1, kind="stable")[:, : vector.noise_drafts.shape[1]]
    drafts = numpy.where(numpy.take_along_axis(of_draft, drafts, 1) > -numpy.inf, drafts, -1)
    token = of_target.argmax(axis=1)
    hits = drafts == token[:, None]
    return drafts, token, numpy.where(hits.any(axis=1), hits.argmax(axis=1), drafts.shape[1])


def leading(kept):
    """How many drafts are kept before the first that is not, in each row."""
    return numpy.cumprod(kept, axis=1).sum(axis=1)


def token(vector, samples, seed):
    random = numpy.random.default_rng(seed)
    return token_coins(vector, random.random((samples, len(vector.drafts))), random.random(samples))


one_hot, one_hot_coins = token, token_coins


def shares(values):
    """A row over its sum, which is rounded once: equal rows stay equal."""
    values = numpy.asarray(values, numpy.float64)
    return values / math.fsum(values)


def last_draw(accepted, final_coin, lefts, carried_behind):
    """The next token of each round, and what it carries on: by accepted drafts, what the token is
    drawn in proportion to, and what is carried behind a token."""
    token, carry = numpy.empty(accepted.size, numpy.int64), [None] * accepted.size
    for count in numpy.unique(accepted):
        chosen = numpy.flatnonzero(accepted == count)
        token[chosen] = invert(lefts[count], numpy.asarray(final_coin)[chosen])
        behind = {x: carried_behind(count, x) for x in numpy.unique(token[chosen])}
        for i in chosen:
            carry[i] = behind[token[i]]
    return accepted, token, numpy.array(carry)


def behind_token(w, p, q):
    """The w_j behind a token of these probabilities: a kept draft it is with min(d q, p)."""
    d = w.sum()
    drafted = min(d * q, p) / p if p > 0 else 0.0
    older = w * (drafted / d) if d > 0 else w
    return numpy.append(1 - drafted, older)[: w.size]


def carried_coins(vector, coins, final_coin):
    w, kept, lefts, carries = vector.carry, [], [], []
    for k, (p, q) in enumerate(zip(map(shares, vector.target), map(shares, vector.draft))):
        lefts.append(numpy.maximum(p - w.sum() * q, 0))
        carries.append((w, p, q))
        if k < len(vector.drafts):
            x = vector.drafts[k]
            kept.append(keep(p[x], w.sum() * q[x]))
            w = behind_token(w, p[x], q[x])

    def behind(count, x):
        w, p, q = carries[count]
        return behind_token(w, p[x], q[x])

    return last_draw(leading(numpy.asarray(coins) < kept), final_coin, lefts, behind)


def given_out(p, q, ages, most):
    """What each age gives of a row, and what none of them does: together by drafts to go, then each
    alone of what is left."""
    drafted, kept = ages[:most].T
    wanted = drafted * (most - numpy.arange(most)) / most
    even = numpy.where(wanted.sum() * q > p, p / max(wanted.sum(), 1e-300), q)
    given = numpy.minimum(wanted, kept / max(even.sum(), 1e-300))[:, None] * even
    left = numpy.maximum(p - given.sum(axis=0), 0)
    for j in range(most):
        room = numpy.clip(drafted[j] * q - given[j], 0, left)
        more = kept[j] - given[j].sum()
        if room.sum() > 0 and more > 0:
            alone = room * min(more / room.sum(), 1)
            given[j] += alone
            left = left - alone
    return given, left


def carried_block_coins(vector, coins, final_coin):
    drafts, ages = len(vector.drafts), vector.carry
    stops, lefts, nodes = [], [], []

    def behind(ages, given, p, q, x):
        if p[x] <= 0:
            return numpy.eye(drafts + 1)[0][:, None] * numpy.ones(2)
        kept = [g[x] / p[x] for g in given]
        start = max(1 - sum(kept), 0)
        return numpy.array([[start, start], *zip(ages[:-1, 0] * (q[x] / p[x]), kept)])

    for k, (p, q) in enumerate(zip(map(shares, vector.target), map(shares, vector.draft))):
        given, left = given_out(p, q, ages, drafts)
        (drafted, kept), total = ages[k], given[k].sum() if k < drafts else 0.0
        # What rounding leaves is nothing: no token is left there to be drawn.
        alone = kept - total if kept - total > 1e-13 else 0.0
        stops.append(min(alone / (drafted - total), 1) if alone else 0.0)
        lefts.append(left)
        nodes.append((ages, given, p, q))
        if k < drafts:
            ages = behind(*nodes[-1], vector.drafts[k])
    # From the end: the last draft at which the round stops.
    hits = (numpy.asarray(coins) < stops[1:])[:, ::-1]
    accepted = numpy.where(hits.any(axis=1), drafts - hits.argmax(axis=1), 0)
    return last_draw(accepted, final_coin, lefts, lambda k, x: behind(*nodes[k], x))


def by_coins(kernel):
    def sampled(vector, samples, seed):
        random = numpy.random.default_rng(seed)
        coins = random.random((samples, len(vector.drafts)))
        return kernel(vector, coins, random.random(samples))

    return sampled


carried, carried_block = by_coins(carried_coins), by_coins(carried_block_coins)


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


def cut(q, n):
    """Sure tokens, and of each stratum: its tokens, and what each has of it. Heaviest first."""
    order = [x for x in numpy.argsort(-q, kind="stable") if q[x] > 0]
    sure = []
    rest = q[order[::-1]].sum()
    while len(sure) < n - 1 and (n - len(sure)) * q[order[0]] >= rest * (1 - 1e-12):
        sure.append(order.pop(0))
        rest = q[order[::-1]].sum()
    order, k = numpy.array(order), n - len(sure)
    ends = numpy.append(numpy.cumsum(q[order]) * (k / rest), k)
    ends[-2] = k
    begins = numpy.append(0.0, ends[:-2])
    strata = []
    for j in range(k):
        share = numpy.minimum(ends[:-1], j + 1) - numpy.maximum(begins, j)
        some = share > numpy.minimum(1e-13, ends[:-1] - begins) * 0.5
        strata.append((order[some], share[some]))
    return sure, strata


def ways(strata):
    """All ways in which tokens over cuts may be drafted, with their probabilities: for each stratum
    "left" or "right" if its draft is the token over that cut, else "inside". Inside, strata are
    independent."""
    over, all_ways = [], [((), 1.0)]
    for j, (tokens, shares) in enumerate(strata):
        left = j > 0 and tokens[0] == strata[j - 1][0][-1]
        right = j + 1 < len(strata) and tokens[-1] == strata[j + 1][0][0]
        a = float(strata[j - 1][1][-1]) if left else 0.0
        b = float(shares[0]) if left else 0.0
        c = float(shares[-1]) if right else 0.0
        over.append((left, right))
        longer = []
        for way, chance in all_ways:
            again = 0.0 if way and way[-1] == "right" else b / (1 - a)
            for kind, share in [("left", None), ("inside", 1 - b - c), ("right", c)]:
                given = again if share is None else (1 - again) * max(share, 0.0) / (1 - b)
                if given > 0:
                    longer.append(((*way, kind), chance * given))
        all_ways = longer
    return over, all_ways


def level_4(vector, samples, seed):
    """Rejection at the levels .8, .5, .2 and 0 over strata, the last one first. Every number is a
    sum over the ways in which tokens over cuts were drafted."""
    left, q = row(vector.target[0]), row(vector.draft[0])
    drafts = [int(x) for x in vector.drafts]
    sure, strata = cut(q, len(drafts))
    over, all_ways = ways(strata)
    # Of each stratum, by kind: its law, and at last what of it no pass has accepted.
    laws = []
    for (tokens, shares), (has_left, has_right) in zip(strata, over):
        first, last = int(has_left), len(tokens) - int(has_right)
        inside = numpy.zeros(len(tokens))
        inside[first:last] = shares[first:last] / max(shares[first:last].sum(), 1e-300)
        ends = numpy.eye(len(tokens))
        laws.append({"left": ends[0], "inside": inside, "right": ends[-1]})
    law, alive = numpy.zeros_like(left), 1.0
    for level in (0.8, 0.5, 0.2, 0.0):
        for j in reversed(range(len(strata))):
            tokens = strata[j][0]
            mass = numpy.zeros(len(tokens))
            for way, chance in all_ways:
                for i, kind in enumerate(way):
                    chance *= 1.0 if i == j else laws[i][kind].sum()
                mass += chance * laws[j][way[j]]
            take = numpy.clip((left[tokens] - level * mass) / (1 - level), 0, mass)
            share = numpy.divide(take, mass, out=numpy.zeros_like(take), where=mass > 0)
            for kind in laws[j]:
                laws[j][kind] = laws[j][kind] * (1 - share)
            left[tokens] = numpy.maximum(left[tokens] - take, 0)
            place = numpy.flatnonzero(tokens == drafts[len(sure) + j])[0]
            law[tokens[place]] += alive * share[place]
            alive *= 1 - share[place]
    if left.sum() > 0:
        law += alive * left / left.sum()
    return invert(law, numpy.random.default_rng(seed).random(samples))


def joint(q, n, law):
    """The joint law of the drafts of a row, [V] * n, and how many of them are sure."""
    each, sure = [q] * n, []
    if law != "with-replacement" and n:
        sure, strata = cut(q, n)
        each = [numpy.eye(q.size)[x] for x in sure]
        for tokens, shares in strata:
            each.append(numpy.zeros(q.size))
            each[-1][tokens] = shares
    whole = functools.reduce(numpy.multiply.outer, each, numpy.ones(()))
    if law != "stratified" or not n:
        return whole, None if law == "with-replacement" else len(sure)
    over, all_ways = ways(strata)
    whole = whole * 0
    for way, chance in all_ways:
        laws = [numpy.eye(q.size)[x] for x in sure]
        for (tokens, shares), kind, (left, right) in zip(strata, way, over):
            inside = numpy.zeros(q.size)
            here = {"left": [0], "right": [-1]}.get(kind, slice(int(left), len(tokens) - int(right)))
            inside[tokens[here]] = shares[here] if kind == "inside" else 1.0
            laws.append(inside / inside.sum())
        whole += chance * functools.reduce(numpy.multiply.outer, laws)
    return whole, len(sure)


def tree_ends(tree, bug=None):
    """The offers at whose end a node may be kept, in order: its row, the chance of it where none was
    kept before, and the law of the next token. Drafts are a joint law, of which each offer takes."""
    alive, ends = {}, []

    def offer(x, weight):
        drafts = tree.slots[x]
        if x not in alive or bug == "forgets":
            alive[x] = joint(tree.draft[x], len(drafts), tree.law)
        whole, sure = alive[x]
        total = whole.sum()
        owed = weight * total * tree.target[x]
        order = range(len(drafts)) if sure is None else range(len(drafts) - 1, sure - 1, -1)
        for level in tree.levels[0 if bug == "levels below" else x > 0]:
            for j in order:
                mass = whole.sum(tuple(i for i in range(len(drafts)) if i != j))
                take = numpy.clip((owed - level * mass) / (1 - level), 0, mass)
                share = numpy.divide(take, mass, out=numpy.zeros_like(mass), where=mass > 1e-13 * total)
                whole = whole * (1 - share).reshape([-1 if i == j else 1 for i in range(len(drafts))])
                if bug != "keeps R":
                    owed = owed - take
                if share[tree.tokens[drafts[j]]] > 0:
                    offer(drafts[j] + 1, share[tree.tokens[drafts[j]]])
        alive[x] = whole, sure
        left = whole.sum()
        for node in drafts[: sure or 0]:
            y = tree.tokens[node]
            share = min(1, owed[y] / left) if owed[y] > 0 else 0
            if share > 0:
                offer(node + 1, share)
            owed[y] -= share * left
            left *= 1 - share
        owed = numpy.maximum(owed, 0)
        if owed.sum() > 1e-13 * total:
            chance = 1 if x == 0 else min(1, owed.sum() / left)
            law = tree.target[x] if bug == "draws from p" else owed / owed.sum()
            ends.append((x, chance, law))

    offer(0, 1.0)
    return ends


def traversal_coins(tree, coins, final_coin, bug=None):
    coins, final_coin = numpy.asarray(coins), numpy.asarray(final_coin)
    row, token = numpy.full(len(coins), -1), numpy.full(len(coins), -1)
    refused = numpy.ones(len(tree.slots))
    for x, chance, law in tree_ends(tree, bug):
        refused[x] *= 1 - chance
        kept = (row < 0) & ((x == 0) | (coins[:, x - 1] >= refused[x]))
        row[kept], token[kept] = x, invert(law, final_coin[kept])
    return row, token


def tree_by_coins(kernel):
    def sampled(tree, samples, seed):
        random = numpy.random.default_rng(seed)
        return kernel(tree, random.random((samples, len(tree.tokens))), random.random(samples))

    return sampled


traversal_4_coins = traversal_coins
traversal = traversal_4 = tree_by_coins(traversal_coins)


def exact_match(vector, samples, seed):
    return invert(row(vector.target[0]), numpy.random.default_rng(seed).random(samples))


def target_row(call, request, place):
    """p: the softmax of what is allowed over the temperature; `None` where logits are NaN."""
    logits = numpy.asarray(call.target_logits[request][place], numpy.float64)
    if numpy.isnan(logits).any():
        return None
    logits = numpy.where(call.allowed[request][place] > 0, logits, -numpy.inf)
    temperature = float(call.temperature[request])
    if temperature == 0:
        return numpy.eye(logits.size)[numpy.argmax(logits)]
    return row(numpy.exp((logits - logits.max()) / temperature))


def draft_row(call, request, place, size):
    """q over the target's ids; `None` where it is no law."""
    values = numpy.asarray(call.draft_rows[request][place], numpy.float64)
    if not numpy.isfinite(values).all() or (values < 0).any() or abs(values.sum() - 1) > 1e-3:
        return None
    q = numpy.zeros(size)
    numpy.add.at(q, call.d2t, values)
    return q


def request_laws(call, request):
    """By place: the probability that the draft is kept, and what the next token is drawn from."""
    kept, laws = [], []
    count = min(int(call.counts[request]), int(call.verified[request]))
    for place in range(count + 1):
        p = target_row(call, request, place)
        if p is None:
            return None
        if place == count:
            laws.append(p)
            break
        x, q = call.draft_tokens[request][place], draft_row(call, request, place, p.size)
        if q is None:
            # Nothing is known of how x was drawn: as if it was certain.
            q = numpy.eye(p.size)[x]
        kept.append(keep(p[x], q[x]))
        laws.append(positive(p, q))
    return kept, laws


def token_call_coins(call, coins, final_coin, laws_of=request_laws, is_kept=None, last=None):
    """Each request by itself. A draft that is always kept is kept at a number of 1 too."""
    coins, final_coin = numpy.asarray(coins), numpy.asarray(final_coin)
    accepted = numpy.zeros(final_coin.shape, numpy.int64)
    token = numpy.full(final_coin.shape, -1)
    for request in range(final_coin.shape[1]):
        found = laws_of(call, request)
        if found is None:
            continue
        kept, laws = numpy.array(found[0]), found[1]
        u = coins[:, request, : len(kept)]
        hits = is_kept(u, kept) if is_kept else (u < kept) | (kept >= 1)
        accepted[:, request] = leading(hits)
        for count in numpy.unique(accepted[:, request]):
            chosen = accepted[:, request] == count
            token[chosen, request] = (last or invert)(laws[count], final_coin[chosen, request])
    return accepted, token


def call_by_coins(kernel):
    def sampled(call, samples, seed):
        random = numpy.random.default_rng(seed)
        requests, drafts = call.draft_tokens.shape
        coins = random.random((samples, requests, drafts))
        return kernel(call, coins, random.random((samples, requests)))

    return sampled


token_call = call_by_coins(token_call_coins)

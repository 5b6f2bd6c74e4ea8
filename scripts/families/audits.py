"""Engines that depart from their claim in ways that ranks of tokens do not show, through `sg.audit`."""

import bisect
import types

import numpy
import specgap as sg


def softmax(logits):
    weights = numpy.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def log_uniform(random, low, high):
    return float(numpy.exp(random.uniform(numpy.log(low), numpy.log(high))))


def table(random, low, high, size):
    return (log_uniform(random, low, high) * random.normal(size=(size, size))).astype("f4")


def lengths(random, low, high):
    """Of some texts, so many positions in all."""
    count = int(log_uniform(random, low, high))
    return numpy.diff(numpy.sort([0, *random.choice(range(1, count), min(random.integers(12), count // 20), replace=False), count]))


def judged(random, rule, temperature, honest, moved, each, target, draft=None):
    """What an audit concludes of texts (contexts, drafts, accepted, output of each), and what is wrong with that, or None."""
    contexts, *rounds, output = (numpy.array(sum(map(list, column), [])) for column in zip(*each))
    text = numpy.repeat(numpy.arange(len(each)), [len(one[0]) for one in each])
    tensors = {"target_logits": target[contexts], "prompt_id": text, "output": output}
    tensors["position"] = numpy.arange(len(text)) - numpy.searchsorted(text, text)
    tensors |= {"draft_logits": draft[contexts], "drafts": rounds[0], "accepted": rounds[1]} if rounds else {}
    if random.random() < 0.5:
        tensors["seed"] = text if random.random() < 0.5 else numpy.full_like(text, -1)
    said = {"rows_from": "engine-raw", "temperature_applied": 1.0, "sampling": {"temperature": temperature}}
    exclude = float(random.choice([0.05, 0.05, 0.1, 0.2, 0.3]))
    report = sg.audit(sg.Log.of_arrays(metadata=said, **tensors), rule, exclude=exclude, threads=1, progress=False).to_dict()
    told = (part["smallest_tv_excluded"] or 0 for part in report["parts"] if part["part"] == "target-law")
    conclusion, excluded = report["conclusion"], max(exclude, *told)
    if honest and conclusion not in ("as-claimed", "undecided", "lossless-other"):
        return conclusion, f"honest, and {conclusion}: {(report['cause'] or {}).get('name')}"
    is_cleared = moved > excluded and conclusion in ("as-claimed", "lossless-other")
    return conclusion, f"TV {moved:.4f} a step, {excluded:.4f} excluded, {len(text)} tokens" if is_cleared else None


KINDS = "honest,banned ids,banned range,no repeat,presence,frequency,repetition,bias,token more often,bad bigrams".split(",")


WINDOWED = {  # what becomes of a row's logits, given how often each token came of late, and how much
    "presence": lambda logits, counts, much: logits - much * (counts > 0),
    "frequency": lambda logits, counts, much: logits - 0.5 * much * counts,
    "repetition": lambda logits, counts, much: numpy.where(
        counts == 0, logits, numpy.where(logits > 0, logits / (1 + much), logits * (1 + much))
    ),
}


class Departure:
    """What an engine does to a row's logits: always the same, or by the token before it, or by what came of late."""

    def __init__(self, random, kind, size):
        self.kind, ids, self.much = kind, random.permutation(size), log_uniform(random, 0.1, 3.0)
        self.window = int(random.choice([1, 4, 10, 64, 1000]))
        pairs, some = random.random((size, size)) < log_uniform(random, 0.02, 0.3), ids[: random.integers(1, size // 3 + 1)]
        if kind == "banned range":
            some = numpy.arange(size)[ids[0] :][: len(some)]
        self.bias = {"bias": self.much * random.normal(size=size), "token more often": random.choice([-1, 1]) * self.much * (ids == 0)}
        self.never = numpy.zeros((size, size), bool)
        self.never[:, some] = kind.startswith("banned")
        self.never |= {"no repeat": numpy.eye(size, dtype=bool), "bad bigrams": pairs}.get(kind, False)

    def rows(self, rows, first=False):
        """The logits behind each context, or of a text's first token, where what came of late has no part in them."""
        other = rows + self.bias.get(self.kind, 0)
        if not first or self.kind.startswith("banned"):
            other[self.never] = -numpy.inf
        return numpy.where(numpy.isfinite(other).any(axis=1, keepdims=True), other, rows)


def written(random, rows, temperature, change, count, past=()):
    """A text by the changed rows, or the rest of one: contexts, tokens, and how far each step is from its row."""
    past, contexts, far, rows = list(past), [], [], rows.astype(float)
    context, us = past[-1] if past else int(random.integers(len(rows))), random.random(count)
    honest, begun = softmax(rows / temperature), len(past)
    if change.kind in WINDOWED:
        counts = numpy.bincount(past[-change.window :] or [0], minlength=len(rows)) - (not past) * (numpy.arange(len(rows)) == 0)
        for u in us:
            law = softmax(WINDOWED[change.kind](rows[context], counts, change.much) / temperature)
            contexts.append(context)
            far.append(0.5 * numpy.abs(law - honest[context]).sum())
            context = min(int(law.cumsum().searchsorted(u, side="right")), int(numpy.flatnonzero(law)[-1]))
            past.append(context)
            counts[context] += 1
            if len(past) > change.window:
                counts[past[-change.window - 1]] -= 1
    else:
        tables = {}
        for first in {not past, False}:
            laws = softmax(change.rows(rows, first) / temperature)
            last = len(rows) - 1 - (laws[:, ::-1] > 0).argmax(axis=1)
            tables[first] = laws.cumsum(axis=1).tolist(), last.tolist(), (0.5 * numpy.abs(laws - honest).sum(axis=1)).tolist()
        for u in us.tolist():
            ends, last, moved = tables[not past]
            contexts.append(context)
            far.append(moved[context])
            context = min(bisect.bisect_right(ends[context], u), last[context])
            past.append(context)
    return [contexts, past[begun:], far]


def texts(random):
    rows, kind = table(random, 0.3, 4.0, int(random.integers(8, 65))), str(random.choice(KINDS))
    change, temperature = Departure(random, kind, len(rows)), float(random.choice([1.0, 1.0, 0.7, 1.3]))
    each = [written(random, rows, temperature, change, count) for count in lengths(random, 60, 800)]
    moved = numpy.mean(sum((one[2] for one in each), []))
    return kind, *judged(random, "text", temperature, kind == "honest", moved, [one[:2] for one in each], rows)


class Cells:
    """A law, and the numbers that draw each of its tokens: in the order of ids, or of falling mass."""

    def __init__(self, law, by_mass):
        self.law, self.order = law / law.sum(), numpy.argsort(-law, kind="stable") if by_mass else numpy.arange(len(law))
        self.ends = self.law[self.order].cumsum()
        self.high, self.low = numpy.empty((2, len(law)))
        self.high[self.order], self.low[self.order] = self.ends, numpy.append(0, self.ends[:-1])
        self.by_number = self.ends.tolist(), self.order.tolist(), len(law) - 1

    def at(self, u):
        ends, order, last = self.by_number
        return order[min(bisect.bisect_right(ends, u), last)]

    def within(self, low, high):
        """The law of the token whose number is even in [low, high)."""
        return numpy.clip(numpy.minimum(self.high, high) - numpy.maximum(self.low, low), 0, None) / max(high - low, 1e-300)


#: What a number is used for again; the number, of the draft's u, the coin c, the chance a and the draft's cell; and where it
#: then lies: u where the coin keeps the draft, or the number of a correction or bonus token. Without this it is honest.
COINS = {
    "fresh": (None, None, None),
    "coin from the draft's cell": ("coin", lambda u, c, a, low, high: (u - low) / (high - low), None),
    "correction from what the coin left": ("correction", lambda u, c, a, low, high: (c - a) / (1 - a), None),
    "bonus from what the coin left": ("bonus", lambda u, c, a, low, high: c / a, None),
    "coin is the draft's": ("coin", lambda u, *_: u, lambda a, low, high: [(0, a)]),
    "coin is 1 - the draft's": ("coin", lambda u, *_: 1 - u, lambda a, low, high: [(1 - a, 1)]),
    "coin is the draft's + 1/2": ("coin", lambda u, *_: (u + 0.5) % 1, lambda a, low, high: [(0.5, 0.5 + a), (0, a - 0.5)]),
    "correction has the coin": ("correction", lambda u, c, *_: c, lambda a, low, high: [(a, 1)]),
    "correction has the draft's": ("correction", lambda u, *_: u, lambda a, low, high: [(low, high)]),
    "bonus has the coin": ("bonus", lambda u, c, *_: c, lambda a, low, high: [(0, a)]),
    "bonus has the draft's": ("bonus", lambda u, *_: u, lambda a, low, high: [(low, high)]),
    "coin is the coin before": ("again", None, True),
    "draft has the draft's before": ("again", None, True),
}


def played(random, places, drafts, kind, count):
    """Rounds of one text with numbers as they are used: context, drafts, accepted and output of each position."""
    (used, number, _), chains, accepted, output = COINS[kind], [], [], []
    context = start = int(random.integers(len(places)))
    while len(output) < count:
        chain, here, coin, done = [], context, random.random(), []
        for _ in range(drafts):
            u = chain[0][1] if chain and kind == "draft has the draft's before" else random.random()
            here = places[here].q.at(u)
            chain.append((here, u))
        for x, u in chain:
            place = places[context]
            known = [u, None, *place.cells[x]]
            known[1] = number(*known) if used == "coin" else coin if kind == "coin is the coin before" else random.random()
            if known[1] >= known[2]:
                done.append(place.left.at(number(*known) if used == "correction" else random.random()))
                break
            done.append(x)
            context = x
        else:
            done.append(places[context].p.at(number(*known) if used == "bonus" else random.random()))
        context = done[-1]
        chains += [[x for x, _ in chain]] + [[-1] * drafts] * (len(done) - 1)
        accepted += [min(len(done) - 1, count - len(output))] + [-1] * (len(done) - 1)
        output += done
    return [start, *output][:count], chains[:count], accepted[:count], output[:count]


def step(place, kind, room):
    """The laws at a drafted place of what is kept, and of what comes instead; `room`: of a number that goes from place to place."""
    (used, _, ends), cells, drafted, chance = COINS[kind], place.cells, place.q.law, place.kept
    if kind == "draft has the draft's before":
        drafted = place.q.within(*room)
    elif kind == "coin is the coin before":
        chance = numpy.minimum(chance, room[1]) / room[1]
    elif used == "coin" and ends:
        inside = [sum(max(min(high, end) - max(low, begin), 0) for begin, end in ends(a, low, high)) for a, low, high in cells]
        chance = numpy.array(inside) / numpy.maximum(place.q.high - place.q.low, 1e-300)
    lost = drafted * (1 - chance)
    if used == "correction" and ends:
        return drafted * chance, sum(one * place.left.within(*ends(*cell)[0]) for one, cell in zip(lost, cells))
    return drafted * chance, lost.sum() * place.left.law


def distance(places, drafts, kind, contexts, output):
    """How far the law of each next token is from p, given the text alone: a filter of how far into a round it is."""
    if COINS[kind][0] == "again":
        return distance_by_rooms(places, drafts, kind, contexts, output)
    (used, _, ends), moved, weights, bonus, known = COINS[kind], [], [1.0] + [0.0] * drafts, (0.0, 1.0), {}
    goes_on = used == "bonus" and ends
    for context, y in zip(contexts, output):
        place = places[context]
        if context not in known:
            kept, instead = step(place, kind, bonus)
            known[context] = kept.tolist(), instead.tolist(), 0.5 * numpy.abs(kept + instead - place.p.law).sum()
        (kept, instead, far), share = known[context], sum(weights[:-1])
        law = place.p.within(*bonus) if goes_on and weights[-1] else place.p.law
        moved.append(0.5 * numpy.abs(weights[-1] * (law - place.p.law)).sum() if goes_on else share * far)
        after = [share * instead[y] + weights[-1] * law[y], *(weight * kept[y] for weight in weights[:-1])]
        weights = [weight / sum(after) for weight in after]
        if goes_on:
            bonus = ends(*place.cells[y])[0]
    return moved


def distance_by_rooms(places, drafts, kind, contexts, output):
    """The same where a number goes from place to place, so that the text before says where it lies."""
    whole, moved, known = [(0.0, 1.0)] * (drafts + 1), [], {}
    weights, rooms = numpy.eye(drafts + 1)[0], whole
    for context, y in zip(contexts, output):
        place, law, after, later = places[context], 0, numpy.zeros(drafts + 1), [*whole]
        for at in numpy.flatnonzero(weights > 0):
            kept, instead, (low, high) = 0 * place.p.law, place.p.law, rooms[at]
            if at < drafts:
                if (context, low, high) not in known:
                    known[context, low, high] = step(place, kind, (low, high))
                kept, instead = known[context, low, high]
                after[at + 1] = weights[at] * kept[y]
                (chance, *cell), whose = place.cells[y], kind == "coin is the coin before"
                later[at + 1] = (low, min(high, chance)) if whose else (max(low, cell[0]), min(high, cell[1]))
            law = law + weights[at] * (kept + instead)
            after[0] += weights[at] * instead[y]
        moved.append(0.5 * numpy.abs(law - place.p.law).sum())
        weights, rooms = after / after.sum(), later
    return moved


def pair(random, temperature):
    """Logits of a target and a draft, near it or not, and by context p, q, the residual, and the chance to keep a draft."""
    target, by_mass, places = table(random, 0.3, 4.0, int(random.integers(6, 25))), random.random() < 0.3, []
    draft = target + table(random, 0.2, 2.0, len(target))
    for p, q in zip(*(softmax(rows.astype(float) / temperature) for rows in (target, draft))):
        left, kept = numpy.maximum(p - q, 0), numpy.minimum(1, p / q)
        p, q, left = (Cells(law, by_mass) for law in (p, q, left if left.sum() > 1e-12 else p))
        cells = [*zip(kept.tolist(), q.low.tolist(), q.high.tolist())]  # of each draft: chance to be kept, and its numbers
        places.append(types.SimpleNamespace(p=p, q=q, left=left, kept=kept, cells=cells))
    return target, draft, places


def coins(random):
    drafts, kind, temperature = int(random.integers(1, 5)), str(random.choice(list(COINS))), float(random.choice([1.0, 1.0, 0.7, 1.3]))
    target, draft, places = pair(random, temperature)
    each = [played(random, places, drafts, kind, count) for count in lengths(random, 200, 3000)]
    moved = numpy.mean(sum((distance(places, drafts, kind, one[0], one[3]) for one in each), []))
    return kind, *judged(random, "token", temperature, COINS[kind][2] is None or moved < 1e-9, moved, each, target, draft)


def unlogged(random):
    drafts, kind, temperature = int(random.integers(1, 5)), str(random.choice(KINDS)), float(random.choice([1.0, 0.8]))
    target, draft, places = pair(random, temperature)
    share, ends, silent, parts, moved = random.choice([0.02, 0.1, 0.5, 0.9]), random.random() < 0.5, random.random() < 0.2, [], 0.0
    change, counts = Departure(random, kind, len(target)), lengths(random, 200, 3000)
    for number, count in enumerate(random.permutation(counts)):
        hidden = number < max(round(share * len(counts)), 1)
        logged = played(random, places, drafts, "fresh", round((1 - share) * count) if ends else 0 if hidden else count)
        last = max((at for at, kept in enumerate(logged[2]) if kept >= 0), default=0)
        if ends and logged[2] and len(logged[2]) - last == logged[2][last]:  # no end of a text cuts a round here
            logged = [column[:last] for column in logged]
        rest, tokens, far = written(random, target, temperature, change, count - len(logged[3]), logged[3])
        none, moved = len(tokens), moved + sum(far) / sum(counts)
        behind = (rest, [[-1] * drafts] * none, [-1] * none, [-1] * none if silent else tokens)
        parts.append([[*one, *other] for one, other in zip(logged, behind)])
    parts, moved = [parts[at] for at in random.permutation(len(parts))], 0 if silent else moved
    conclusion, wrong = judged(random, "token", temperature, kind == "honest" or silent, moved, parts, target, draft)
    lacks = sum(part[3].count(-1) for part in parts) / sum(counts)
    unseen = f"as claimed, and {lacks:.3f} of it was not looked at" if conclusion == "as-claimed" and lacks > 0.05 else None
    return ("silent, " if silent else "") + kind, conclusion, unseen or wrong

"""Plays an engine to a log, and sums the likelihood of what it does against the claim."""

import json
import pathlib
import sys
import types
import zipfile

import numpy

from laws import RULES, Claim, Laws, View, residual, same
from rows import softmax

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "conformance"))
import reference  # noqa: E402

IMPOSSIBLE = 69.0  # nats of an outcome that the claim gives no probability
PLACES = ("check", "correction", "bonus")


class Numbers:
    """Uniform numbers of a request: fresh, or the same again for each request, round or step."""

    def __init__(self, kind, random, seed):
        self.kind, self.random, self.seed = kind, random, seed

    def text(self):
        if self.kind != "fresh":
            fixed = self.seed + 1 if self.kind == "shared" else int(self.random.integers(1 << 60))
            self.random = numpy.random.default_rng(fixed)
            self.again = self.random.bit_generator.state

    def round(self):
        if self.kind in ("reset", "step"):
            self.random.bit_generator.state = self.again

    def one(self):
        return self.random.random()

    def noise(self, size):
        return -numpy.log(-numpy.log(self.random.random(size)))

    def draw(self, law, sampler, u=None):
        if sampler == "gumbel":
            noise = self.noise(law.size) if u is None else u
            return int((numpy.log(numpy.maximum(law, 1e-300)) + noise).argmax())
        u = self.one() if u is None else u
        if sampler == "mass":
            order = numpy.argsort(-law, kind="stable")
            return int(order[invert(law[order], u)])
        return invert(law, u)


def invert(law, u):
    ends = law.cumsum()
    place = int(ends.searchsorted(u * ends[-1], side="right"))
    return place if place < law.size else int(numpy.flatnonzero(law)[-1])


def cell(law, x):
    """Where the numbers lie that draw x, in the order of ids."""
    low = float(law[:x].sum())
    return low, low + float(law[x])


def meeting(law, low, high):
    """Of each token's cell, the share of [low, high) that lies in it."""
    ends = law.cumsum()
    inside = numpy.clip(numpy.minimum(ends, high) - numpy.maximum(ends - law, low), 0, None)
    return inside / max(high - low, 1e-300)


class Node:
    """The claimed and the played laws behind one prefix, and the law of what comes out."""

    def __init__(self, claimed, played, coupled):
        # Numbers that come again within a round couple drafts and outputs: no law of these is known.
        self.claimed, self.played, self.out = claimed, played, None if coupled else played.outputs()
        self.moved = None if self.out is None else 0.5 * float(numpy.abs(self.out - claimed.alone).sum())
        self.alone_moved = 0.5 * float(numpy.abs(played.alone - claimed.alone).sum())


class Play:
    """One engine on one source of rows, with one seed: at least `count` positions."""

    def __init__(self, engine, rows, seed=0):
        self.engine, self.rows = engine, rows
        self.random = numpy.random.default_rng([seed, *engine.name.encode()])
        self.coins = self.random  # of shares, widths and noise: never the request's own numbers
        self.numbers = Numbers(engine.numbers, self.random.spawn(1)[0], seed)
        self.allowed = None
        if engine.layout == "mask":
            self.allowed = numpy.random.default_rng(9).random(rows.target.shape) < 0.8
            self.allowed[:, 1] = True
        self.claim = Claim(rows, engine.temperature, engine.cuts, engine.order, self.allowed)
        self.change = engine.target(rows) if engine.of_rows else engine.target
        self.moves = getattr(self.change, "moves", False) or engine.noise > 0
        self.rule = RULES.get(engine.rule, RULES["token"])
        self.known, self.base, self.guesses = {}, {}, {}
        # By position: context, text, place, drafts, accepted, output, nats of the rule and of the output.
        self.steps, self.moved = [], []

    def play(self, count):
        play = {"siblings": self.siblings, "block": self.block, "carried": self.carried}.get(self.engine.player)
        self.text = -1
        while len(self.steps) < count:
            self.text += 1
            self.numbers.text()
            self.context, self.before = int(self.random.integers(len(self.rows.target))), None
            self.earlier = self.context
            self.past, self.counted, self.over = [], [], False
            self.carry = numpy.eye(self.engine.drafts)[0]
            outside = self.engine.layout == "outside" and self.text % 2 == 1
            while len(self.past) < min(self.engine.length, count) and not self.over:
                self.numbers.round()
                if play is not None:
                    play()
                else:
                    self.round(0 if self.engine.rule == "text" or outside else self.width(), outside)
                self.counted.append(self.past[-1])
        return self

    def width(self):
        most = self.engine.drafts
        return int(self.coins.integers(0, most + 1)) if self.engine.layout == "ragged" else most

    # What is known of a prefix.

    def noisy(self, logits):
        return logits + self.engine.noise * self.coins.normal(size=logits.size) if self.engine.noise else logits

    def claimed(self, context=None):
        context = self.context if context is None else context
        if context not in self.base:
            self.claim.context = context
            p, q = self.claim(self.rows.target[context]), self.claim.draft()
            draft, keep, replace = self.rule
            self.base[context] = Laws(draft(q) if draft else None, q, p, p, p, keep, replace)
        return self.base[context]

    def guess(self):
        """The law that a draft is drawn from here, and the q that the check asks for."""
        if self.engine.stale:
            before, here = self.claimed(self.earlier).asked, self.claimed().asked
            return before, before if self.engine.stale == "own" else here
        if self.context not in self.guesses or self.engine.noise:
            q, engine = self.claimed().asked, self.engine
            self.claim.context = self.context
            if engine.noise:
                logits = self.noisy(self.rows.draft[self.context]) / engine.temperature
                q = numpy.exp(logits - logits.max())
                q = q / q.sum()
            drafted = engine.draft(self.claim) if engine.draft else self.rule[0](q) if self.rule[0] else None
            self.guesses[self.context] = drafted, engine.asked(self.claim) if engine.asked else q
        return self.guesses[self.context]

    def node(self, guess, outside=False):
        if self.engine.layout == "odd texts":
            outside = self.text % 2 == 1
        key = (self.context, outside)
        if key not in self.known or self.moves or self.engine.stale:
            claimed, engine = self.claimed(), self.engine
            self.claim.context = self.context
            at = engine.at
            if "outside" in at:
                at = PLACES if outside else ()
            p = claimed.alone
            if at and (self.change is not same or engine.noise):
                logits = self.noisy(self.rows.target[self.context])
                p = self.change(View(self.claim, logits, self.past, self.counted, self.before))
            row = [p if place in at else claimed.alone for place in PLACES]
            draft, keep, replace = self.rule
            played = Laws(*guess, *row, engine.keep or keep, engine.replace or replace)
            self.known[key] = Node(claimed, played, engine.couple)
        return self.known[key]

    # What is logged.

    def commit(self, node, y, rule, alone=False, out=None):
        if node is not None:
            if alone and not self.engine.couple:
                law, moved = node.played.alone, node.alone_moved
            else:
                law, moved = node.out, node.moved
            out = None if law is None else self.nats(law[y], node.claimed.alone[y])
            self.moved.append(None if moved is None else self.engine.share * moved)
        self.steps.append((self.context, self.text, len(self.past), None, -1, y, rule, out))
        self.before = self.claimed().alone
        self.past.append(y)
        self.earlier, self.context = self.context, int(self.rows.follows[y])
        self.over = self.over or (self.engine.layout == "stop" and y % 16 == 3)

    def starts(self, start, drafts, accepted):
        drafts = list(drafts) + [-1] * (self.engine.drafts - len(drafts))
        head = self.steps[start]
        self.steps[start] = (*head[:3], drafts, min(accepted, len(self.steps) - start), *head[5:])

    def nats(self, played, claimed):
        """Of an outcome: the log-likelihood of the engine's mixture to the claim."""
        if claimed <= 0:
            return IMPOSSIBLE if played > 0 else 0.0
        share = self.engine.share
        return float(numpy.log(max(1 - share + share * played / claimed, 1e-30)))

    def broken(self, node):
        share = self.engine.share
        return node.played if share == 1 or self.coins.random() < share else node.claimed

    # Rules of one draft at a time.

    def round(self, width, outside):
        chain, chance = self.chain(width), 0.0
        start, accepted, coin = len(self.steps), 0, None
        for x, u, guess in chain:
            node = self.node(guess)
            laws = self.broken(node)
            kept, coin, chance, rule = self.step(node, laws, x, u)
            if not kept:
                break
            accepted += 1
            self.commit(node, x, rule)
            if self.over:
                break
        else:
            node = self.node(self.guess(), outside)
            self.commit(node, *self.alone(node, self.broken(node), coin, chance), alone=True)
        if accepted < len(chain) and not self.over:
            self.commit(node, *rule)
        if self.engine.rule != "text" and not outside:
            self.starts(start, [x for x, _, _ in chain], accepted)

    def chain(self, width):
        """The drafts of a round with their numbers and laws, each from the row behind the one before."""
        chain, here = [], (self.context, self.earlier)
        for _ in range(width):
            guess, u = self.guess(), None
            if self.engine.sampler != "gumbel":
                u = self.numbers.one()
            elif self.engine.couple == "target-has-draft":
                u = self.numbers.noise(guess[0].size)
            x = self.numbers.draw(guess[0], self.engine.sampler, u)
            chain.append((x, u, guess))
            self.earlier, self.context = self.context, int(self.rows.follows[x])
        self.context, self.earlier = here
        return chain

    def step(self, node, laws, x, u):
        """Whether x is kept, its coin and chance, and the nats; else what replaces it with the nats."""
        couple, claimed, played = self.engine.couple, node.claimed, node.played
        if couple == "target-has-draft":
            y = self.numbers.draw(laws.alone, self.engine.sampler, u)
            return (True, None, None, None) if y == x else (False, None, None, (y, None))
        a, share = float(laws.kept[x]), float(played.kept[x])
        if couple in ("coin-is-draft", "coin-mirrors-draft"):
            low, high = cell(laws.drafted, x)
            mirror = couple == "coin-mirrors-draft"
            coin = 1 - u if mirror else u
            begin, end = (1 - a, 1) if mirror else (0, a)
            share = max(min(high, end) - max(low, begin), 0) / max(high - low, 1e-300)
        else:
            coin = self.numbers.one()
        if coin < a:
            return True, coin, a, self.nats(played.drafted[x] * share, claimed.drafted[x] * claimed.kept[x])
        law = laws.replacement(x)
        if couple == "correction-has-coin":
            y, given = self.numbers.draw(law, "id", a + (coin - a)), meeting(law, a, 1)
        elif couple == "correction-has-draft":
            y, given = self.numbers.draw(law, "id", u), meeting(law, *cell(laws.drafted, x))
        else:
            y, given = self.numbers.draw(law, self.engine.sampler), played.replacement(x)
        mine = played.drafted[x] * (1 - share) * given[y]
        return False, coin, a, (y, self.nats(mine, claimed.drafted[x] * (1 - claimed.kept[x]) * claimed.replacement(x)[y]))

    def alone(self, node, laws, coin, chance):
        given = node.played.alone
        if self.engine.couple == "bonus-has-coin" and coin is not None:
            y, given = self.numbers.draw(laws.alone, "id", coin), meeting(laws.alone, 0, chance)
        else:
            y = self.numbers.draw(laws.alone, self.engine.sampler)
        return y, self.nats(given[y], node.claimed.alone[y])

    # Chains that are verified as a whole.

    def path(self):
        """A chain, and the claimed rows of target and draft at its places and behind it."""
        chain, here, rows = self.chain(self.engine.drafts), self.context, []
        for x in [*(x for x, _, _ in chain), None]:
            claimed = self.claimed()
            rows.append((claimed.alone, claimed.asked))
            self.context = self.context if x is None else int(self.rows.follows[x])
        self.context = here
        return chain, rows

    def whole(self, chain, rows, accepted, y):
        start = len(self.steps)
        nats = [self.nats(guess[0][x], q[x]) for (x, _, guess), (_, q) in zip(chain, rows)] + [0.0]
        drafts = [x for x, _, _ in chain]
        for place, token in enumerate([*drafts[:accepted], y]):
            self.commit(None, token, nats[place])
        self.starts(start, drafts, accepted)

    def block(self):
        chain, rows = self.path()
        weight, weights, accepted = 1.0, [1.0], 0
        for place, (x, _, _) in enumerate(chain):
            p, q = rows[place]
            weight = min(weight * p[x] / q[x], 1.0)
            weights.append(weight)
            p, q = rows[place + 1]
            over = numpy.maximum(weight * p - q, 0).sum()
            last = place + 1 == len(chain)
            if self.numbers.one() < (weight if last else over / max(over + 1 - weight, 1e-300)):
                accepted = place + 1
        p, q = rows[accepted]
        law = p if accepted == len(chain) else numpy.maximum(weights[accepted] * p - q, 0)
        self.whole(chain, rows, accepted, self.numbers.draw(law if law.sum() > 0 else p, "id"))

    def carried(self):
        chain, rows = self.path()
        vector = types.SimpleNamespace(
            target=[p for p, _ in rows], draft=[q for _, q in rows], carry=self.carry, drafts=[x for x, _, _ in chain]
        )
        coins = numpy.array([[self.numbers.one() for _ in chain]])
        accepted, y, carry = reference.carried_coins(vector, coins, numpy.array([self.numbers.one()]))
        self.carry = carry[0]
        self.whole(chain, rows, int(accepted[0]), int(y[0]))

    # Several drafts of one position.

    def siblings(self):
        claimed, engine, n = self.claimed(), self.engine, self.engine.drafts
        p, (drafted, q) = claimed.alone, self.guess()
        if engine.rule == "level-4":
            drafts = stratified(drafted, n, self.numbers)
            vector = types.SimpleNamespace(target=[p], draft=[q], drafts=drafts)
            y, rule = int(reference.level_4(vector, 1, int(self.coins.integers(1 << 60)))[0]), 0.0
        else:
            drafts, y, rule = self.in_turn(p, q, drafted, engine.rule == "rrs-wo")
        at = len(self.steps)
        self.commit(None, y, rule)
        self.steps[at] = (*self.steps[at][:3], drafts, None, *self.steps[at][5:])

    def in_turn(self, p, q, drafted, distinct):
        drafts, rule, law, left, asked, y = [], 0.0, drafted, p, q, None
        for _ in range(self.engine.drafts):
            x = self.numbers.draw(law, "id")
            drafts.append(x)
            rule += self.nats(law[x], asked[x])
            if y is None:
                own = min(1.0, left[x] / asked[x])
                chance = min(1.0, self.engine.keep(left, asked)[x]) if self.engine.keep else own
                if self.numbers.one() < chance:
                    y = x
                rule += self.nats(chance, own) if y == x else self.nats(1 - chance, 1 - own)
            if y is None:
                left = p if self.engine.couple == "truth-each" else residual(left, asked, x)
            if distinct:
                law, asked = law.copy(), asked.copy()
                law[x] = asked[x] = 0
                law, asked = law / law.sum(), asked / asked.sum()
        if y is None:
            law = self.engine.replace(p, q, x) if self.engine.replace else left
            y = self.numbers.draw(law, "id")
            rule += self.nats(law[y], left[y])
        return drafts, y, rule

    # Files.

    def save(self, path, count):
        """The first `count` positions as an .npz log."""
        engine, steps = self.engine, self.steps[:count]
        contexts = numpy.array([step[0] for step in steps])
        columns = {name: [step[at] for step in steps] for name, at in
                   (("prompt_id", 1), ("position", 2), ("output", 5), ("accepted", 4))}
        arrays = {"target_logits": self.rows.stored["target"][contexts]}
        arrays |= {name: numpy.array(columns[name], "i4") for name in ("prompt_id", "position", "output")}
        if engine.rule == "text" and "ensemble" in (engine.causes or {}):
            arrays["draft_logits"] = self.rows.stored["draft"][contexts]  # without them nothing can name it
        if engine.rule != "text":
            none = [-1] * engine.drafts
            arrays["draft_logits"] = self.rows.stored["draft"][contexts]
            arrays["drafts"] = numpy.array([none if step[3] is None else step[3] for step in steps], "i4")
            if engine.player != "siblings":
                arrays["accepted"] = numpy.array(columns["accepted"], "i4")
        if self.allowed is not None:
            arrays["allowed"] = self.allowed[contexts].astype("u1")
        if engine.seeds:
            text = arrays["prompt_id"]
            seeds = {"own": text, "equal": 0 * text + 7, "stream": 0 * text - 1}
            arrays["seed"] = seeds[engine.seeds]
        said = {"rows_from": "scoring" if engine.noise else "engine-raw", "temperature_applied": 1.0}
        said["sampling"] = {"temperature": engine.temperature, **engine.cuts}
        if engine.cuts and not engine.by_option:
            said["sampling"]["cut_order"] = engine.order
        if engine.layout == "processed":
            law = {context: numpy.log(self.base[context].alone + 1e-300) for context in set(contexts)}
            row = numpy.array([law[context] for context in contexts])
            arrays["target_logits"] = numpy.where(row < -600, -numpy.inf, row).astype("f4")
            if "draft_logits" in arrays:
                arrays["draft_logits"] = (arrays["draft_logits"] / engine.temperature).astype("f4")
            said = {"rows_from": "engine-processed", "temperature_applied": engine.temperature}
            said["sampling"] = {"temperature": engine.temperature}
        if engine.layout == "lists":
            said |= self.lists(arrays)
        if engine.layout == "groups":
            arrays["group"], said["groups"] = arrays["prompt_id"] % 2, ["chat", "code"]
        if engine.layout == "draft-row":
            arrays["draft_row"] = whole_chains(arrays)
            arrays["draft_logits"] = arrays["draft_logits"].copy()
            arrays["draft_logits"][arrays["draft_row"] == 0] = numpy.nan
        numpy.savez(path, **arrays)
        with zipfile.ZipFile(path, "a") as file:
            file.writestr("log.json", json.dumps(said))

    def lists(self, arrays, most=24):
        """Rows as lists of the target's likeliest tokens, with the mass of the others."""
        target, temperature = arrays["target_logits"].astype(float), self.engine.temperature
        ids = numpy.argsort(-target, axis=1, kind="stable")[:, :most]
        arrays["token_ids"] = ids.astype("i4")
        for model in ("target", "draft"):
            if f"{model}_logits" in arrays:
                whole = arrays[f"{model}_logits"]
                law = softmax(whole.astype(float) / temperature)
                arrays[f"{model}_logits"] = numpy.take_along_axis(whole, ids, 1)
                numpy.put_along_axis(law, ids, 0, 1)
                arrays[f"{model}_rest"] = law.sum(axis=1)[:, None]
        return {"vocabulary": self.rows.vocabulary, "rest_temperatures": [temperature], "top": {"target": most, "draft": 0}}

    def ideal(self, count, which):
        """Positions until the known law has won ln 1e6: in this play, else at its mean rate."""
        nats = [step[which] for step in self.steps]
        if any(one is None for one in nats):
            return None
        won = numpy.cumsum(nats)
        bound = numpy.log(1e6)
        if (won >= bound).any():
            return int((won >= bound).argmax()) + 1
        return int(len(won) * bound / won[-1]) if won[-1] > 1 else None

    def moved_mean(self):
        known = [moved for moved in self.moved if moved is not None]
        return float(numpy.mean(known)) if self.moved and len(known) == len(self.moved) else None


def whole_chains(arrays):
    """1 where a draft has a row: not behind chains that were all kept."""
    most, row = arrays["drafts"].shape[1], numpy.ones(len(arrays["accepted"]), "i4")
    whole = numpy.flatnonzero(arrays["accepted"] == most) + most
    row[whole[whole < len(row)]] = 0
    return row


def stratified(law, n, numbers):
    """Sure tokens, then a draft of each stratum, a token over a cut at most once."""
    sure, strata = reference.cut(law, n)
    over, ways = reference.ways(strata)
    way = ways[invert(numpy.array([chance for _, chance in ways]), numbers.one())][0]
    drafts = [int(x) for x in sure]
    for (tokens, shares), (left, right), kind in zip(strata, over, way):
        inside = shares.copy()
        inside[: int(left)] = 0
        inside[len(tokens) - int(right):] = 0
        at = {"left": 0, "right": len(tokens) - 1}.get(kind)
        drafts.append(int(tokens[invert(inside, numbers.one()) if at is None else at]))
    return drafts

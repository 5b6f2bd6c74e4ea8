"""Holds the laws that the ideal is computed from against what the engines do.

    $SPECGAP_PYTHON scripts/audit_matrix/tests.py
"""

import functools
import pathlib
import runpy
import unittest

import numpy

import engines
from play import Play, stratified
from rows import Rows, sampled

COUNT = 3000


def toy():
    random = numpy.random.default_rng(12)
    target = 1.5 * random.normal(size=(12, 12))
    return Rows("toy", target, target + random.normal(size=(12, 12)), numpy.arange(12))


TOY = toy()


@functools.cache
def played(name):
    engine = next(one for one in engines.all_engines() if one.name == name)
    return Recorded(engine, TOY).play(COUNT)


def nats(name):
    return numpy.array([step[6] for step in played(name).steps])


class Recorded(Play):
    """Keeps the law of each output that is known, with what came out."""

    def play(self, count):
        self.seen = []
        return super().play(count)

    def commit(self, node, y, rule, alone=False):
        law = None if node is None or self.engine.couple else node.played.alone if alone else node.out
        if law is not None:
            share = self.engine.share
            self.seen.append((self.context, y, share * law + (1 - share) * node.claimed.alone))
        super().commit(node, y, rule, alone)


def misfit(contexts, outputs, laws):
    """The largest z of a token behind a context, over those that are expected often enough."""
    worst = 0.0
    for context in numpy.unique(contexts):
        here = contexts == context
        expected, variance = laws[here].sum(axis=0), (laws[here] * (1 - laws[here])).sum(axis=0)
        found = numpy.bincount(outputs[here], minlength=laws.shape[1])
        assert (found[expected < 1e-9] == 0).all(), "an output that the law gives nothing"
        often = variance > 8
        worst = max(worst, (numpy.abs(found - expected)[often] / numpy.sqrt(variance[often])).max(initial=0))
    return worst


class Laws(unittest.TestCase):
    def test_outputs_follow_the_law_that_the_ideal_takes(self):
        held = 0
        for engine in engines.all_engines():
            if engine.numbers in ("step",) or engine.player != "chain":
                continue
            seen = played(engine.name).seen
            if not seen:
                self.assertTrue(engine.couple, engine.name)
                continue
            contexts, outputs, laws = map(numpy.array, zip(*seen))
            # Shared numbers make texts alike: no frequencies follow from the law of one.
            limit = 5.0 if engine.numbers == "fresh" else 1e9
            self.assertLess(misfit(contexts, outputs, laws), limit, engine.name)
            held += 1
        self.assertGreater(held, 120)

    def test_likelihood_is_that_of_what_is_played(self):
        # The mean of claim/played over outcomes of the play is the claim's mass of what can be played.
        for engine in engines.all_engines():
            if engine.numbers != "fresh" or engine.truth == "honest" or engine.player == "block":
                continue
            if engine.couple == "target-has-draft":  # its likelihood is not written down
                continue
            values = numpy.exp(-numpy.maximum(nats(engine.name), -30.0))
            error = values.std() / numpy.sqrt(values.size)
            self.assertLess(values.mean(), 1 + 5 * error + 1e-9, engine.name)

    def test_coupled_numbers_are_told_by_their_laws(self):
        for engine in engines.all_engines():
            if engine.couple not in ("", "target-has-draft") and engine.player == "chain":
                won = nats(engine.name)
                self.assertGreater(won.mean(), 3 * won.std() / numpy.sqrt(won.size), engine.name)

    def test_honest_engines_have_no_gain(self):
        for engine in engines.honest():
            if engine.noise == 0:
                self.assertEqual(numpy.abs(nats(engine.name)).max(), 0, engine.name)

    def test_rules_of_whole_chains_and_of_siblings_write_the_target(self):
        p = numpy.array([sampled(logits) for logits in TOY.target])
        for engine in engines.honest():
            if engine.player != "chain":
                steps = played(engine.name).steps
                contexts, outputs = (numpy.array([step[at] for step in steps]) for at in (0, 5))
                self.assertLess(misfit(contexts, outputs, p[contexts]), 5, engine.name)

    def test_strata_draft_as_often_as_the_law_says(self):
        law = sampled(TOY.draft[0])
        random = numpy.random.default_rng(0)
        numbers = type("Numbers", (), {"one": staticmethod(random.random)})
        drafts = numpy.array([stratified(law, 3, numbers) for _ in range(COUNT)])
        self.assertEqual({len(set(some)) for some in drafts.tolist()}, {3})
        # A draft of k strata has mass k q where that is at most 1.
        found = numpy.bincount(drafts.ravel(), minlength=law.size) / COUNT
        self.assertLess(numpy.abs(found - numpy.minimum(found_of(law, 3), 1)).max(), 0.035)

    def test_names_are_told_apart(self):
        names = [engine.name for engine in engines.all_engines()]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 90)
        self.assertEqual(set(engines.QUICK) - set(names), set())


def found_of(law, n):
    """The chance that each token is drafted: sure tokens, and n - |sure| times its share of the rest."""
    chance, sure = numpy.zeros_like(law), 0
    for x in numpy.argsort(-law):
        rest = law[chance < 1].sum()
        if sure < n - 1 and (n - sure) * law[x] >= rest:
            chance[x], sure = 1, sure + 1
    left = chance < 1
    chance[left] = (n - sure) * law[left] / law[left].sum()
    return chance


class Joined(unittest.TestCase):
    def test_runs_of_other_lengths_are_one(self):
        one = {"engine": "text", "rows": "made", "seed": 0, "ideal_outputs": None}
        runs = [one | {"count": 5000, "first": 5000, "ideal": 90}, one | {"count": 200, "ideal": None}, one | {"count": 1000, "first": 1000, "ideal": 80}]
        command = runpy.run_path(str(pathlib.Path(__file__).with_name("__main__.py")))
        first, *others = command["joined"](runs)
        self.assertEqual((first["count"], first["first"], first["ideal"]), (200, 1000, 90))
        self.assertEqual([one["count"] for one in others if "first" not in one], [1000, 5000])


class Orders(unittest.TestCase):
    def test_orders_of_cuts(self):
        logits = numpy.log([0.35, 0.25, 0.2, 0.05, 0.05, 0.05, 0.05])
        kept = {}
        for order in ("k,p,m", "joint"):
            kept[order] = int((sampled(logits, 1.0, {"top_k": 4, "top_p": 0.82}, order) > 0).sum())
        self.assertEqual(kept, {"k,p,m": 3, "joint": 4})
        # SGLang's plain sampler cuts by top-k first only where there is a min-p.
        for cuts, count in (({}, 4), ({"min_p": 0.01}, 3)):
            law = sampled(logits, 1.0, {"top_k": 4, "top_p": 0.82, **cuts}, "sglang")
            self.assertEqual(int((law > 0).sum()), count)
        # vLLM's min-p comes before its top-p: of .35, .25 and .2 the first two have three quarters.
        kept = [sampled(logits, 1.0, {"min_p": 0.5, "top_p": 0.7}, tool) for tool in ("vllm", "transformers")]
        self.assertEqual([int((law > 0).sum()) for law in kept], [2, 3])
        warm = sampled(logits, 2.0, {"top_p": 0.5}, "k,p,m,T")
        self.assertEqual(int((warm > 0).sum()), 2)
        self.assertAlmostEqual(warm[0] / warm[1], (0.35 / 0.25) ** 0.5)


if __name__ == "__main__":
    unittest.main()

"""Verifiers of one's own: laws summed over all outcomes, and simulated ones."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specgap as sg
from specgap import adapters, rules

from .conftest import Ran

P = np.array([0.5, 0.3, 0.2])
Q = np.array([0.2, 0.2, 0.6])

LOSSLESS = [
    (rules.token, 1, "with-replacement", "token"),
    (rules.rrs, 2, "with-replacement", "rrs"),
    (rules.rrs, 3, "with-replacement", "rrs"),
    (rules.rrs_wo, 2, "without-replacement", "rrs-wo"),
    (rules.k_seq, 2, "with-replacement", None),
    (rules.one_hot, 2, "top", None),
    (rules.exact_match, 2, "with-replacement", "exact-match"),
    (rules.exact_match, 2, "without-replacement", "exact-match"),
]
#: Rows on which p/q is a little below 1 somewhere.
NEAR = np.array([0.6, 0.3, 0.1])
LOSSY = [
    (rules.typical, 2, "with-replacement", Q),
    (rules.lenient, 2, "with-replacement", NEAR),
    (rules.residual_of_target, 1, "with-replacement", Q),
    (rules.subtracts_drafted, 1, "with-replacement", Q),
    (rules.rrs_on_distinct, 2, "without-replacement", Q),
]


@pytest.mark.parametrize(("rule", "n", "scheme", "name"), LOSSLESS)
def test_public_rules_are_lossless_and_accept_what_the_crate_says(
    rule: Any, n: int, scheme: Any, name: Any
) -> None:
    found = sg.evaluate(rule, P, Q, n, scheme)
    assert found.exact and found.lossless == "exact" and found.total_variation < 1e-12
    assert found.counterexample is None and found.witness is None
    best = sg.alpha(P, Q, n, scheme)
    assert found.optimal_acceptance[0] == pytest.approx(best.value, abs=1e-12)
    assert found.gap[0] > -1e-12
    if name is not None:
        mine = sg.acceptance(name, P, Q, n, scheme).value
        assert found.acceptance[0] == pytest.approx(mine, abs=1e-12)


def test_one_noise_is_the_law_that_the_crate_knows() -> None:
    rows = [([0.5, 0.3, 0.2], [0.2, 0.2, 0.6]), ([0.1, 0.0, 0.6, 0.3], [0.4, 0.3, 0.3, 0.0])]
    runs, rng = 40_000, np.random.default_rng(3)
    for p, q in (np.array(pair) for pair in rows):
        tokens, sets = np.zeros(len(p)), np.zeros(len(q))
        for n in (1, 2):
            kept = 0
            for _ in range(runs):
                noise = rng.exponential(size=len(p))
                drafts, token, slot = rules.shared_gumbel(p, q, noise, n)
                assert len(set(drafts)) == n and (slot is None) == (token not in drafts)
                assert slot is None or drafts[slot] == token
                assert rules.shared_gumbel(p, p, noise, n)[2] == 0
                kept += slot is not None
                tokens[token] += 1
                sets[drafts[0]] += 1
            rate = sg.acceptance("shared-gumbel", p, q, n)
            assert rate.scheme == "without-replacement" and float(rate.upper - rate.lower) < 1e-10
            # 4.5 standard errors, as all below: false-positive rate 7e-6 a number.
            error = np.sqrt(rate.value * (1 - rate.value) / runs)
            assert abs(kept / runs - rate.value) < 4.5 * error
        for seen, law in ((tokens, p), (sets, q)):
            assert np.all(abs(seen / (2 * runs) - law) <= 4.5 * np.sqrt(law * (1 - law) / (2 * runs)))
    # As many drafts as there are.
    assert rules.shared_gumbel(p, q, np.ones(4), 4)[0] == [0, 1, 2]
    by_hand = [sg.acceptance("shared-gumbel", P, Q, n).value for n in (1, 2, 3)]
    assert by_hand == pytest.approx([49 / 85, 1289 / 1380, 1.0], abs=1e-12)


def test_a_noise_for_each_draft_is_the_law_that_the_crate_knows() -> None:
    p, q, runs, n = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6]), 40_000, 2
    rng, kept, tokens = np.random.default_rng(4), 0, np.zeros(3)
    for _ in range(runs):
        noise = rng.exponential(size=(n, 3))
        drafts, token, slot = rules.gls(p, q, noise)
        assert drafts == [rules.shared_gumbel(p, q, own, 1)[0][0] for own in noise]
        assert (slot is None) == (token not in drafts) and rules.gls(p, p, noise)[2] is not None
        kept += slot is not None
        tokens[token] += 1
    rate = sg.acceptance("gls", p, q, n)
    assert rate.scheme == "with-replacement" and rate.value == pytest.approx(19682 / 26775, abs=1e-6)
    assert abs(kept / runs - rate.value) < 4.5 * np.sqrt(rate.value * (1 - rate.value) / runs)
    assert np.all(abs(tokens / runs - p) <= 4.5 * np.sqrt(p * (1 - p) / runs))
    assert sg.acceptance("gls", p, q, 1).value == pytest.approx(49 / 85, abs=1e-6)


@pytest.mark.parametrize(("rule", "n", "scheme", "q"), LOSSY)
def test_lossy_rules_are_refuted_and_the_command_line_refutes_them_too(
    rule: Any, n: int, scheme: Any, q: Any, tmp_path: Path, command: Callable[..., Ran]
) -> None:
    path = tmp_path / "counterexample.json"
    found = sg.evaluate(rule, P, q, n, scheme, counterexample=path)
    assert found.exact and found.lossless == "refuted"
    assert found.total_variation > 1e-3
    assert found.witness is not None and len(found.witness[0]) == n
    problem = json.loads(path.read_text())
    assert len(problem["target"]) <= 3 and problem["drafts"] <= n
    ran = command("verify", path, "--format", "json")
    assert ran.code == 1, ran.err
    verified = ran.json["rule"]
    assert verified["lossless"] is False and verified["name"] == rule.__name__
    small = sg.evaluate(
        rule,
        [_number(x) for x in problem["target"]],
        [_number(x) for x in problem["draft"]["q"]],
        problem["drafts"],
        scheme,
    )
    assert verified["total_variation"] == pytest.approx(small.total_variation, abs=1e-12)
    assert verified["membership_acceptance"] == pytest.approx(small.acceptance[0], abs=1e-12)
    # The file's problem is one for every other verifier, too.
    assert sg.solve(path).ok


def _number(text: str) -> float:
    over, _, under = text.partition("/")
    return float(over) / float(under or 1)


def test_a_wrong_rule_for_the_drafts_is_found_on_the_right_ones_alone() -> None:
    assert sg.evaluate(rules.rrs, P, Q, 2, "with-replacement").lossless == "exact"
    assert sg.evaluate(rules.rrs, P, Q, 2, "without-replacement").lossless == "refuted"


def test_all_three_ways_to_draw_are_explored() -> None:
    def by_branch(p: Any, q: Any, drafts: Any, rng: sg.Branching) -> Any:
        x = drafts[0]
        if rng.branch(min(1.0, p[x] / q[x])):
            return int(x), 0
        left = np.maximum(p - q, 0)
        return rng.choice(len(p), p=left / left.sum()), None

    def by_uniforms(p: Any, q: Any, drafts: Any, rng: sg.Branching) -> Any:
        x = drafts[0]
        if q[x] * rng.random() <= p[x]:
            return x
        left = np.maximum(p - q, 0)
        u = rng.random() * left.sum()
        for token, end in enumerate(np.cumsum(left)):
            if u < end:
                return token
        return len(p) - 1

    def by_law(p: Any, q: Any, drafts: Any, rng: sg.Branching) -> Any:
        x = drafts[0]
        kept = min(1.0, p[x] / q[x])
        left = np.maximum(p - q, 0)
        law = (1 - kept) * left / left.sum()
        law[x] += kept
        return law

    found = [sg.evaluate(rule, P, Q) for rule in (by_branch, by_uniforms, by_law)]
    for one in found:
        assert one.exact and one.lossless == "exact"
        assert one.acceptance[0] == pytest.approx(np.minimum(P, Q).sum(), abs=1e-12)
    assert found[0].algorithmic_acceptance == pytest.approx(0.6, abs=1e-12)
    assert np.isnan(found[1].algorithmic_acceptance)
    assert found[1].to_dict()["algorithmic_acceptance"] is None


def test_comparisons_of_one_number_are_explored_together() -> None:
    def thrice(p: Any, q: Any, drafts: Any, rng: sg.Branching) -> Any:
        u = rng.random()
        # 1 - u is as even as u is, and what is known of u stays known.
        if u < 0.25:
            assert not u > 0.5
            return 0
        return 1 if 1 - u > 0.5 else 2

    found = sg.evaluate(thrice, [0.25, 0.25, 0.5], [1 / 3] * 3)
    assert found.exact and found.lossless == "exact"


def simulated(p: Any, q: Any, drafts: Any, rng: Any) -> Any:
    """Speculative sampling that inverts a distribution function."""
    x = drafts[0]
    if rng.uniform() * q[x] < p[x]:
        return x, 0
    left = np.cumsum(np.maximum(p - q, 0))
    return int(np.searchsorted(left, rng.uniform() * left[-1], side="right")), None


def biased(p: Any, q: Any, drafts: Any, rng: Any) -> Any:
    """The same, which draws its correction from p."""
    x = drafts[0]
    if rng.uniform() * q[x] < p[x]:
        return x, 0
    return int(np.searchsorted(np.cumsum(p), rng.uniform(), side="right")), None


def test_what_cannot_be_explored_is_simulated() -> None:
    found = sg.evaluate(simulated, P, Q, samples=20_000)
    assert not found.exact and found.reason == "it calls rng.uniform"
    assert found.lossless == "not refuted"
    low, high = found.acceptance[1:]
    # 5% of seeds; this one is fixed.
    assert low < np.minimum(P, Q).sum() < high and high - low < 0.03
    assert found.e_value is not None and found.e_value < 1e6
    assert found.smallest_tv_excluded is not None and 0.01 < found.smallest_tv_excluded < 0.1
    assert "not refuted" in str(found)


@pytest.mark.parametrize(
    "use",
    [
        lambda u, rng: np.array(u),
        lambda u, rng: np.searchsorted(np.cumsum(P), u),
        lambda u, rng: np.cumsum(P) > u,
        lambda u, rng: np.cumsum(P) - u,
        lambda u, rng: np.log(u),
        lambda u, rng: np.less(u, 0.5),
        lambda u, rng: pytest.importorskip("torch").tensor(u),
        lambda u, rng: pytest.importorskip("torch").tensor(P) > u,
        lambda u, rng: -u,
        lambda u, rng: abs(u - 0.5),
        lambda u, rng: round(u),
        lambda u, rng: u // 0.1,
        lambda u, rng: f"{u:.3f}",
        lambda u, rng: u.item() if hasattr(u, "item") else math.floor(u),
        lambda u, rng: rng.random(3),
        lambda u, rng: rng.choice(3, size=1),
    ],
)
def test_a_rule_that_computes_with_its_draw_is_simulated(use: Callable[..., Any]) -> None:
    def rule(p: Any, q: Any, drafts: Any, rng: Any) -> Any:
        use(rng.random(), rng)
        return rng.choice(3, p=p)

    found = sg.evaluate(rule, P, Q, samples=2_000)
    assert not found.exact and "rng." in str(found.reason) and found.lossless == "not refuted"


def test_a_mistake_beside_a_draw_is_told() -> None:
    def rule(p: Any, q: Any, drafts: Any, rng: Any) -> Any:
        return len(rng) if rng.random() < 0.5 else 0

    with pytest.raises(TypeError, match="has no len"):
        sg.evaluate(rule, P, Q)
    with pytest.raises(ValueError, match="p has 1 weights for 3 tokens"):
        sg.evaluate(lambda p, q, drafts, rng: rng.choice(3, 1), P, Q)


def test_a_simulated_rule_is_refuted_with_a_counterexample(
    tmp_path: Path, command: Callable[..., Ran]
) -> None:
    path = tmp_path / "counterexample.json"
    found = sg.evaluate(biased, P, Q, counterexample=path)
    assert found.lossless == "refuted" and found.refuted_after is not None
    assert found.refuted_after < 5_000
    true = 0.5 * np.abs(np.minimum(P, Q) + (1 - np.minimum(P, Q).sum()) * P - P).sum()
    assert 0.5 * true < found.total_variation <= true
    ran = command("verify", path, "--format", "json")
    assert ran.code == 1
    assert "frequencies of" in ran.json["rule"]["name"]


def test_an_honest_rule_is_hardly_ever_refuted() -> None:
    # At level 0.05, 60 runs have 3 false alarms at most on average; 12 or more have a
    # probability below 1e-4, and the seeds are fixed.
    rng = np.random.default_rng(0)
    alarms = 0
    for seed in range(60):
        p, q = rng.dirichlet(np.ones(20), 3), rng.dirichlet(np.ones(20), 3)
        found = sg.evaluate(simulated, p, q, samples=400, alpha=0.05, seed=seed)
        alarms += found.lossless == "refuted"
    assert alarms < 12


def test_rows_of_a_full_vocabulary_are_simulated_beside_their_optimum() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.full(2000, 0.05), 4), rng.dirichlet(np.full(2000, 0.05), 4)
    found = sg.evaluate(rules.rrs, p, q, 3, samples=4_000)
    assert not found.exact and found.reason is not None and "too many" in found.reason
    mine = sg.acceptance("rrs", p, q, 3).value.mean()
    assert found.acceptance[1] < mine < found.acceptance[2]
    assert found.optimal_acceptance[0] == pytest.approx(sg.alpha(p, q, 3).value.mean())
    assert found.gap[1] < found.gap[0] < found.gap[2]


def test_a_rule_with_random_numbers_of_its_own_is_found_out() -> None:
    def hidden(p: Any, q: Any, drafts: Any, rng: sg.Branching) -> Any:
        return int(np.random.choice(len(p), p=p))

    np.random.seed(0)
    found = sg.evaluate(hidden, P, Q, samples=2_000)
    assert not found.exact and found.reason == "it draws from random numbers of its own"
    assert found.lossless == "not refuted"


def test_what_a_verifier_may_not_return() -> None:
    for value, message in [
        (7, "tokens are 0 to 2"),
        (0.5, "tokens are 0 to 2"),
        ("x", "the verifier returned 'x'; tokens are 0 to 2"),
        (None, "the verifier returned None; tokens are 0 to 2"),
        ((0, 3), "drafts are 0 to 0"),
        ((0, 1, 2), "a tuple of 3"),
        (np.array([0.5, 0.2, 0.1]), "sums to 0.8"),
        (np.array([0.5, 0.5]), "a law has 3 entries"),
    ]:
        with pytest.raises(ValueError, match=message):
            sg.evaluate(lambda *_, value=value: value, P, Q)
    with pytest.raises(TypeError, match="give a function of .p, q, drafts, rng.; this is str"):
        sg.evaluate("rrs", P, Q)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="probability is nan"):
        sg.evaluate(lambda p, q, drafts, rng: int(rng.branch(np.nan)), P, Q)
    with pytest.raises(ValueError, match="no counterexample"):
        sg.evaluate(rules.token, P, Q).save("nowhere.json")


def test_a_result_reads_as_text_and_data() -> None:
    found = sg.evaluate(rules.typical, P, Q, 2)
    assert "NO: TV" in str(found) and "counterexample" in str(found)
    assert found._repr_html_().startswith("<pre>")
    data = found.to_dict()
    assert data["lossless"] == "refuted" and data["counterexample"]["schema"] == 1


# --- Public signatures --------------------------------------------------------------------------


def test_siblings_that_return_a_residual() -> None:
    def accept_step(p: Any, q: Any, drafts: Any) -> Any:
        for slot, x in enumerate(drafts):
            if np.random.random() * q[x] < p[x]:
                return slot, None
            p = np.maximum(p - q, 0)
            p = p / p.sum()
        return None, p

    found = sg.evaluate(adapters.accept_step(accept_step), P, Q, 2, samples=6_000)
    assert found.lossless == "not refuted"
    assert found.acceptance[1] < sg.acceptance("rrs", P, Q, 2).value < found.acceptance[2]


torch_only = pytest.mark.skipif(
    not __import__("importlib.util").util.find_spec("torch"), reason="torch is not installed"
)


@torch_only
def test_a_posterior_over_siblings() -> None:
    import random

    import torch

    def evaluate_posterior(logits: Any, candidates: Any, processor: Any) -> Any:
        # Siblings are kept with what is left of p at them, as if each had been certain.
        left = torch.softmax(processor(None, logits[0, 0]), -1)
        for slot, x in enumerate(candidates[:, 1]):
            if random.random() <= left[x]:
                return torch.tensor(slot), 1, left
            left[x] = 0
            left = left / left.sum()
        return torch.tensor(0), 0, left

    rule = adapters.evaluate_posterior(evaluate_posterior)
    found = sg.evaluate(rule, P, Q, 2, "top", samples=4_000)
    assert found.lossless == "not refuted"
    assert found.acceptance[1] < sg.alpha(P, Q, 2, "top").value < found.acceptance[2]


@torch_only
def test_the_function_of_transformers() -> None:
    utils = pytest.importorskip("transformers.generation.utils")
    rule = adapters.transformers(utils._speculative_sampling)
    found = sg.evaluate(rule, P, Q, samples=3_000)
    assert found.lossless == "not refuted"
    assert found.acceptance[1] < np.minimum(P, Q).sum() < found.acceptance[2]


@torch_only
def test_the_signatures_of_kernels() -> None:
    import torch

    def chain(draft_probs: Any, draft_token_ids: Any, target_probs: Any) -> Any:
        x = int(draft_token_ids[0, 0])
        p, q = target_probs[0, 0], draft_probs[0, 0]
        if torch.rand(()) * q[x] < p[x]:
            return torch.tensor([[x, int(torch.multinomial(target_probs[0, 1], 1))]]), None
        left = torch.clamp(p - q, min=0)
        return torch.tensor([[int(torch.multinomial(left, 1)), -1]]), None

    def rejection_sample(
        draft_token_ids: Any, num_draft_tokens: Any, max_spec_len: int, cu: Any,
        draft_probs: Any, logits: Any, bonus: Any, metadata: Any,
    ) -> Any:  # fmt: skip
        target = torch.softmax(logits, -1)
        rows = torch.stack([target[0], target[0]])[None]
        out, _ = chain(draft_probs[None], draft_token_ids[None], rows)
        return out

    for rule in (
        adapters.chain_speculative_sampling(chain),
        adapters.rejection_sample(rejection_sample),
    ):
        found = sg.evaluate(rule, P, Q, samples=3_000)
        assert found.lossless == "not refuted"
        assert found.acceptance[1] < np.minimum(P, Q).sum() < found.acceptance[2]
        with pytest.raises(ValueError, match="n is 1"):
            sg.evaluate(rule, P, Q, 2, samples=10)


def test_small_problems_of_every_law_are_summed() -> None:
    rng = np.random.default_rng(2)
    laws: Any = ("with-replacement", "without-replacement", "greedy")
    for scheme, n in itertools.product(laws, (1, 2)):
        p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        found = sg.evaluate(rules.exact_match, p, q, n, scheme)
        assert found.lossless == "exact"
        assert found.acceptance[0] == pytest.approx(
            sg.acceptance("exact-match", p, q, n, scheme).value, abs=1e-10
        )


def test_a_simulation_tells_how_far_it_is_and_stops_when_told_to() -> None:
    p = np.full(300, 1 / 300)
    seen: list[tuple[int, int | None]] = []
    sg.evaluate(rules.rrs, p, p, 4, samples=500, progress=lambda *at: seen.append(at))
    assert seen[0] == (0, 500) and seen[-1] == (500, 500) and len(seen) > 5

    def stop(done: int, total: int | None) -> None:
        if done > 100:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sg.evaluate(rules.rrs, p, p, 4, samples=500_000, progress=stop)


def test_a_rule_that_loops_until_a_coin_falls_is_simulated() -> None:
    def loop(p: Any, q: Any, drafts: Any, rng: Any) -> int:
        while True:
            if rng.branch(0.5):
                return int(rng.choice(3, p=p))

    found = sg.evaluate(loop, [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], n=2, samples=2000)
    assert not found.exact and "more than 1,000 decisions" in str(found)
    assert found.lossless == "not refuted"
    # So does one of which each run goes one round further than the last: all would take hours.
    def rejects(p: Any, q: Any, drafts: Any, rng: Any) -> int:
        while True:
            y = int(rng.choice(2, p=q))
            if rng.branch(p[y] / (2 * q[y])):
                return y

    found = sg.evaluate(rejects, [1.0, 0.0], [0.5, 0.5], n=1, samples=2000)
    assert not found.exact and found.lossless == "not refuted"
    # So does one that ends after ten coins at most, which is summed.
    def ends(p: Any, q: Any, drafts: Any, rng: Any) -> int:
        for _ in range(10):
            if rng.branch(0.5):
                break
        return int(rng.choice(3, p=p))

    assert sg.evaluate(ends, [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], n=1).lossless == "exact"


def test_a_rule_with_numbers_of_its_own_is_not_refuted_for_one_draw_of_them() -> None:
    # It keeps 14 drafts in 15: the same outcome seven times is no rare thing.
    p, q = np.array([0.5, 0.5]), np.array([15 / 29, 14 / 29])
    for seed in range(20):
        own = np.random.default_rng(seed)

        def token(p: Any, q: Any, drafts: Any, rng: Any) -> int:
            x = int(drafts[0])
            left = np.maximum(p - q, 0)
            return x if own.random() < p[x] / q[x] else int(np.argmax(left))

        found = sg.evaluate(token, p, q, n=1, samples=2000)
        assert found.lossless == "not refuted", (seed, found)


def test_a_rule_that_counts_its_calls_is_not_exact() -> None:
    calls = itertools.count()

    def alternates(p: Any, q: Any, drafts: Any, rng: Any) -> int:
        # Two runs explore a tuple, the first of them the coin that falls badly: as if it were looked at.
        rng.branch(2 / 3)
        return int(drafts[0]) if next(calls) % 2 else 0

    found = sg.evaluate(alternates, [0.5, 0.5], [0.25, 0.75], n=1, samples=5000)
    assert not found.exact and found.lossless == "refuted"


@pytest.mark.parametrize("tolerance", [float("nan"), float("inf"), -1.0, 1.0])
def test_tolerances_that_are_none_are_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance is .*; it is a total variation"):
        sg.evaluate(lambda p, q, drafts, rng: drafts[0], [0.5, 0.5], [0.75, 0.25], tolerance=tolerance)


def test_a_small_distance_is_none_of_zero() -> None:
    def off(p: Any, q: Any, drafts: Any, rng: Any) -> Any:
        return np.array([p[0] + 1e-6, p[1] - 1e-6])

    assert "NO: TV 1.0e-06" in str(sg.evaluate(off, [0.5, 0.5], [0.75, 0.25]))

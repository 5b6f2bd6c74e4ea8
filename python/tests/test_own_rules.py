"""Rules of one's own: summed exactly on rows, measured on logs, and beside named ones in reports."""

from __future__ import annotations

import functools
import itertools
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import specgap as sg

from .conftest import prompted
from specgap import rules
from specgap._simulated import Simulated

Floats = NDArray[np.float64]

PROMPTS, EACH, V = 12, 5, 50
#: Student's t with 11 degrees of freedom, at 97.5%; of a table.
T_11 = 2.2009851600916384


def slack(amount: float) -> Callable[[Floats, Floats, int, int], tuple[Floats, Floats]]:
    """Recursive rejection that keeps less the more drafts are left: 0 is recursive rejection."""

    def step(p: Floats, q: Floats, i: int, n: int) -> tuple[Floats, Floats]:
        factor = 1.0 + amount * 0.3 * (n - 1 - i) / max(n - 1, 1)
        keep = np.where(q > 0, np.minimum(1.0, p / (factor * q)), 0.0)
        left = np.maximum(p - q * keep, 0.0)
        total = left.sum()
        return keep, left / total if total > 0 else p

    return step


def corrects_from_p(p: Floats, q: Floats, i: int, n: int) -> Floats:
    """A bug: what is put out at last is drawn from p, and not from what is left of it."""
    return p if i == n else np.minimum(1.0, p / q)


EXACT = sg.Sequential(slack(0.0), name="slack-0", lossless=True)
LESS = sg.Sequential(slack(1.0), name="slack-1", words="keeps less at first")
WRONG = sg.Sequential(corrects_from_p, name="wrong")


@pytest.fixture(scope="module")
def arrays() -> dict[str, Any]:
    return prompted(3, PROMPTS, EACH, V)


def rows(arrays: dict[str, Any], temperature: float = 1.0) -> tuple[Floats, Floats]:
    def softmax(logits: Floats) -> Floats:
        powers = np.exp(logits / temperature)
        return powers / powers.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]

    return softmax(arrays["target_logits"]), softmax(arrays["draft_logits"])


def cells(report: sg.Report, scheme: str = "with-replacement") -> list[dict[str, Any]]:
    return [cell for cell in report.to_dict()["cells"] if cell["scheme"] == scheme]


def verifier(cell: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [row for row in cell["verifiers"] if row["name"] == name]
    return found  # type: ignore[no-any-return]


def _called(rule: sg.Sequential, *given: Any) -> Floats:
    """A rule as a function of (p, q, drafts, rng), of which nothing else is known."""
    return rule(*given)


# On rows.


def test_sums_are_those_of_every_tuple_in_fractions() -> None:
    rng = np.random.default_rng(5)
    for trial in range(20):
        n, size = 1 + trial % 3, 3
        whole = rng.integers(0, 7, size=(2 + 2 * n, size))
        whole[:, 0] += 1
        p, q, residual = ([Fraction(int(x), int(row.sum())) for x in row] for row in whole[:3])
        keeps = [[Fraction(int(x), 7) for x in rng.integers(0, 8, size=size)] for _ in range(n)]
        output, algorithmic, membership = [Fraction(0)] * size, Fraction(0), Fraction(0)
        for drafts in itertools.product(range(size), repeat=n):
            chance = math.prod((q[x] for x in drafts), start=Fraction(1))
            for i, x in enumerate(drafts):
                output[x] += chance * keeps[i][x]
                algorithmic += chance * keeps[i][x]
                membership += chance * keeps[i][x]
                chance *= 1 - keeps[i][x]
            for x in range(size):
                output[x] += chance * residual[x]
                membership += chance * residual[x] * (x in drafts)

        def floats(row: list[Fraction]) -> Floats:
            return np.array([float(x) for x in row])

        def step(p: Floats, q: Floats, i: int, n: int) -> Floats:
            return floats(residual if i == n else keeps[i])

        found = sg.Sequential(step).law(floats(p), floats(q), n)
        assert np.abs(found.output - floats(output)).max() < 4e-16
        assert abs(found.algorithmic - float(algorithmic)) < 4e-16
        assert abs(found.membership - float(membership)) < 4e-16
        away = sum(abs(a - b) for a, b in zip(output, p)) / 2
        assert abs(found.total_variation - float(away)) < 4e-16
        # And by the other way there is: every tuple, given which a law is returned.
        rule = sg.Sequential(step)
        listed = sg.evaluate(functools.partial(_called, rule), floats(p), floats(q), n)
        assert abs(listed.acceptance[0] - float(membership)) < 4e-15


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_without_slack_it_is_recursive_rejection(arrays: dict[str, Any], n: int) -> None:
    p, q = rows(arrays)
    named = sg.acceptance("rrs", p, q, n).value
    found = EXACT.law(p, q, n)
    assert np.abs(found.membership - named).max() < 1e-14
    # What recursive rejection puts out at last is none of the drafts.
    assert np.abs(found.membership - found.algorithmic).max() < 1e-15
    assert found.total_variation.max() < 1e-15
    less = LESS.law(p, q, n).membership
    best = sg.alpha(p, q, n).value
    assert (less <= best + 1e-14).all()
    if n > 1:
        assert named.mean() < less.mean() < best.mean()
    one = sg.evaluate(EXACT, p, q, n)
    assert one.exact and one.lossless == "exact" and one.vocabulary == V
    assert abs(one.acceptance[0] - named.mean()) < 1e-14


def test_rows_at_once_are_rows_one_by_one(arrays: dict[str, Any]) -> None:
    p, q = rows(arrays)
    q[3] = p[3]

    def step(p: Floats, q: Floats, i: int, n: int) -> tuple[Floats, Floats]:
        left = np.maximum(p - q, 0.0)
        return np.minimum(1.0, p / q), left / left.sum(axis=-1, keepdims=True)

    at_once = sg.Sequential(step, rows=True)
    for one, other in zip(at_once.law(p, q, 3), sg.Sequential(step).law(p, q, 3)):
        assert np.array_equal(one, other)
    # A row that is kept for sure has nothing left, which nobody looks at.
    assert abs(at_once.law(p, q, 3).membership[3] - 1.0) < 4e-16
    assert float(at_once.law(p[0], q[0], 3).membership) == at_once.law(p, q, 3).membership[0]
    assert at_once(p[0], q[0], np.array([1, 2]), None).shape == (V,)


def test_a_wrong_residual_is_refuted_with_its_distance(tmp_path: Path) -> None:
    p, q = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)], [Fraction(1, 5)] * 2 + [Fraction(3, 5)]
    for n in (1, 2, 3):
        kept = [min(a, b) for a, b in zip(p, q)]
        missed = 1 - sum(kept)
        whole = sum(missed**i for i in range(n))
        output = [whole * k + missed**n * a for k, a in zip(kept, p)]
        away = sum(abs(a - b) for a, b in zip(output, p)) / 2
        path = tmp_path / f"bug-{n}.json"
        found = sg.evaluate(
            WRONG, [float(x) for x in p], [float(x) for x in q], n, counterexample=path
        )
        assert found.exact and found.lossless == "refuted"
        assert abs(found.total_variation - float(away)) < 1e-15
        # The smallest problem on which it fails, which the exact verifier refutes too.
        assert found.counterexample is not None
        checked = sg.verify(path).to_dict()
        assert "false" in json.dumps(checked)


# On logs.


def test_a_log_is_measured_by_row_and_prompt(arrays: dict[str, Any]) -> None:
    found = sg.evaluate(LESS, arrays, 3, temperature=1.0)
    assert isinstance(found, sg.LogEvaluation)
    assert (found.exact, found.lossless, found.samples) == (True, "exact", None)
    assert (found.positions, found.clusters) == (PROMPTS * EACH, PROMPTS)
    p, q = rows(arrays)
    law = LESS.law(p, q, 3)
    assert np.abs(found.table["acceptance"] - law.membership).max() < 1e-14
    assert found.total_variation == found.table["total_variation"].max() < 1e-15
    assert found.worst == int(found.table["total_variation"].argmax())
    best = sg.alpha(p, q, 3).value
    named = sg.acceptance("k-seq", p, q, 3).value
    for interval, values in (
        (found.acceptance, law.membership),
        (found.gap, best - law.membership),
        (found.differences["k-seq"], law.membership - named),
    ):
        by_prompt = values.reshape(PROMPTS, EACH).sum(axis=1)
        mean = by_prompt.sum() / values.size
        off = by_prompt - mean * EACH
        half = T_11 * math.sqrt(PROMPTS / (PROMPTS - 1) * float(off @ off)) / values.size
        assert np.allclose(interval, (mean, mean - half, mean + half), rtol=0, atol=1e-9)
    assert "more than k-seq" in str(found) and "±" in str(found)
    assert found.to_dict()["differences"]["rrs"][0] > 0
    exact = sg.evaluate(EXACT, sg.Log.of_arrays(**arrays), 3, temperature=1.0, compare="rrs")
    assert np.abs(exact.table["acceptance"] - exact.table["rrs"]).max() < 1e-14
    assert list(exact.differences) == ["rrs"]
    wrong = sg.evaluate(WRONG, arrays, n=2, temperature=0.7)
    away = WRONG.law(*rows(arrays, 0.7), 2).total_variation
    assert wrong.lossless == "refuted" and wrong.worst == int(away.argmax())
    assert wrong.total_variation is not None and abs(wrong.total_variation - away.max()) < 1e-14
    # Of a rule that claims it, too, here it is the question.
    assert sg.evaluate(
        sg.Sequential(corrects_from_p, lossless=True), arrays, 2
    ).lossless == "refuted"  # fmt: skip


def test_own_rules_stand_beside_named_ones(arrays: dict[str, Any]) -> None:
    asked: dict[str, Any] = {
        "drafts": (1, 2, 4), "temperature": (0.7, 1.0), "top_k": 20, "top_p": 0.9,
    }  # fmt: skip
    names: list[Any] = [EXACT, "rrs", LESS, "k-seq"]
    report = sg.gap(arrays, verifiers=names, **asked)
    assert len(cells(report)) == 6
    for cell in cells(report):
        order = [row["name"] for row in cell["verifiers"]]
        assert order == ["rrs", "k-seq", "slack-0", "slack-1"]
        own, rrs = verifier(cell, "slack-0"), verifier(cell, "rrs")
        for key in ("acceptance", "gap"):
            assert abs(own[key]["mean"] - rrs[key]["mean"]) < 1e-14
            assert np.allclose(own[key]["ci95"], rrs[key]["ci95"], rtol=0, atol=1e-12)
        assert own["kind"] == "float" and own["own"]["total_variation_max"] < 1e-14
        assert abs(own["own"]["algorithmic"]["mean"] - own["acceptance"]["mean"]) < 1e-14
        less = verifier(cell, "slack-1")
        optimum = cell["optimal_acceptance_rate"]["mean"]
        if cell["drafts"] > 1:
            assert own["acceptance"]["mean"] < less["acceptance"]["mean"] < optimum
    pairs = {(one["first"], one["second"]) for one in report.to_dict()["comparisons"]}
    law = "with-replacement"
    for first, second in itertools.product(("slack-0", "slack-1"), ("rrs", "k-seq")):
        assert (f"{law}/{first}", f"{law}/{second}") in pairs
    assert (f"{law}/slack-0", f"{law}/slack-1") in pairs
    told = report.to_dict()["own_rules"]
    assert told[1] == {"name": "slack-1", "scheme": law, "words": "keeps less at first"}
    # Named rules are what they were.
    alone = sg.gap(arrays, verifiers=["rrs", "k-seq"], **asked)
    for cell, before in zip(cells(report), cells(alone)):
        assert verifier(cell, "rrs") == verifier(before, "rrs")
    one_thread = sg.gap(arrays, verifiers=names, threads=1, **asked)
    assert one_thread.json == report.json


def test_pages_name_the_rules_and_say_if_they_are_lossy(
    arrays: dict[str, Any], tmp_path: Path
) -> None:
    report = sg.gap(arrays, verifiers=[LESS, WRONG, "rrs"], drafts=2, temperature=1.0)
    for page in (report.markdown(), report.html(), report.text(whole=True)):
        assert "slack-1" in page and "keeps less at first" in page
        assert "Rules of your own" in page
        assert "Not lossless is wrong" in page
        assert "specgap gap" not in page.split("Made by")[-1]
    assert "with a rule of its own" in report.markdown()
    # A lossy rule beats nothing.
    table = report.markdown().split("## Acceptance")[1].split("##")[0]
    (line,) = [line for line in table.splitlines() if line.startswith("| wrong")]
    assert "**" not in line
    report.save(tmp_path / "out")
    assert "slack-1" in (tmp_path / "out" / "report.json").read_text()
    good = sg.gap(arrays, verifiers=[LESS], drafts=2, temperature=1.0)
    assert "Not lossless" not in good.markdown()
    assert [row["name"] for row in cells(good)[0]["verifiers"]] == ["slack-1"]


def test_positions_and_several_logs(arrays: dict[str, Any]) -> None:
    report = sg.gap(arrays, verifiers=[LESS, "rrs"], drafts=2, temperature=1.0, positions=True)
    columns = report.positions().to_numpy()
    own = LESS.law(*rows(arrays), 2)
    assert np.abs(columns["with-replacement/slack-1"] - own.membership).max() < 1e-14
    assert np.isnan(columns["with-replacement/slack-1/lower"].astype(float)).all()
    assert columns["with-replacement/slack-1/total-variation"].max() < 1e-15
    other = dict(arrays, draft_logits=arrays["target_logits"], token=np.zeros(60, dtype=int))
    both = sg.gap(
        [dict(arrays, token=np.zeros(60, dtype=int)), other], verifiers=[LESS], drafts=2,
        temperature=1.0,
    )  # fmt: skip
    (rate,) = [
        one for one in both.to_dict()["rates"]
        if one.get("verifier") == "slack-1"
    ]  # fmt: skip
    assert abs(rate["estimates"][0]["mean"] - own.membership.mean()) < 1e-14
    assert rate["estimates"][1]["mean"] == pytest.approx(1.0, abs=1e-14)
    assert rate["differences"][1]["paired"] and "command" not in both.to_dict()


def test_summaries_merge_where_a_digest_says_that_the_rule_is_one(arrays: dict[str, Any]) -> None:
    def parts(digest: str | None) -> list[sg.Summary]:
        rule = sg.Sequential(slack(1.0), name="mine", digest=digest)
        asked: dict[str, Any] = {"verifiers": [rule, "rrs"], "drafts": 2, "temperature": 1.0}
        return [sg.Summary.of(arrays, part=(k, 2), **asked) for k in (1, 2)]

    first, second = (pickle.loads(pickle.dumps(part)) for part in parts("v1"))
    rule = sg.Sequential(slack(1.0), name="mine", digest="v1")
    whole = sg.gap(arrays, verifiers=[rule, "rrs"], drafts=2, temperature=1.0)
    assert first.merge(second).report().json == whole.json
    assert whole.to_dict()["own_rules"][0]["digest"] == "v1"
    first, second = parts(None)
    with pytest.raises(ValueError, match="own rule mine.*digest"):
        first.merge(second)
    with pytest.raises(ValueError, match="v2.*v1"):
        parts("v1")[0].merge(parts("v2")[1])


# Rules that are drawn.


def test_drawn_rules_are_measured_without_bias_and_with_less_noise() -> None:
    """40 rows of one pair by other seeds: off by 4 standard errors once in 16,000 times."""
    rng = np.random.default_rng(11)
    p, q = rng.dirichlet(np.full(30, 0.5), size=2)
    exact = float(LESS.law(p, q, 3).membership)
    drawn = Simulated(lambda p, q, drafts, rng: LESS(p, q, drafts, rng), "with-replacement", 20)
    for seed in range(40):
        drawn(p, q, 3, seed, seed)
    rates = drawn.rates(list(drawn.seen))
    error = rates.std(ddof=1) / math.sqrt(len(rates))
    assert abs(rates.mean() - exact) < 4 * error
    # Tokens by 20 draws each would be off by sqrt(a (1 - a) / 800).
    assert error < 0.25 * math.sqrt(exact * (1 - exact) / 800)


def test_functions_have_intervals_and_verdicts_on_logs(arrays: dict[str, Any]) -> None:
    exact = sg.evaluate(LESS, arrays, 3, temperature=1.0)

    def law(p: Floats, q: Floats, drafts: NDArray[np.int64], rng: sg.Branching) -> Floats:
        return LESS(p, q, drafts, rng)

    drawn = sg.evaluate(law, arrays, 3, temperature=1.0, samples=6_000)
    assert (drawn.exact, drawn.samples, drawn.lossless) == (False, 6_000, "not refuted")
    assert drawn.total_variation is None and drawn.name == "law"
    assert abs(drawn.differences["rrs"][0] - exact.differences["rrs"][0]) < 1.5e-3
    assert math.isnan(drawn.algorithmic_acceptance)
    # Also of an example that is called as a rule of the table is.
    tokens = sg.evaluate(rules.rrs, arrays, 2, temperature=1.0, samples=3_000)
    low, high = tokens.differences["rrs"][1:]
    assert low < 0 < high and tokens.lossless == "not refuted"
    assert abs(tokens.algorithmic_acceptance - tokens.acceptance[0]) < 0.03
    wrong = sg.evaluate(rules.residual_of_target, arrays, 1, temperature=1.0, samples=3_000)
    assert wrong.lossless == "refuted" and wrong.e_value is not None and wrong.e_value > 1e6
    distinct = sg.evaluate(
        rules.rrs_wo, arrays, 2, scheme="without-replacement", temperature=1.0, compare="rrs-wo",
        samples=1_200,
    )  # fmt: skip
    assert abs(distinct.differences["rrs-wo"][0]) < 0.02
    # A rule that is not lossless for these drafts is measured with its own.
    own = sg.evaluate(EXACT, arrays, 2, temperature=1.0, compare=["rrs", "rrs-wo"])
    assert list(own.differences) == ["rrs", "rrs-wo (without-replacement)"]


# Refusals.


def test_steps_are_refused_by_number_and_token() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    good = np.minimum(1.0, p / q)

    def refused(step: Any, *, match: str, rows: bool = False) -> None:
        rule = sg.Sequential(step, rows=rows)
        given = (p[None], q[None]) if rows else (p, q)
        with pytest.raises(ValueError, match=match):
            rule.law(*given, 2)
        with pytest.raises(ValueError, match=match):
            sg.evaluate(rule, p, q, 2)

    third = np.array([1.0, 1.0, 1.0 + 1e-9])
    refused(lambda p, q, i, n: (third, p) if i else (good, p), match="step 1: token 2 is kept with")
    refused(lambda p, q, i, n: -good, match="step 0: token 0 is kept with -1")
    refused(lambda p, q, i, n: good * math.nan, match="step 0: token 0 is kept with nan")
    refused(lambda p, q, i, n: (good, 2 * p), match="step 0: the residual sums to 2, most .* token 0")
    refused(lambda p, q, i, n: p - q if i == n else good, match="step 2: the residual is -0.4 at token 2")
    refused(lambda p, q, i, n: (good, p, p), match="step 0: returned a tuple of 3")
    refused(lambda p, q, i, n: (good, p) if i == n else good, match="step 2: returned a tuple")
    refused(lambda p, q, i, n: good[:2], match=r"step 0: keep is float64 of shape \(2,\)")
    refused(lambda p, q, i, n: (2 * good[None], p), match="row 0: step 0: token 0", rows=True)
    # Where q is 0 nothing is drafted.
    some = np.array([0.0, 0.4, 0.6])
    kept = sg.Sequential(slack(0.0)).law(p, some, 2)
    loose = sg.Sequential(lambda p, q, i, n: (p / np.maximum(p, q), p) if i < 0 else (
        np.minimum(np.where(q > 0, 1.0, math.nan), p / q),
        np.maximum(p - q, 0) / np.maximum(p - q, 0).sum(),
    ))  # fmt: skip
    assert loose.law(p, some, 2).membership == kept.membership
    with pytest.raises(TypeError, match="step: give a function"):
        sg.Sequential(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="with-replacement and stratified-independent drafts"):
        sg.evaluate(EXACT, p, q, 2, "without-replacement")
    with pytest.raises(ValueError, match="shape"):
        EXACT.law(p, q[:2], 2)
    with pytest.raises(ValueError, match="drafts are at least 1"):
        EXACT.law(p, q, 0)


def test_reports_are_refused_by_position_and_rule(arrays: dict[str, Any], log: str) -> None:
    def crash(p: Floats, q: Floats, i: int, n: int) -> Floats:
        if p[0] == rows(arrays)[0][7, 0] or abs(p[0] - rows(arrays)[0][7, 0]) < 1e-12:
            raise ZeroDivisionError("no such thing")
        return p if i == n else np.minimum(1.0, p / q)

    asked: dict[str, Any] = {"drafts": 2, "temperature": 1.0}
    with pytest.raises(ValueError, match="position 7: own rule crash: ZeroDivisionError") as raised:
        sg.gap(arrays, verifiers=[sg.Sequential(crash), "rrs"], **asked)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    with pytest.raises(ValueError, match="position 7: crash: ZeroDivisionError") as raised:
        sg.evaluate(sg.Sequential(crash), arrays, 2, temperature=1.0)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    claims = sg.Sequential(corrects_from_p, name="claims", lossless=True)
    with pytest.raises(ValueError, match="position 0: own rule claims.*said to be lossless"):
        sg.gap(arrays, verifiers=claims, **asked)
    for name in ("rrs", "token", "a/b", ""):
        with pytest.raises(ValueError, match="own rule"):
            sg.gap(arrays, verifiers=[sg.Sequential(slack(0.0), name=name)], **asked)
    with pytest.raises(ValueError, match="mine: is there twice"):
        sg.gap(arrays, verifiers=[sg.Sequential(slack(x), name="mine") for x in (0, 1)], **asked)
    with pytest.raises(TypeError, match="give names, specgap.Sequential rules, .*; this is int"):
        sg.gap(arrays, verifiers=[3], **asked)  # type: ignore[list-item]
    # Rows that list some tokens, unless they list all that is kept.
    with pytest.raises(ValueError, match="position 0: own rule slack-0: the row lists some tokens"):
        sg.gap(log, verifiers=[EXACT, "rrs"], **asked)
    served = sg.gap(log, verifiers=[EXACT, "rrs"], top_k=50, **asked)
    own, rrs = (verifier(cells(served)[0], name)["acceptance"] for name in ("slack-0", "rrs"))
    assert abs(own["mean"] - rrs["mean"]) < 1e-14
    # Drafts of another law are not the rule's: it is left out, and said to be.
    other = sg.gap(arrays, verifiers=[EXACT, "rrs-wo"], schemes="without-replacement", **asked)
    assert any("own rule slack-0" in line for line in other.to_dict()["left_out"])


def test_evaluate_says_what_it_takes(arrays: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="n is one number"):
        sg.evaluate(EXACT, arrays, 2, 3)
    with pytest.raises(TypeError, match="whole number"):
        sg.evaluate(EXACT, arrays, [1, 2])
    with pytest.raises(TypeError, match="evaluate\\(verifier, log, n\\)"):
        sg.evaluate(EXACT, [0.5, 0.5])
    with pytest.raises(TypeError, match="temperature: for logs"):
        sg.evaluate(EXACT, [0.5, 0.5], [0.5, 0.5], 2, temperature=1.0)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="counterexample"):
        sg.evaluate(WRONG, arrays, 2, counterexample="x.json")
    with pytest.raises(FileNotFoundError):
        sg.evaluate(EXACT, "no-such-log", 2)


def test_few_draws_a_position_do_not_blow_up(arrays: dict[str, Any]) -> None:
    def token(p: Floats, q: Floats, drafts: Any, rng: Any) -> int:
        x = int(drafts[0])
        if rng.branch(min(1.0, p[x] / q[x])):
            return x
        left = np.maximum(p - q, 0.0)
        return int(rng.choice(len(left), p=left / left.sum()))

    overlap = np.minimum(*rows(arrays)).sum(axis=1).mean()
    widths = []
    for seed in range(5):
        found = sg.evaluate(token, arrays, 1, samples=2 * PROMPTS * EACH, seed=seed)
        assert found.samples == 4 * PROMPTS * EACH
        value, low, high = found.gap
        widths.append(high - low)
        assert abs(found.acceptance[0] - overlap) < 0.1 and abs(value) < 0.1
    # Of hits alone it would be some 2 * 2.2 * sqrt(0.2 / 240).
    assert max(widths) < 0.2


def test_rows_that_are_no_distributions_are_not_blamed_on_the_rule() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    for bad in (2 * p, np.log(p), np.array([np.nan, 0.5, 0.5]), np.array([1.5, -0.5, 0.0])):
        with pytest.raises(ValueError, match="^p: sums to .*give probabilities"):
            EXACT.law(bad, q, 2)
        with pytest.raises(ValueError, match="^q: row 1: sums to .*give probabilities"):
            EXACT.law(np.stack([p, p]), np.stack([q, bad]), 2)
    for n in (2.0, "2"):
        with pytest.raises(TypeError, match="n: give drafts as a whole number"):
            EXACT.law(p, q, n)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name: give a string; this is int"):
        sg.Sequential(slack(0.0), name=3)  # type: ignore[arg-type]


def test_a_log_is_evaluated_at_one_temperature(arrays: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="temperature: 2 are given"):
        sg.evaluate(EXACT, arrays, 1, temperature=[0.5, 1.0])  # type: ignore[call-overload]


def test_a_lambda_has_a_name_of_its_own_and_ctrl_c_is_no_refusal() -> None:
    rows = np.log(np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]))
    mine = sg.Sequential(lambda p, q, i, n: (np.minimum(1, p / q), p))
    assert sg.gap(rows, rows[::-1], drafts=2, temperature=1.0, verifiers=[mine], progress=False).ok

    def stops(p: Any, q: Any, i: int, n: int) -> Any:
        raise KeyboardInterrupt

    own = sg.Sequential(stops)
    with pytest.raises(KeyboardInterrupt):
        sg.gap(rows, rows[::-1], drafts=2, temperature=1.0, verifiers=[own], progress=False)

"""Rates as losses: values against the crate and against a sort in torch, gradients against finite
differences and against autograd through the sort."""

from __future__ import annotations

import doctest
import importlib
import itertools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import specgap as sg
from specgap.rules import IID_LEVELS

torch = pytest.importorskip("torch", reason="torch is not installed")

from specgap._passes import symmetric  # noqa: E402

SHAPES = [(40,), (3, 40), (2, 3, 40)]
RATES: list[Callable[..., Any]] = [
    sg.torch.alpha_star,
    sg.torch.rrs_rate,
    sg.torch.k_seq_rate,
    sg.torch.level_rate,
]


def logits(shape: tuple[int, ...], seed: int = 0) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    made = [2 * torch.randn(shape, dtype=torch.float64, generator=generator) for _ in range(2)]
    return made[0].requires_grad_(), (made[0].detach() + made[1]).requires_grad_()


def by_sort(p: Any, q: Any, n: int) -> Any:
    """alpha* of independent drafts by its definition over prefixes, for autograd."""
    order = (q / p).argsort(-1, descending=True)
    held, inside = p.gather(-1, order).cumsum(-1), q.gather(-1, order).cumsum(-1)
    return 1 + (held - inside**n).amin(-1).clamp(max=0)


def close(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    assert a.shape == b.shape
    assert (a - b).abs().max().item() <= tolerance


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_value_and_gradient_are_those_of_a_sort(shape: tuple[int, ...], n: int) -> None:
    target, draft = logits(shape)
    weights = torch.arange(1.0, 1 + max(1, target[..., 0].numel()), dtype=torch.float64)
    weights = weights.reshape(shape[:-1])
    rate = sg.torch.alpha_star(target, draft, n, logits=True, temperature=0.8)
    assert rate.shape == shape[:-1] and rate.dtype == torch.float64
    want = by_sort(torch.softmax(target / 0.8, -1), torch.softmax(draft / 0.8, -1), n)
    close(rate, want)
    flat = [rows.detach().reshape(-1, shape[-1]) for rows in (target, draft)]
    same = sg.alpha(flat[0], flat[1], n, logits=True, temperature=0.8).value
    assert (rate.detach().numpy().ravel() == same).all()
    own = torch.autograd.grad((weights * rate).sum(), [target, draft])
    of_sort = torch.autograd.grad((weights * want).sum(), [target, draft])
    for a, b in zip(own, of_sort):
        assert b.abs().max() > 1e-3
        close(a, b, 1e-14)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_gradient_by_probabilities_is_the_certificate(n: int) -> None:
    p, q = (torch.softmax(rows.detach(), -1).requires_grad_() for rows in logits((4, 40)))
    best = sg.alpha(p, q, n)
    sg.torch.alpha_star(p, q, n).sum().backward()
    for row in range(4):
        inside = torch.zeros(40, dtype=torch.float64)
        inside[torch.from_numpy(best.subset[row])] = 1
        assert (p.grad[row] == inside).all()
        close(q.grad[row], -n * best.mass[row] ** (n - 1) * inside, 1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_several_numbers_of_drafts_in_one_call(shape: tuple[int, ...]) -> None:
    target, draft = logits(shape, 1)
    for rate in RATES:
        several = rate(target, draft, range(1, 5), logits=True)
        assert several.shape == (*shape[:-1], 4)
        weights = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
        own = torch.autograd.grad((several * weights).sum(), [target, draft])
        each = [rate(target, draft, n, logits=True) for n in range(1, 5)]
        close(several, torch.stack(each, -1), 0.0 if rate is sg.torch.alpha_star else 1e-15)
        total = sum(weight * one.sum() for weight, one in zip(weights, each))
        for a, b in zip(own, torch.autograd.grad(total, [target, draft])):
            close(a, b, 1e-14)


def test_one_draft_is_the_overlap() -> None:
    target, draft = logits((2, 3, 40), 2)
    overlap = torch.minimum(torch.softmax(target, -1), torch.softmax(draft, -1)).sum(-1)
    want = torch.autograd.grad(overlap.sum(), [target, draft])
    for rate in RATES:
        own = rate(target, draft, 1, logits=True)
        close(own, overlap, 1e-14)
        for a, b in zip(torch.autograd.grad(own.sum(), [target, draft]), want):
            close(a, b, 1e-14)


def differences(of: Callable[[Any, Any], Any], rows: list[Any], entries: int) -> None:
    """Gradients against central differences along some of the entries."""
    own = torch.autograd.grad(of(*rows).sum(), rows)
    for k, gradient in enumerate(own):
        assert gradient.abs().max() > 1e-4 and not gradient.isnan().any()
        for entry in range(0, rows[k].numel(), max(1, rows[k].numel() // entries)):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [one.detach().clone() for one in rows]
                moved[k].view(-1)[entry] += step
                ends.append(of(*moved).sum())
            slope = (ends[0] - ends[1]) / 2e-6
            assert abs(slope - gradient.reshape(-1)[entry]) < 3e-8


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("rate", RATES)
def test_gradients_are_those_of_finite_differences(
    rate: Callable[..., Any], n: int, shape: tuple[int, ...]
) -> None:
    differences(lambda p, q: rate(p, q, n, logits=True, temperature=1.3), [*logits(shape, 3)], 10)


@pytest.mark.parametrize(
    ("law", "n"),
    [
        ("without-replacement", 2),
        ("without-replacement", 3),
        ("without-replacement", 7),
        ("distinct-conditioned", 2),
        ("distinct-conditioned", 4),
    ],
)
def test_other_laws_of_a_scan(law: Any, n: int) -> None:
    rows = [*logits((2, 3, 12), 4)]

    def rate(p: Any, q: Any) -> Any:
        return sg.torch.alpha_star(p, q, n, law, logits=True)

    flat = [one.detach().reshape(-1, 12) for one in rows]
    want = sg.alpha(flat[0], flat[1], n, law, logits=True).value
    assert np.abs(rate(*rows).detach().numpy().ravel() - want).max() <= 1e-15
    with torch.no_grad():
        assert (rate(*rows).numpy().ravel() == want).all()
    differences(rate, rows, 24)


def turns(q: Any, inside: Any, n: int) -> Any:
    """1 - Q(H) of sequential draws, tuple by tuple; what is left is summed anew, never subtracted."""
    missed = q.sum() * 0
    for drafts in itertools.permutations(range(len(q)), n):
        chance = torch.ones((), dtype=q.dtype)
        for turn, x in enumerate(drafts):
            left = [y for y in range(len(q)) if y not in drafts[:turn]]
            chance = chance * q[x] / q[left].sum()
        if not all(inside[x] for x in drafts):
            missed = missed + chance
    return missed


@pytest.mark.parametrize("spread", [1.0, 6.0, 16.0])
@pytest.mark.parametrize(("size", "n"), [(6, 2), (6, 3), (7, 4), (5, 5)])
def test_the_race_is_the_sum_over_tuples(size: int, n: int, spread: float) -> None:
    from specgap._race import missed

    generator = torch.Generator().manual_seed(size)
    scores = torch.randn((1, size), dtype=torch.float64, generator=generator)
    inside = torch.arange(size)[None] < size - 1
    found = []
    for chance in (missed, lambda q, sets, n: turns(q[0], sets[0], n)):
        rows = (spread * scores).requires_grad_()
        value = chance(torch.softmax(rows, -1), inside, n)
        value.sum().backward()
        found.append((value.detach().ravel(), rows.grad))
    for ours, theirs in zip(*found):
        assert (ours - theirs).abs().max() <= 2e-13


@pytest.mark.parametrize("n", [3, 8])
def test_light_tokens_of_a_race_by_their_powers(n: int) -> None:
    # 1,000 tokens: most are summed by powers. The scan's value is another integral, of the crate.
    rows = logits((1, 1000), 9)

    def rate(p: Any, q: Any) -> Any:
        return sg.torch.alpha_star(p, q, n, "without-replacement", logits=True)

    differences(rate, [*rows], 12)
    p, q = (torch.softmax(one.detach(), -1) for one in rows)
    best = sg.alpha(p, q, n, "without-replacement")
    inside = torch.zeros(p.shape, dtype=torch.bool)
    inside[0, best.subset[0]] = True
    from specgap._race import missed

    assert abs(float(missed(q, inside, n)) - (1 - best.inside[0])) <= 1e-13


LAWS = [
    ("with-replacement", [1, 2, 3, 7]),
    ("without-replacement", [1, 2]),
    ("distinct-conditioned", [1, 2, 3]),
]

#: Ties, zeros of either row, equal rows, rows of one token, rows that share none.
EDGES = [
    ([0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]),
    ([0.5, 0.5, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]),
    ([0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]),
    ([0.125, 0.125, 0.25, 0.5], [0.25, 0.25, 0.5, 0.0]),
    ([0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 0.0, 0.0]),
    ([0.1, 0.2, 0.3, 0.4], [1.0, 0.0, 0.0, 0.0]),
    ([1.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]),
    ([0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]),
    ([0.1, 0.1, 0.4, 0.4], [0.3, 0.3, 0.2, 0.2]),
]


def edges() -> tuple[Any, Any]:
    p, q = (torch.tensor(rows, dtype=torch.float64) for rows in zip(*EDGES))
    return p.requires_grad_(), q.requires_grad_()


@pytest.mark.parametrize(("law", "counts"), LAWS)
def test_rows_on_a_device_are_answered_alike(law: Any, counts: list[int]) -> None:
    module = sg.torch
    for rows, are_logits in ((logits((30, 40), 5), True), (edges(), False)):
        asked = module._asked(*rows, counts, are_logits, 1.0)
        host, device = module._of_host(asked, law), module._of_device(asked, law)
        close(host, device, 1e-14)
        flat = [one.detach() for one in rows]
        for k, n in enumerate(counts):
            best = sg.alpha(flat[0], flat[1], n, law, logits=are_logits)
            assert np.abs(device[:, k].detach().numpy() - best.value).max() <= 1e-14
            if are_logits:
                own = torch.autograd.grad(device[:, k].sum(), rows, retain_graph=True)
                same = torch.autograd.grad(host[:, k].sum(), rows, retain_graph=True)
                for a, b in zip(own, same):
                    close(a, b, 1e-14)
        for gradient in torch.autograd.grad(device.sum() + host.sum(), rows):
            assert not gradient.isnan().any()


def test_rows_of_a_device_are_sorted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = (torch.softmax(rows.detach(), -1) for rows in logits((7, 40), 6))
    whole = sg.torch._sets_by_sort(p, q, [1, 3], "with-replacement")
    monkeypatch.setattr(sg.torch, "_CHUNK", 80)
    assert (sg.torch._sets_by_sort(p, q, [1, 3], "with-replacement") == whole).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_at_kinks_it_is_a_supergradient(n: int) -> None:
    """alpha* is concave in both rows together, so that a supergradient bounds it everywhere."""
    p, q = edges()
    rate = sg.torch.alpha_star(p, q, n)
    gradients = torch.autograd.grad(rate.sum(), [p, q])
    generator = torch.Generator().manual_seed(7)
    ends = [(p.detach().roll(k, 0), q.detach().roll(j, 0)) for k in range(9) for j in range(9)]
    noise = torch.rand((2, 200, 9, 4), dtype=torch.float64, generator=generator) ** 3
    ends += [tuple(one / one.sum(-1, keepdim=True) for one in pair) for pair in zip(*noise)]
    for other in ends:
        steps = zip(gradients, other, (p, q))
        bound = rate + sum((gradient * (end - start)).sum(-1) for gradient, end, start in steps)
        assert (sg.torch.alpha_star(*other, n) <= bound + 1e-12).all()


def test_served_rules_are_answered_as_the_crate_does() -> None:
    for rows in (edges(), tuple(torch.softmax(one, -1) for one in logits((20, 300), 8))):
        p, q = (one.detach() for one in rows)
        for n in (1, 2, 3, 6, 64):
            named: Any = (("rrs", sg.torch.rrs_rate), ("k-seq", sg.torch.k_seq_rate))
            for name, rate in named:
                want = sg.acceptance(name, p, q, n).value
                assert np.abs(rate(p, q, n).numpy() - want).max() < 1e-13, (name, n)
                single = rate(p.float(), q.float(), n)
                assert single.dtype == torch.float32
                assert np.abs(single.numpy() - want).max() < 1e-5, (name, n)


def test_passes_are_answered_as_the_crate_does() -> None:
    for rows in (edges(), tuple(torch.softmax(one, -1) for one in logits((20, 60), 9))):
        p, q = (one.detach() for one in rows)
        # The crate cuts strata heaviest token first, and the kernels in the order of ids.
        order = q.argsort(dim=-1, descending=True, stable=True)
        p, q = p.gather(-1, order), q.gather(-1, order)
        for n in (2, 3, 6):
            cuts: Any = (("once", "stratified"), ("independent", "stratified-independent"))
            for straddle, scheme in cuts:
                own = sg.torch.level_rate(p, q, n, law="stratified", straddle=straddle)
                want = sg.acceptance("level-4", p, q, n, scheme).value
                assert np.abs(own.numpy() - want).max() < 1e-9, (scheme, n)
        many = sg.torch.level_rate(p, q, 3, levels=[1 - k / 60 for k in range(1, 61)] + [0.0] * 3)
        short = sg.torch.alpha_star(p, q, 3) - many
        assert (short > -1e-12).all() and short.max() < 2e-3


def test_passes_over_independent_drafts_accept_what_the_rule_does() -> None:
    """Against every draft and coin of the rule in NumPy."""
    p, q = (torch.softmax(rows.detach(), -1) for rows in logits((6, 5), 16))
    for n in (1, 2, 3):
        own = sg.torch.level_rate(p, q, n)
        for row in range(6):
            found = sg.evaluate(sg.rules.level_4_iid, p[row], q[row], n)
            assert abs(own[row].item() - found.algorithmic_acceptance) < 1e-12


def test_passes_that_are_none_are_refused() -> None:
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.75, 0.25])
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"law": "stratified", "straddle": "x"}, "straddle: 'x'; there are once and independent"),
        ({"levels": (0.5, 0.2)}, "the last of which is 0"),
    ]
    for one, message in wrong:
        with pytest.raises(ValueError, match=message):
            sg.torch.level_rate(p, q, 2, **one)


@pytest.mark.parametrize("straddle", ["once", "independent"])
@pytest.mark.parametrize("n", [2, 4])
def test_gradients_of_strata(n: int, straddle: Any) -> None:
    def rate(p: Any, q: Any) -> Any:
        return sg.torch.level_rate(p, q, n, True, 1.0, "stratified", straddle)

    differences(rate, [*logits((3, 20), 10)], 16)


def many(rows: int, size: int, near: float = 1.0) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(size)
    target, noise = torch.randn((2, rows, size), dtype=torch.float64, generator=generator)
    pair = (torch.softmax(2 * one, -1) for one in (target, target + near * noise))
    first, second = (one.requires_grad_() for one in pair)
    return first, second


@pytest.mark.parametrize("levels", [IID_LEVELS, (0.5, 0.0), tuple(k / 30 for k in range(29, -1, -1))])
@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_passes_over_sums_are_passes_over_tokens(n: int, levels: tuple[float, ...]) -> None:
    """Against autograd through passes of which every token is a part of its own."""
    for near in (1.0, 0.01):
        rows = many(3, 5000, near)
        want, _ = symmetric(*rows, n, levels)
        found = sg.torch.level_rate(*rows, n, levels=levels)
        close(found, want, 1e-12)
        weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
        # Thirty passes over rows that are nearly equal are rounded by some 1e-6, more or less by processor.
        known = 1e-5 if len(levels) == 30 and near < 1 else 1e-6
        for own, other in zip(*(torch.autograd.grad(one @ weights, rows) for one in (found, want))):
            close(own, other, known)


@pytest.mark.parametrize("straddle", ["once", "independent"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 8])
def test_gradients_of_strata_of_many_tokens(n: int, straddle: Any) -> None:
    """Along directions in which all tokens of all rows move: of bins with several tokens too."""
    rows, generator = many(4, 5000), torch.Generator().manual_seed(n)

    def rate(p: Any, q: Any) -> Any:
        return sg.torch.level_rate(p, q, n, True, 1.0, "stratified", straddle).sum()

    logs = [one.detach().log().requires_grad_() for one in rows]
    own = torch.autograd.grad(rate(*logs), logs)
    for _ in range(3):
        moves = [torch.randn(one.shape, dtype=torch.float64, generator=generator) for one in logs]
        ends = [rate(*(a + step * b for a, b in zip(logs, moves))) for step in (1e-6, -1e-6)]
        slope = sum((a * b).sum() for a, b in zip(own, moves))
        assert abs((ends[0] - ends[1]) / 2e-6 - slope) < 1e-7


@pytest.mark.parametrize("law", ["with-replacement", "stratified"])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_tokens_without_mass_have_the_slope_of_a_first_bit_of_it(n: int, law: Any) -> None:
    for seed in range(6):
        rows = [torch.softmax(one.detach(), -1) for one in logits((1, 14), seed)]
        rows = [one * (one >= one.topk(7).values[:, -1:]) for one in rows]
        rows = [(one / one.sum()).requires_grad_() for one in rows]
        rate = sg.torch.level_rate(*rows, n, law=law)
        own = torch.autograd.grad(rate.sum(), rows)
        for side, x in itertools.product((0, 1), range(14)):
            if rows[0][0, x] == 0 and rows[1][0, x] == 0 and side == 0:
                continue  # By p alone it is a kink: no draft is such a token.
            moved = [one.detach() for one in rows]
            towards = torch.nn.functional.one_hot(torch.tensor([x]), 14) - moved[side]
            moved[side] = moved[side] + 1e-7 * towards
            slope = (sg.torch.level_rate(*moved, n, law=law) - rate.detach()) / 1e-7
            assert abs(slope - (own[side] * towards).sum()) < 2e-4, (seed, side, x)


@pytest.mark.parametrize("law", ["with-replacement", "stratified"])
def test_passes_keep_little_more_than_the_rows(law: Any) -> None:
    target, draft = (rows.detach().float().requires_grad_() for rows in logits((5, 20_000)))
    kept: dict[int, int] = {}

    def count(one: Any) -> Any:
        kept[one.data_ptr()] = one.numel() * one.element_size()
        return one

    with torch.autograd.graph.saved_tensors_hooks(count, lambda one: one):
        sg.torch.level_rate(target, draft, 4, True, law=law)
    # Strata are cut in double precision.
    assert sum(kept.values()) < (12 if law == "with-replacement" else 20) * target.numel()
    assert sg.torch.level_rate(target[:0], draft[:0], 4, True, law=law).shape == (0,)


def test_gradients_at_edges_are_numbers() -> None:
    for n in (1, 2, 3, 6):
        for rate in RATES:
            rows = edges()
            rate(*rows, n).sum().backward()
            assert all(one.grad.isfinite().all() for one in rows), (rate, n)
        for straddle in ("once", "independent"):
            rows = edges()
            sg.torch.level_rate(*rows, n, law="stratified", straddle=straddle).sum().backward()
            assert all(one.grad.isfinite().all() for one in rows), (straddle, n)


def test_types_strides_and_axes() -> None:
    target, draft = (rows.detach() for rows in logits((2, 3, 40), 11))
    want = sg.torch.alpha_star(target, draft, 2, logits=True)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        rows = [one.to(dtype).requires_grad_() for one in (target, draft)]
        rate = sg.torch.alpha_star(*rows, 2, logits=True)
        rate.sum().backward()
        assert rate.dtype == torch.float32 and all(one.grad.dtype == dtype for one in rows)
        exact = sg.torch.alpha_star(*(one.detach().double() for one in rows), 2, logits=True)
        assert (rate.double() - exact).abs().max() < 1e-7
    mixed = sg.torch.alpha_star(target, draft.float().requires_grad_(), 2, logits=True)
    assert mixed.dtype == torch.float64
    turned = target.transpose(0, 2).contiguous().transpose(0, 2)
    assert (sg.torch.alpha_star(turned, draft, 2, logits=True) == want).all()
    # One target for all depths: the gradient is summed over what was broadcast.
    one = target[:, :1].clone().requires_grad_()
    rate = sg.torch.alpha_star(one, draft, 2, logits=True)
    assert rate.shape == (2, 3) and (rate[:, 0] == want[:, 0]).all()
    rate.sum().backward()
    apart = one.detach().expand(2, 3, 40).clone().requires_grad_()
    sg.torch.alpha_star(apart, draft, 2, logits=True).sum().backward()
    close(one.grad, apart.grad.sum(1, keepdim=True), 1e-15)
    assert sg.torch.alpha_star(target[:0], draft[:0], [1, 2], logits=True).shape == (0, 3, 2)


def test_a_loss_falls() -> None:
    target, draft = logits((2, 2, 30), 12)
    target = target.detach()
    optimiser = torch.optim.Adam([draft], lr=0.05)
    first = last = None
    for _ in range(60):
        rates = sg.torch.alpha_star(target, draft, 3, logits=True)
        loss = -sg.torch.expected_tokens(rates).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        first, last = (loss.item() if first is None else first), loss.item()
    assert first is not None and last is not None and last < first - 0.2


def test_tokens_a_round() -> None:
    rates = torch.tensor([[0.5, 0.25, 0.8], [1.0, 0.0, 0.7]], dtype=torch.float64, requires_grad=True)
    tokens = sg.torch.expected_tokens(rates)
    assert tokens.tolist() == pytest.approx([1 + 0.5 + 0.125 + 0.1, 2.0], abs=1e-15)
    tokens.sum().backward()
    # Of a zero too: what stands behind it counts.
    want = [[1 + 0.25 * 1.8, 0.5 * 1.8, 0.125], [1.0, 1.7, 0.0]]
    assert rates.grad.flatten().tolist() == pytest.approx(sum(want, []), abs=1e-15)
    split = [rates[:, 0], torch.tensor(0.25, dtype=torch.float64), rates[:, 2]]
    assert sg.torch.expected_tokens(split).tolist() == pytest.approx([1.725, 2.425], abs=1e-15)
    # n along the last axis: depths are lists.
    target, draft = (rows.detach() for rows in logits((2, 3, 40), 13))
    by_n = sg.torch.alpha_star(target, draft, [1, 2], logits=True)
    assert sg.torch.expected_tokens(list(by_n.unbind(1))).shape == (2, 2)


def test_what_is_refused_says_what_it_takes() -> None:
    p, q = (torch.softmax(rows.detach(), -1) for rows in logits((2, 3, 40), 14))
    rate = sg.torch.alpha_star
    for call, error, words in [
        (lambda: rate(p.numpy(), q, 2), TypeError, "p: is ndarray; give a torch tensor"),
        (lambda: rate(p, q.long(), 2), TypeError, "q: has entries of type torch.int64"),
        (lambda: rate(p.to_sparse(), q, 2), TypeError, "p: is torch.sparse_coo; give p.to_dense"),
        (lambda: rate(p[0, 0, 0], q, 2), ValueError, r"p: has shape \(\); give rows"),
        (lambda: rate(p[..., :-1], q, 2), ValueError, "p has 39 tokens and q 40"),
        (lambda: rate(p[:, :2], q, 2), ValueError, "axes but the last are equal, or 1"),
        (lambda: rate(p, q.to("meta"), 2), ValueError, "p is on cpu and q on meta"),
        (lambda: rate(p, q, 0), ValueError, "n is 0; drafts are at least 1"),
        (lambda: rate(p, q, 2.5), TypeError, "n: give drafts as a whole number"),
        (lambda: rate(p, q, []), ValueError, "n: is empty"),
        (lambda: rate(p, q, [2, 65]), ValueError, "n is 65; rates are for up to 64"),
        (lambda: rate(p, q, 2, "top"), ValueError, "law: 'top' is not solved by a scan"),
        (lambda: rate(p, q, 2, temperature=0.5), ValueError, "which is for logits"),
        (lambda: rate(p, q, 2, logits=True, temperature=0.0), ValueError, "a number above 0"),
        (
            lambda: sg.torch._of_device(
                sg.torch._asked(p, q, 3, True, 1.0), "without-replacement"
            ),
            ValueError,
            "n is 3; under without-replacement the set of more than 2 drafts is found",
        ),
        (lambda: sg.torch.level_rate(p, q, 2, law="top"), ValueError, "law: 'top'; level_rate is"),
        (lambda: sg.torch.level_rate(p, q, 2, levels=[1.0]), ValueError, "numbers in"),
        (lambda: sg.torch.expected_tokens([]), ValueError, "at least one depth"),
        (lambda: sg.torch.expected_tokens([0.5]), TypeError, "depth 0 is float"),
        (lambda: sg.torch.expected_tokens(torch.tensor(0.5)), ValueError, "give rates"),
        (lambda: sg.torch.expected_tokens(torch.tensor([1])), TypeError, "is torch.int64"),
        (
            lambda: sg.torch.expected_tokens([torch.rand(2), torch.rand(3)]),
            ValueError,
            r"depths of shapes \(2,\), \(3,\) do not fit",
        ),
    ]:
        with pytest.raises(error, match=words):
            call()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("rate", RATES)
def test_rows_that_are_no_distributions_are_refused(rate: Callable[..., Any]) -> None:
    p, q = (torch.softmax(rows.detach(), -1) for rows in logits((2, 3, 40), 15))
    bad = q.clone()
    bad[1, 1, 3] += 0.5
    with pytest.raises(ValueError, match="q: row 4: .*logits=True"):
        rate(p, bad, 2)
    bad[1, 1, 3] = -0.1
    with pytest.raises(ValueError, match="q: row 4: .*logits=True"):
        rate(p, bad, 2)
    for value in (float("nan"), float("inf")):
        bad = torch.randn(2, 3, 40)
        bad[1, 0, 7] = value
        with pytest.raises(ValueError, match="p: row 3: .*(NaN|inf)"):
            rate(bad, torch.randn(2, 3, 40), 2, logits=True)
    with pytest.raises(ValueError, match="row 0: .*these are probabilities.*leave logits=True out"):
        rate(p, torch.randn(2, 3, 40), 2, logits=True)


def test_the_name_is_there_without_an_import_and_says_what_it_needs() -> None:
    code = "import specgap as sg, sys; assert 'torch' not in sys.modules; sg.torch.alpha_star"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; sys.modules['torch'] = None\nimport specgap as sg\nsg.torch"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "specgap.torch needs PyTorch" in ran.stderr


def test_examples_of_the_docstrings_run() -> None:
    assert doctest.testmod(importlib.import_module("specgap.torch")).failed == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_rates_of_rounded_probabilities_are_of_rows_that_sum_to_1(dtype: Any) -> None:
    p, q = (torch.softmax(rows.detach().float(), -1).to(dtype) for rows in logits((6, 40), 21))
    rows = [one.double() / one.double().sum(-1, keepdim=True) for one in (p, q)]
    most = sg.torch.alpha_star(p, q, [1, 2, 4]).double()
    for rate in (sg.torch.rrs_rate, sg.torch.k_seq_rate, sg.torch.level_rate):
        found = rate(p, q, [1, 2, 4]).double()
        off = 1e-12 if dtype == torch.float64 else 1e-6
        assert (found - rate(*rows, [1, 2, 4])).abs().max() < off
        assert (found <= most + off).all()


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_gradients_of_strata_behind_a_certain_token_are_numbers(temperature: float) -> None:
    q = (60 * torch.eye(4)[1:2]).requires_grad_()
    rate = sg.torch.level_rate
    found = rate(torch.tensor([[1.0, 0, 0, 0]]).log(), q, 2, True, law="stratified")
    found.sum().backward()
    # The second draft is one of three tokens that are alike: d/dq_0 of softmax is 1/3 (1 - 1/3).
    assert found.dtype == torch.float32 and abs(found.item() - 1 / 3) < 1e-6
    assert (q.grad - torch.tensor([[2 / 9, 0, -1 / 9, -1 / 9]])).abs().max() < 1e-6
    for seed in range(20):
        target, draft = (4 * rows.detach().float() for rows in logits((4, 300), seed))
        draft.requires_grad_()
        rate(target, draft, 3, True, temperature, law="stratified").sum().backward()
        assert torch.isfinite(draft.grad).all()


@pytest.mark.parametrize("rate", RATES)
def test_logarithms_to_other_bases_are_refused(rate: Callable[..., Any]) -> None:
    p, q = (torch.softmax(rows.detach(), -1) for rows in logits((3, 40), 22))
    forms = {"2.x": p.log2(), "10.x": p.log10(), "exp.-x": -p.log(), "2.-x": -p.log2()}
    for shown, form in forms.items():
        with pytest.raises(ValueError, match=f"p: row 0: {shown}.*sums to 1: these are"):
            rate(form, q.log(), 2, logits=True)
    assert torch.isfinite(rate(p.log(), q.log(), 2, logits=True)).all()
    # One token has all of the mass, by any base.
    peaked = torch.tensor([[0.0, -60.0, -70.0]] * 4)
    assert torch.isfinite(rate(peaked, peaked, 2, logits=True)).all()
    assert rate(p, q, np.array(2)).shape == (3,)
    with pytest.raises(TypeError, match="temperature: give a number above 0; this is str"):
        rate(p.log(), q.log(), 2, logits=True, temperature="hot")

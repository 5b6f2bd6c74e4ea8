"""Strata in SGLang: the hooks, called as SGLang 0.5.23 calls them, on CPU tensors."""

from __future__ import annotations

import enum
import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from specgap import Refused, rules, sglang  # noqa: E402

from .conftest import faked  # noqa: E402

STEPS = "sglang.srt.speculative"


class Engine:
    """A worker and a verification as SGLang has them: rows that depend on the token before, and a draft
    vocabulary of its own where ``ids`` says which tokens of the target it has."""

    def __init__(self, rng: np.random.Generator, size: int, n: int, ids: list[int] | None = None) -> None:
        self.size, self.n = size, n
        self.p = rng.dirichlet(np.full(size, 0.7), size).astype(np.float32)
        kept = range(size) if ids is None else ids
        self.q = rng.dirichlet(np.full(len(kept), 0.7), size).astype(np.float32)
        self.ids = None if ids is None else torch.tensor(ids)


@pytest.fixture
def hooked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """SGLang's modules with what the hooks read, and the hooks applied as its registry applies them."""

    def make(engine: Engine, n: int, **options: int) -> Any:
        return _made(monkeypatch, engine, n, **options)

    return make


def _softmax_of(logits: Any, sampling_info: Any, use_rejection_sampling: bool) -> Any:
    return torch.softmax(logits / (sampling_info.temperatures if use_rejection_sampling else 1.0), -1)


def _made(monkeypatch: pytest.MonkeyPatch, engine: Engine, n: int, **options: int) -> Any:
    hooks: list[tuple[str, Any]] = []

    class HookType(enum.Enum):
        AROUND = "around"

    class HookRegistry:
        @classmethod
        def register(cls, target: str, hook: Any, hook_type: HookType) -> None:
            hooks.append((target, hook))

    def fast_topk(values: Any, topk: int, dim: int) -> Any:
        return torch.topk(values, topk, dim=dim)

    def renorm_draft_probs(next_token_logits: Any, sampling_info: Any, use_rejection_sampling: bool) -> Any:
        return _softmax_of(next_token_logits, sampling_info, use_rejection_sampling)

    def tree_speculative_sampling_target_only(**call: Any) -> None:
        raise AssertionError("the engine's own rule ran")

    def eagle_sample(verify_input: Any, batch: Any, target: Any) -> Any:
        requests, nodes = verify_input.draft_token.shape
        predicts = torch.full((requests * nodes,), -1, dtype=torch.int32)
        accepted = torch.full((requests, 2), -1, dtype=torch.int32)
        count = torch.empty(requests, dtype=torch.int32)
        utils.tree_speculative_sampling_target_only(
            predicts=predicts, accept_index=accepted, accept_token_num=count, candidates=verify_input.draft_token,
            retrive_index=torch.arange(requests * nodes).reshape(requests, nodes),
            retrive_next_token=None, retrive_next_sibling=None,
            uniform_samples=torch.rand(requests, nodes), uniform_samples_for_final_sampling=torch.rand(requests),
            target_probs=target, draft_probs=torch.zeros_like(target), threshold_single=1.0, threshold_acc=1.0,
            deterministic=True,
        )  # fmt: skip
        return predicts, accepted, count

    class EagleDraftWorker:
        def __init__(self) -> None:
            self.topk, self.speculative_num_steps = n, 1
            self.speculative_num_draft_tokens, self.device = n + 1, "cpu"
            vars(self).update(options)
            self.hot_token_id = engine.ids
            config = types.SimpleNamespace(vocab_size=engine.size)
            runner = types.SimpleNamespace(model_config=config)
            self.target_worker = types.SimpleNamespace(model_runner=runner)

        def _drafts(self, batch: Any) -> Any:
            logits = torch.from_numpy(engine.q)[batch.last].log()
            probs = steps.renorm_draft_probs(logits, batch.sampling_info, False)
            return common.fast_topk(probs, self.topk, dim=-1)

        def _draft_extend_for_prefill(self, batch: Any) -> Any:
            share, index = self._drafts(batch)
            return types.SimpleNamespace(topk_p=share, topk_index=index, draft_probs=None)

        def _draft_extend_for_decode(self, batch: Any, batch_result: Any) -> None:
            share, index = self._drafts(batch)
            batch_result.next_draft_input.topk_p = share
            batch_result.next_draft_input.topk_index = index

        def draft_forward(self, forward_batch: Any) -> Any:
            index = forward_batch.spec_info.topk_index
            return None, None, index if engine.ids is None else engine.ids[index], None

    faked(monkeypatch, "sglang.srt.plugins.hook_registry", HookRegistry=HookRegistry, HookType=HookType)
    common = faked(monkeypatch, "sglang.srt.utils.common", fast_topk=fast_topk)
    steps = faked(monkeypatch, f"{STEPS}.spec_utils", renorm_draft_probs=renorm_draft_probs)
    utils = faked(
        monkeypatch, f"{STEPS}.eagle_utils", eagle_sample=eagle_sample,
        tree_speculative_sampling_target_only=tree_speculative_sampling_target_only,
    )  # fmt: skip
    worker = faked(monkeypatch, f"{STEPS}.eagle_worker_v2", EagleDraftWorker=EagleDraftWorker)
    faked(monkeypatch, "sglang.srt.layers.dp_attention", is_dp_attention_enabled=lambda: False)
    group = types.SimpleNamespace(world_size=1)
    parallel = types.SimpleNamespace(tp_group=group, attn_tp_group=group)
    faked(monkeypatch, "sglang.srt.runtime_context", get_parallel=lambda: parallel)
    monkeypatch.setenv(sglang.SWITCH, "stratified")
    sglang.plugin()
    for target, hook in hooks:
        home, _, name = target.rpartition(".")
        owner = worker.EagleDraftWorker if home.endswith("EagleDraftWorker") else importlib.import_module(home)
        own = getattr(owner, name)
        monkeypatch.setattr(owner, name, _around(hook, own))
    return types.SimpleNamespace(worker=worker, utils=utils, hooks=hooks)


def _around(hook: Any, own: Any) -> Any:
    @functools.wraps(own)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        return hook(own, *args, **kwargs)

    return hooked


def _batch(last: Any, temperature: float = 1.0, greedy: Any = None) -> Any:
    count = len(last)
    top_ks = torch.full((count,), 1 << 30) if greedy is None else torch.where(greedy, 1, 1 << 30)
    info = types.SimpleNamespace(
        temperatures=torch.full((count, 1), temperature), top_ks=top_ks, sampling_seed=None,
        is_all_greedy=bool((top_ks <= 1).all()),
    )  # fmt: skip
    mode = types.SimpleNamespace(is_idle=lambda: False)
    return types.SimpleNamespace(
        last=last, sampling_info=info, seq_lens=torch.full((count,), 7), forward_mode=mode
    )


def _round(made: Any, engine: Engine, last: Any, prefill: bool, temperature: float, greedy: Any = None) -> Any:
    """A round of each request: what was drafted, what came out, how many drafts were kept."""
    batch = _batch(last, temperature, greedy)
    worker = made.worker.EagleDraftWorker()
    if prefill:
        drafts = worker._draft_extend_for_prefill(batch)
    else:
        drafts = types.SimpleNamespace(draft_probs=None)
        worker._draft_extend_for_decode(batch, types.SimpleNamespace(next_draft_input=drafts))
    batch.spec_info = drafts
    _, _, ids, rows = worker.draft_forward(batch)
    target = torch.from_numpy(engine.p)
    target = (target.log() / temperature).softmax(-1)
    if greedy is not None:
        sure = torch.nn.functional.one_hot(target.argmax(-1), engine.size).float()
    nodes = torch.cat([last[:, None], ids], 1)
    each = target[nodes]
    if greedy is not None:
        each = torch.where(greedy[:, None, None], sure[nodes], each)
    verify = types.SimpleNamespace(draft_token=nodes, draft_probs=rows)
    predicts, accepted, count = made.utils.eagle_sample(verify, batch, each)
    first = predicts[accepted[:, 0].long()]
    second = torch.where(count > 0, predicts[accepted[:, 1].clamp(min=0).long()], -1)
    return ids, first, second, count, rows


@pytest.mark.parametrize(
    ("size", "n", "ids", "prefill", "temperature"),
    [
        (6, 2, None, True, 1.0),
        (9, 4, None, False, 0.7),
        # The draft's ids in another order than the target's, of which it lacks some.
        (9, 3, [7, 2, 5, 0, 8, 1], False, 1.0),
        # Fewer tokens than drafts.
        (9, 4, [4, 1], True, 1.3),
    ],
)
def test_texts_of_sglang_have_the_law_of_the_target(
    size: int, n: int, ids: list[int] | None, prefill: bool, temperature: float, hooked: Callable[..., Any]
) -> None:
    torch.manual_seed(3)
    engine = Engine(np.random.default_rng(size * n), size, n, ids)
    if n > len(engine.q[0]):
        # SGLang asks for the n likeliest of a row.
        engine.q = np.pad(engine.q, ((0, 0), (0, n - len(engine.q[0]))))
        spare = [x for x in range(size) if x not in (ids or [])]
        engine.ids = torch.tensor((ids or []) + spare[: engine.q.shape[1] - len(ids or [])])
    made = hooked(engine, n)
    runs = 60_000
    last = torch.zeros(runs, dtype=torch.int64) + 1
    drafted, first, second, count, rows = _round(made, engine, last, prefill, temperature)
    target = (torch.from_numpy(engine.p).double().log() / temperature).softmax(-1).numpy()
    # Chi-square with at most size (size + 1) cells, beyond which it passes once in a million.
    found = np.bincount(first.numpy(), minlength=size)
    assert _surprise(found, runs * target[1]) < 5
    kept = count.numpy() > 0
    for x in range(size):
        here = second.numpy()[kept & (first.numpy() == x)]
        if len(here) > 100:
            assert _surprise(np.bincount(here, minlength=size), len(here) * target[x]) < 5
    assert set(count.tolist()) == {0, 1}
    assert bool((drafted == first[:, None]).any(1)[count > 0].all())
    # As often as specgap.rules keeps one of these drafts.
    q = engine.q if engine.ids is None else np.zeros_like(engine.p)
    if engine.ids is not None:
        q[:, engine.ids.numpy()] = engine.q
    q = q[1].astype(float) ** (1 / temperature)
    q /= q.sum()
    assert np.abs(rows[0, 0].numpy() - q).max() < 1e-6
    random = np.random.default_rng(1)
    slots = []
    for _ in range(4000):
        drafts = rules.draft_strata(q, n, random, "independent")
        ended = rules.verify_level(target[1], q, drafts, _Random(random), "independent")  # type: ignore[arg-type]
        slots.append(ended[1] is not None)
    assert abs(np.mean(slots) - kept.mean()) < 5 * 0.5 / np.sqrt(4000)


class _Random:
    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def branch(self, prob: float) -> bool:
        return bool(self.random.random() < prob)

    def choice(self, a: int, p: Any = None) -> int:
        return int(self.random.choice(a, p=p))


def _surprise(found: Any, expected: Any) -> float:
    """Chi-square in standard deviations over its mean."""
    there = expected > 0
    assert found[~there].sum() == 0
    value = ((found[there] - expected[there]) ** 2 / expected[there]).sum()
    degrees = max(int(there.sum()) - 1, 1)
    return float((value - degrees) / np.sqrt(2 * degrees))


def test_requests_without_temperature_get_the_likeliest_tokens(hooked: Callable[..., Any]) -> None:
    engine = Engine(np.random.default_rng(5), 8, 3)
    made = hooked(engine, 3)
    last = torch.arange(8).repeat(50)
    greedy = torch.arange(400) % 2 == 0
    ids, first, _, _, _ = _round(made, engine, last, False, 1.0, greedy)
    best = torch.from_numpy(engine.q).topk(3).indices
    assert bool((ids[greedy] == best[last[greedy]]).all())
    assert bool((first[greedy] == torch.from_numpy(engine.p).argmax(-1)[last[greedy]]).all())
    # All of them: the engine's own drafts. Rows are handed on, as batches are joined row by row.
    drafts = made.worker.EagleDraftWorker()._draft_extend_for_prefill(_batch(last, 1.0, greedy | True))
    assert bool((drafts.topk_index == best[last]).all())
    assert np.abs(drafts.draft_probs.numpy() - engine.q[last.numpy()]).max() < 1e-6


def test_what_is_no_fan_or_another_version_is_refused(
    hooked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(np.random.default_rng(5), 8, 3)
    for options, words in [
        ({"speculative_num_steps": 3}, "--speculative-num-steps is 3; .*set it to 1"),
        ({"speculative_num_draft_tokens": 9}, "--speculative-num-draft-tokens is 9; .*set it to 4"),
        ({"topk": 1, "speculative_num_draft_tokens": 2}, "--speculative-eagle-topk is 1; .*set it to 2"),
    ]:
        made = hooked(engine, 3, **options)
        with pytest.raises(Refused, match=words):
            made.worker.EagleDraftWorker()
    with monkeypatch.context() as patch:
        patch.setattr(sglang, "_strata", lambda row, n, coins: (row.topk(n).indices, None))
        with pytest.raises(Refused, match="rounds of 3 strata end otherwise"):
            sglang.conforms("cpu", 3)
    made = hooked(engine, 3)
    monkeypatch.delattr(made.utils, "eagle_sample")
    with pytest.raises(Refused, match="SGLang has no sglang.srt.speculative.eagle_utils.eagle_sample"):
        sglang.plugin()
    monkeypatch.setenv(sglang.SWITCH, "likeliest")
    with pytest.raises(Refused, match="SPECGAP_DRAFTS is 'likeliest'"):
        sglang.plugin()
    monkeypatch.delenv(sglang.SWITCH)
    sglang.plugin()

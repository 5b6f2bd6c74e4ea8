"""Strata in SGLang: n drafts from the strata of the draft's row, verified by level.

SGLang drafts the n likeliest tokens and keeps one if a draw of the target is it. The same n drafts, one of each
stratum of q and verified by level, are kept more often, and the text keeps the target's law
(``docs/theory/stratified.md``)::

    pip install specgap
    SPECGAP_DRAFTS=stratified python -m sglang.launch_server --model-path MODEL \\
        --speculative-algorithm EAGLE3 --speculative-draft-model-path DRAFT \\
        --speculative-num-steps 1 --speculative-eagle-topk 4 --speculative-num-draft-tokens 5

SGLang loads :func:`plugin` when it starts (entry point ``sglang.srt.plugins``). It does nothing unless
``SPECGAP_DRAFTS`` is set. Drafts are a fan: one step, n = ``--speculative-eagle-topk`` of 2 to 16, and n + 1 draft
tokens. Deeper trees are refused, because SGLang drops drafted nodes of low score, which no rule for sampled drafts
survives (claim ``prune-after-draw``). Requests at temperature 0 get the likeliest tokens, as ever.

Written for SGLang 0.5.23, and run with its own registry, draft steps and ``eagle_sample`` on CPU tensors over tables
of rows, where 60,000 rounds have the target's law. No server has run with it: SGLang samples on a GPU alone. On CUDA
the kernels are :mod:`specgap.fused`'s, elsewhere :mod:`specgap.kernels`'.

Errors: :class:`specgap.Refused` at the start of a server whose options are no fan, whose functions are not those
that were looked up, or whose device gives other tokens than :mod:`specgap.rules` for the same numbers.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from . import Refused, rules
from ._drafting import strata as cut_strata

SWITCH = "SPECGAP_DRAFTS"

_WORKER = "sglang.srt.speculative.eagle_worker_v2.EagleDraftWorker"
_UTILS = "sglang.srt.speculative.eagle_utils"

#: Seeded numbers of a draft: columns that SGLang's own verification does not reach.
_COLUMN = 1 << 16


class _Extend:
    """A step of the draft that ends in the drafts of the next round."""

    def __init__(self, worker: Any, batch: Any) -> None:
        self.worker, self.batch = worker, batch
        self.row: Any = None


_extend: ContextVar[_Extend | None] = ContextVar("specgap_extend", default=None)
_verified: ContextVar[tuple[Any, Any] | None] = ContextVar("specgap_verified", default=None)


def plugin() -> None:
    """Registers the hooks, if ``SPECGAP_DRAFTS`` is ``stratified``."""
    law = os.environ.get(SWITCH, "")
    if not law:
        return
    if law != "stratified":
        raise Refused(f"{SWITCH} is {law!r}; 'stratified' is the one law that this plugin drafts by")
    hooks = importlib.import_module("sglang.srt.plugins.hook_registry")
    for target, (hook, *arguments) in HOOKS.items():
        _check(target, arguments)
        hooks.HookRegistry.register(target, hook, hooks.HookType.AROUND)


def _check(target: str, arguments: list[str]) -> None:
    """Refuses a version of SGLang, or a platform, whose function is another one."""
    try:
        function = pkgutil.resolve_name(target)
    except (ImportError, AttributeError):
        function = None
    if function is None:
        raise Refused(f"SGLang has no {target} here; this plugin was written for 0.5.23 on CUDA")
    missing = set(arguments) - set(inspect.signature(function).parameters)
    if missing:
        raise Refused(f"{target} of SGLang takes no {sorted(missing)[0]}; this plugin was written for 0.5.23")


def _start(original: Callable[..., None], worker: Any, *args: Any, **kwargs: Any) -> None:
    original(worker, *args, **kwargs)
    n = worker.topk
    for option, value, wanted in [
        ("speculative-num-steps", worker.speculative_num_steps, 1),
        ("speculative-num-draft-tokens", worker.speculative_num_draft_tokens, n + 1),
        ("speculative-eagle-topk", n, min(max(n, 2), 16)),
    ]:
        if value != wanted:
            raise Refused(f"--{option} is {value}; {SWITCH} drafts a fan of 2 to 16: set it to {wanted}")
    conforms(worker.device, n)


def _extended(original: Callable[..., Any], worker: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
    """Keeps the row that was drafted from with the drafts."""
    extend = _Extend(worker, batch)
    token = _extend.set(extend)
    try:
        result = original(worker, batch, *args, **kwargs)
    finally:
        _extend.reset(token)
    if extend.row is not None:
        given: Any = args[0] if args else kwargs.get("batch_result")
        drafts = result if result is not None else given.next_draft_input
        drafts.draft_probs = extend.row
    return result


def _softmax(original: Callable[..., Any], logits: Any, sampling_info: Any, *rest: Any, **kwargs: Any) -> Any:
    """The draft's row at the request's temperature: any row is lossless, this one is kept more often."""
    if _extend.get() is None:
        return original(logits, sampling_info, *rest, **kwargs)
    return original(logits, sampling_info, True)


def _topk(original: Callable[..., Any], values: Any, topk: int, dim: int = -1) -> Any:
    extend = _extend.get()
    if extend is None or not values.size(0):
        return original(values, topk, dim=dim)
    return _draft(original, extend, values, topk)


def _draft(original: Callable[..., Any], extend: _Extend, values: Any, n: int) -> Any:
    """One token of each stratum, in the place of the n likeliest: their shares, and their ids in the
    draft's vocabulary."""
    import torch

    worker, info = extend.worker, extend.batch.sampling_info
    likeliest = original(values, n, dim=-1)
    ids = worker.hot_token_id
    row = values.float()
    if ids is not None:
        # Strata are in the order of the target's ids, where they are verified.
        size = worker.target_worker.model_runner.model_config.vocab_size
        row = row.new_zeros((len(row), size)).scatter_(1, ids.long().expand_as(row), row)
    # Of greedy requests too: SGLang joins rows of batches, and drops them where one has none.
    extend.row = row
    if info.is_all_greedy:
        return likeliest
    coins = _coins(info, extend.batch.seq_lens, _COLUMN, n, row.device)
    drafts, _ = _strata(row.contiguous(), n, coins)
    if ids is not None:
        back = torch.zeros(row.shape[1], dtype=torch.int64, device=row.device)
        back[ids.long()] = torch.arange(len(ids), device=row.device)
        drafts = torch.where(drafts < 0, drafts, back[drafts.clamp(min=0)])
    # A row of fewer tokens than drafts has no stratum for the others; a greedy request keeps its likeliest.
    index = torch.where(drafts < 0, likeliest[1], drafts)
    index = torch.where((info.top_ks <= 1).view(-1, 1), likeliest[1], index)
    _same_on_all_ranks(index)
    return values.gather(1, index), index


def _forward(original: Callable[..., Any], worker: Any, forward_batch: Any) -> Any:
    """Hands the row on to verification, as SGLang does under rejection sampling."""
    parents, scores, drafts, rows = original(worker, forward_batch)
    given = forward_batch.spec_info.draft_probs
    if rows is None and given is not None and not forward_batch.forward_mode.is_idle():
        rows = given[:, None]
    return parents, scores, drafts, rows


def _sample(original: Callable[..., Any], verify_input: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
    token = _verified.set((verify_input, batch))
    try:
        return original(verify_input, batch, *args, **kwargs)
    finally:
        _verified.reset(token)


def _sampler(original: Callable[..., Any], *args: Any, **call: Any) -> Any:
    """Rejection by level in place of one draw of the target."""
    import torch

    from . import kernels

    of = _verified.get()
    if of is None or of[0].draft_probs is None or args:
        return original(*args, **call)
    verify_input, batch = of
    target = call["target_probs"].float()
    requests, nodes, size = target.shape
    n = nodes - 1
    row = _to_width(verify_input.draft_probs[:, 0].float(), size)
    coins = _coins(batch.sampling_info, batch.seq_lens, 0, _count(n), target.device)
    token, slot = _verify(target[:, 0].contiguous(), row, call["candidates"][:, 1:], coins)
    kept = slot >= 0
    child = slot.clamp(min=0) + 1
    places = call["retrive_index"].long()
    each = torch.arange(requests, device=target.device)
    bonus = kernels._inverse(target[each, child], call["uniform_samples_for_final_sampling"][:, None].float())[:, 0]
    predicts, accepted = call["predicts"], call["accept_index"]
    predicts[places[:, 0]] = token.to(predicts.dtype)
    behind = places[each, child]
    predicts[behind[kept]] = bonus[kept].to(predicts.dtype)
    accepted[:, 0] = places[:, 0].to(accepted.dtype)
    accepted[kept, 1] = behind[kept].to(accepted.dtype)
    call["accept_token_num"].copy_(kept)
    return None


#: What is hooked, by which hook, and the arguments that the hook reads.
HOOKS: dict[str, tuple[Any, ...]] = {
    f"{_WORKER}.__init__": (_start,),
    f"{_WORKER}._draft_extend_for_prefill": (_extended, "batch"),
    f"{_WORKER}._draft_extend_for_decode": (_extended, "batch", "batch_result"),
    f"{_WORKER}.draft_forward": (_forward, "forward_batch"),
    "sglang.srt.speculative.spec_utils.renorm_draft_probs": (_softmax, "use_rejection_sampling"),
    "sglang.srt.utils.common.fast_topk": (_topk, "values", "topk"),
    f"{_UTILS}.eagle_sample": (_sample, "verify_input", "batch"),
    # Called by keywords.
    f"{_UTILS}.tree_speculative_sampling_target_only": (_sampler,),
}


def _count(n: int) -> int:
    """Numbers that a verification by level takes."""
    return len(rules.STRATA_LEVELS) * n + 1


def _to_width(row: Any, size: int) -> Any:
    """The row with as many tokens as the target's: padding of either vocabulary has no mass."""
    import torch

    if row.shape[1] < size:
        row = torch.nn.functional.pad(row, (0, size - row.shape[1]))
    return row[:, :size].contiguous()


def _strata(row: Any, n: int, coins: Any) -> tuple[Any, Any]:
    if row.is_cuda:
        from . import fused

        return fused.draft_strata(row, n, coins)
    from . import kernels

    return kernels.draft_strata(row, n, coins, straddle="independent"), None


def _verify(target: Any, row: Any, drafts: Any, coins: Any) -> tuple[Any, Any]:
    n = drafts.shape[1]
    drafts = drafts.long().contiguous()
    if target.is_cuda:
        from . import fused

        _, cuts = fused.draft_strata(row, n, coins[:, :n].contiguous())
        return fused.verify_level(target, row, drafts, cuts, coins)
    from . import kernels

    return kernels.verify_level(target, row, drafts, coins, straddle="independent")


def _coins(info: Any, lengths: Any, column: int, count: int, device: Any) -> Any:
    """Uniform numbers [B, count]: of the request's seed and its length, as SGLang makes its own, or fresh."""
    import torch

    if info.sampling_seed is None:
        return torch.rand((len(lengths), count), dtype=torch.float32, device=device)
    module = importlib.import_module("sglang.kernels.ops.sampling.murmur_hash")
    columns = torch.arange(column, column + count, device=device, dtype=torch.int64)
    hashed = module.murmur_hash32(info.sampling_seed.to(torch.uint64), lengths.to(torch.uint64), columns)
    even = hashed.to(torch.float64) / torch.iinfo(torch.uint32).max
    return even.to(torch.float32).clamp_(max=1 - 2**-24).contiguous()


def _same_on_all_ranks(index: Any) -> None:
    """Ranks of one model draft the same: their rows differ by rounding."""
    attention = importlib.import_module("sglang.srt.layers.dp_attention")
    parallel = importlib.import_module("sglang.srt.runtime_context").get_parallel()
    group = parallel.attn_tp_group if attention.is_dp_attention_enabled() else parallel.tp_group
    if group.world_size > 1:
        group.broadcast(index, src=0)


def conforms(device: Any, n: int, rows: int = 64) -> None:
    """Refuses a device on which drafts or verified tokens are others than those of :mod:`specgap.rules`.

    64 pairs of rows of 40 tokens, peaked, flat and with zeros, are drafted from and verified there, and by
    :func:`specgap.rules.verify_level` from the same uniform numbers. One of 64 may differ: rows are in single
    precision there.

    Raises:
        Refused: names how many differ.
    """
    import torch

    random = np.random.default_rng(0)
    sharp = np.exp(random.normal(size=(2, rows, 40)) * random.uniform(0.5, 4, (1, rows, 1)))
    sharp[:, ::4, 30:] = 0
    p, q = (sharp / sharp.sum(-1, keepdims=True)).astype(np.float32)
    drawn, coins = (random.random((rows, k), dtype=np.float32) for k in (n, _count(n)))
    there = [torch.from_numpy(one).to(device) for one in (p, q, drawn, coins)]
    drafts, _ = _strata(there[1], n, there[2])
    token, slot = _verify(there[0], there[1], drafts, there[3])
    other = 0
    for i in range(rows):
        target, row = p[i].astype(float), q[i].astype(float)
        here = rules.draft_strata(row, n, _Numbers([], drawn[i]), "independent")  # type: ignore[arg-type]
        strata = range(len(cut_strata(row, n, "independent")[1]))
        turns = [turn * n + j for turn in range(len(rules.STRATA_LEVELS)) for j in reversed(strata)]
        numbers = _Numbers(coins[i, turns], coins[i, -1:])
        found = rules.verify_level(target, row, here, numbers, "independent")  # type: ignore[arg-type]
        same = [int(x) for x in drafts[i] if x >= 0] == here.tolist()
        other += not (same and found == (int(token[i]), int(slot[i]) if slot[i] >= 0 else None))
    if other > max(1, rows // 64):
        raise Refused(
            f"on {device} {other} of {rows} rounds of {n} strata end otherwise than by specgap.rules; "
            f"start without {SWITCH}, and report it"
        )


class _Numbers:
    """Given uniform numbers, for what is kept or not and for what is drawn."""

    def __init__(self, kept: Any, drawn: Any) -> None:
        self.kept, self.drawn = [float(one) for one in kept], [float(one) for one in drawn]

    def branch(self, prob: float) -> bool:
        return self.kept.pop(0) < prob

    def choice(self, a: int, p: Any) -> int:
        ends = np.cumsum(p)
        found = int(np.searchsorted(ends, self.drawn.pop(0) * ends[-1], side="right"))
        return min(found, int(np.flatnonzero(p)[-1]))

"""Verification in mlx-lm by a sampler alone: more tokens per pass with the same drafts, without a patch.

mlx-lm draws a token from each of the target's rows and keeps a draft if it is that token. A
:class:`Sampler` keeps it by a rule that accepts more, and the text keeps the target's law::

    from mlx_lm import load, generate
    from specgap.mlx import Sampler

    model, tokenizer = load("mlx-community/Qwen2.5-7B-Instruct-4bit")
    draft, _ = load("mlx-community/Qwen2.5-0.5B-Instruct-4bit")
    text = generate(model, tokenizer, "Why?", draft_model=draft, num_draft_tokens=4,
                    sampler=Sampler("block", num_draft_tokens=4, temp=0.7, top_p=0.95))

A sampler belongs to one text. Rows come to the host as NumPy arrays: O(V) a drafted token.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import Refused
from .carried import Carried, Draws, _happens, _token

Law = NDArray[np.float64]


def _by_token(p: Law, q: Law, drafts: Sequence[int], rng: Draws) -> tuple[int, int]:
    """Keeps a draft with min(1, p/q); else a token of (p - q)+ (Leviathan et al., Algorithm 1)."""
    for k, x in enumerate(drafts):
        if not _happens(float(p[k, x] / max(q[k, x], 1e-300)), rng):
            return k, _token((p[k] - q[k]).clip(min=0), p[k], rng)
    return len(drafts), _token(p[-1], p[-1], rng)


def _by_block(p: Law, q: Law, drafts: Sequence[int], rng: Draws) -> tuple[int, int]:
    """Keeps the longest part of a chain that it can (Sun et al., Block verification, Algorithm 2)."""
    weights = [1.0]
    for k, x in enumerate(drafts):
        weights.append(min(weights[-1] * float(p[k, x] / max(q[k, x], 1e-300)), 1.0))
    for k in range(len(drafts), 0, -1):
        weight = weights[k]
        left = float((weight * p[k] - q[k]).clip(min=0).sum()) if k < len(drafts) else 1.0
        chance = weight if k == len(drafts) else left / max(left + 1 - weight, 1e-300)
        if _happens(chance, rng):
            break
    else:
        k = 0
    if k == len(drafts):
        return k, _token(p[k], p[k], rng)
    return k, _token((weights[k] * p[k] - q[k]).clip(min=0), p[k], rng)


_RULES: dict[str, Callable[[Law, Law, Sequence[int], Draws], tuple[int, int]]] = {
    "token": _by_token,
    "block": _by_block,
}


class Sampler:
    """A sampler for mlx-lm's ``generate``, ``stream_generate`` and ``speculative_generate_step``.

    Rules are ``"token"``, ``"block"`` and ``"carried"``. The last one needs the draft's row behind a
    whole chain, and so ``draft_model`` and the ``prompt_cache`` that is given to mlx-lm too, of both
    models; it is one step of the draft more a round. ``"carried-block"`` cannot run here: mlx-lm goes
    on where a token that a rule draws is the draft that it refused, and then asks for a token more
    than the rule has rows for.

    ``num_draft_tokens`` is mlx-lm's. ``temp``, ``top_p``, ``min_p`` and ``top_k`` are those of its
    ``make_sampler``, in its order, for both models. Not with ``logits_processors``, for which
    mlx-lm calls a sampler row by row.

    ``accepted`` has how many drafts each round kept.

    >>> rows = np.log(np.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> sampler = Sampler("token", num_draft_tokens=1, seed=1)
    >>> draft = sampler(rows[:1])
    >>> len(sampler(rows)), len(sampler.accepted)
    (2, 1)
    """

    def __init__(
        self,
        rule: Literal["token", "block", "carried"] = "block",
        num_draft_tokens: int = 2,
        *,
        temp: float = 1.0,
        top_p: float = 0.0,
        min_p: float = 0.0,
        top_k: int = 0,
        seed: int | None = None,
        draft_model: Any = None,
        prompt_cache: Sequence[Any] | None = None,
        rng: Draws | None = None,
    ) -> None:
        if rule not in (*_RULES, "carried"):
            raise Refused(f"rule: there is no {rule!r} for mlx-lm; take 'block', 'token' or 'carried'")
        if num_draft_tokens < 1:
            raise Refused(f"num_draft_tokens is {num_draft_tokens}; at least 1 token is drafted")
        if not temp > 0:
            raise Refused(
                f"temp is {temp}; at 0 mlx-lm's own sampler keeps what any rule would: leave sampler out"
            )
        if rule == "carried" and (draft_model is None or prompt_cache is None):
            raise Refused(
                "carried reads the draft's row behind a chain: give draft_model, and the prompt_cache of "
                "both models that mlx-lm gets, make_prompt_cache(model) + make_prompt_cache(draft_model)"
            )
        self.num_draft_tokens = num_draft_tokens
        self.accepted: list[int] = []
        self._temp = temp
        self._cuts = {"top_p": top_p if top_p < 1 else 0.0, "min_p": min_p, "top_k": top_k}
        self._draft_model = draft_model
        self._cache = prompt_cache
        self._rng: Draws = np.random.default_rng(seed) if rng is None else rng
        self._drafted: list[tuple[int, Law]] = []
        self._is_carried = rule == "carried"
        self._verify = Carried(num_draft_tokens).verify if rule == "carried" else _RULES[rule]

    def __call__(self, logprobs: Any) -> Any:
        """Draws a draft from a row of the draft, or verifies by K + 1 rows of the target."""
        laws = self._laws(logprobs)
        rows = len(laws)
        if rows == 1 and len(self._drafted) < self.num_draft_tokens:
            token = _token(laws[0], laws[0], self._rng)
            self._drafted.append((token, laws[0]))
            return self._like(logprobs, [token])
        if rows != len(self._drafted) + 1 or rows == 1:
            raise Refused(
                f"mlx-lm gives {rows} rows behind {len(self._drafted)} drafts, where this sampler knows of "
                f"num_draft_tokens {self.num_draft_tokens}; give both the same number, no "
                "logits_processors, and a sampler of its own to each text"
            )
        return self._like(logprobs, self._verified(laws))

    def _verified(self, p: Law) -> list[int]:
        drafts = [token for token, _ in self._drafted]
        behind = self._behind(drafts[-1]) if self._is_carried else np.zeros_like(p[0])
        q = np.stack([*(law for _, law in self._drafted), behind])
        self._drafted = []
        kept, token = self._verify(p, q, drafts, self._rng)
        tokens = [*drafts[:kept], token]
        # mlx-lm takes a token that is the refused draft for a kept one, and asks for the next.
        while len(tokens) <= len(drafts) and tokens[-1] == drafts[len(tokens) - 1]:
            tokens.append(_token(p[len(tokens)], p[len(tokens)], self._rng))
        self.accepted.append(len(tokens) - 1)
        # mlx-lm looks at no token behind the first that is no draft.
        return tokens + [0] * (len(p) - len(tokens))

    def _behind(self, token: int) -> Law:
        """The draft's law behind its last draft, which mlx-lm does not ask for."""
        mx = importlib.import_module("mlx.core")
        trim = importlib.import_module("mlx_lm.models.cache").trim_prompt_cache
        assert self._cache is not None
        own = list(self._cache)[-len(self._draft_model.layers) :]
        logits = self._draft_model(mx.array([[token]], mx.uint32), cache=own)[:, -1, :]
        law: Law = self._laws(logits - mx.logsumexp(logits, axis=-1, keepdims=True))[0]
        trim(own, 1)
        return law

    def _laws(self, logprobs: Any) -> Law:
        for name, value in self._cuts.items():
            if value:
                cut = getattr(importlib.import_module("mlx_lm.sample_utils"), f"apply_{name}")
                logprobs = cut(logprobs, value)
        if not isinstance(logprobs, np.ndarray):
            mx = importlib.import_module("mlx.core")
            logprobs = logprobs.astype(mx.float32)
        rows = np.array(logprobs, dtype=np.float64) / self._temp
        weights = np.exp(rows - rows.max(-1, keepdims=True))
        laws: Law = weights / weights.sum(-1, keepdims=True)
        return laws

    @staticmethod
    def _like(logprobs: Any, tokens: list[int]) -> Any:
        if isinstance(logprobs, np.ndarray):
            return np.array(tokens)
        mx = importlib.import_module("mlx.core")
        return mx.array(tokens, mx.uint32)

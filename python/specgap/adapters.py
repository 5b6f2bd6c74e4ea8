"""Public implementations as verifiers for :func:`specgap.evaluate`.

Each adapter takes the function of an implementation, with the signature that it has there, and
returns a verifier. What needs torch imports it when it is called.

======================================  =========================================================
adapter                                 the function's signature
======================================  =========================================================
:func:`transformers`                    ``_speculative_sampling(candidate_input_ids,
                                        candidate_logits, candidate_length, new_logits)
                                        -> (valid_tokens, n_matches)``
:func:`evaluate_posterior`              EAGLE's ``evaluate_posterior(logits, candidates,
                                        logits_processor) -> (best_candidate, accept_length,
                                        sample_p)``
:func:`accept_step`                     Sequoia's and SpecHub's step over siblings:
                                        ``f(p, q, drafts) -> (accepted index or None, residual)``
:func:`chain_speculative_sampling`      FlashInfer's ``chain_speculative_sampling(draft_probs,
                                        draft_token_ids, target_probs, ...) -> (output_ids, ..)``
:func:`rejection_sample`                vLLM's ``rejection_sample(draft_token_ids,
                                        num_draft_tokens, max_spec_len, cu_num_draft_tokens,
                                        draft_probs, target, bonus_token_ids, sampling_metadata)``
======================================  =========================================================

All but the first two are about one draft (n = 1): a chain's later drafts stand on other rows.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ._drafting import Floats, Integers
from ._evaluate import Branching, Verifier


def _seeded(rng: Branching) -> Any:
    """torch, with its generator seeded by ours."""
    import torch

    torch.manual_seed(rng.seed())
    return torch


def _logits(torch: Any, row: Floats) -> Any:
    with np.errstate(divide="ignore"):
        return torch.from_numpy(np.log(row))


def _only(drafts: Integers, what: str) -> int:
    if len(drafts) != 1:
        raise ValueError(f"{what} verifies a chain: n is 1 on one pair of rows, not {len(drafts)}")
    return int(drafts[0])


def transformers(function: Callable[..., Any]) -> Verifier:
    """``transformers.generation.utils._speculative_sampling``, on a chain of one draft."""
    # Older versions ask whether the candidate ends the text.
    older = "is_done_candidate" in inspect.signature(function).parameters

    def verifier(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> Any:
        draft = _only(drafts, "_speculative_sampling")
        torch = _seeded(rng)
        target = _logits(torch, p)
        valid, matches = function(
            torch.tensor([[draft]]),
            _logits(torch, q)[None, None],
            1,
            torch.stack([target, target])[None],
            *([False] if older else []),
        )
        return int(valid[0, 0]), 0 if int(matches) else None

    verifier.__name__ = getattr(function, "__name__", "transformers")
    return verifier


def evaluate_posterior(function: Callable[..., Any], *, processor: Any = None) -> Verifier:
    """EAGLE's ``evaluate_posterior``, over siblings: n candidates of one token behind the
    root. ``processor`` is its ``logits_processor``; the identity, if not given."""
    keep = processor if processor is not None else (lambda _, logits: logits)

    def verifier(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> Any:
        import random

        torch = _seeded(rng)
        random.seed(rng.seed())
        rows = _logits(torch, p)[None, None].repeat(len(drafts), 2, 1)
        # A root, which is not verified, and its children.
        candidates = torch.tensor([[0, int(x)] for x in drafts])
        best, length, law = function(rows, candidates, keep)
        if int(length):
            slot = int(best)
            return int(drafts[slot]), slot
        return law.reshape(-1).double().numpy()

    verifier.__name__ = getattr(function, "__name__", "evaluate_posterior")
    return verifier


def accept_step(function: Callable[..., Any], *, as_torch: bool = False) -> Verifier:
    """A step over sibling drafts that says which is accepted, or what is left of p: the shape
    that Sequoia's and SpecHub's ``accept_step`` has once its tree is taken away,
    ``f(p, q, drafts) -> (index, None) or (None, residual)``. With ``as_torch`` it is handed
    tensors. Its random numbers are its own."""

    def verifier(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> Any:
        if as_torch:
            torch = _seeded(rng)
            given = torch.from_numpy(p), torch.from_numpy(q), torch.from_numpy(drafts)
        else:
            np.random.seed(rng.seed() % 2**32)
            given = p, q, drafts
        slot, residual = function(*given)
        if slot is not None:
            return int(drafts[int(slot)]), int(slot)
        law = np.asarray(residual, dtype=np.float64).reshape(-1)
        return law / law.sum()

    verifier.__name__ = getattr(function, "__name__", "accept_step")
    return verifier


def chain_speculative_sampling(function: Callable[..., Any]) -> Verifier:
    """FlashInfer's kernel on a chain of one draft. On a GPU, if the function is."""

    def verifier(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> Any:
        draft = _only(drafts, "chain_speculative_sampling")
        torch = _seeded(rng)
        place = "cuda" if torch.cuda.is_available() else "cpu"
        target = torch.from_numpy(p).float().to(place)
        found = function(
            torch.from_numpy(q).float().to(place)[None, None],
            torch.tensor([[draft]], dtype=torch.int32, device=place),
            torch.stack([target, target])[None],
        )
        ids = (found[0] if isinstance(found, tuple) else found)[0].tolist()
        return int(ids[0]), 0 if len(ids) > 1 and ids[1] >= 0 else None

    verifier.__name__ = getattr(function, "__name__", "chain_speculative_sampling")
    return verifier


def rejection_sample(function: Callable[..., Any], *, probabilities: bool = False) -> Verifier:
    """vLLM's ``rejection_sample`` on a request of one draft. Its sixth argument is the target's
    logits; its probabilities, in older versions (``probabilities=True``)."""

    def verifier(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> Any:
        draft = _only(drafts, "rejection_sample")
        torch = _seeded(rng)
        target = torch.from_numpy(p).float() if probabilities else _logits(torch, p).float()
        metadata = types.SimpleNamespace(
            all_greedy=False, all_random=True, generators={}, temperature=torch.ones(1)
        )
        out = function(
            torch.tensor([draft], dtype=torch.int32),
            [1],
            1,
            torch.tensor([1], dtype=torch.int32),
            torch.from_numpy(q).float()[None].contiguous(),
            target[None].contiguous(),
            torch.multinomial(torch.from_numpy(p), 1)[None].to(torch.int32),
            metadata,
        )[0].tolist()
        return int(out[0]), 0 if out[1] >= 0 else None

    verifier.__name__ = getattr(function, "__name__", "rejection_sample")
    return verifier

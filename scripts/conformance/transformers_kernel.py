"""transformers' `generation.utils._speculative_sampling`, as the harness calls it.

`token_coins` hands it the uniform numbers in place of torch.rand_like's. Checked with transformers
5.23.0 and torch 2.15.0 on the CPU.
"""

import numpy
import torch
from transformers.generation import utils

FINAL_COIN = False
torch.set_num_threads(1)


def call(vector):
    """The arguments: logits whose softmax are the rows."""
    with numpy.errstate(divide="ignore"):
        p = torch.from_numpy(numpy.log(vector.target))[None]
        q = torch.from_numpy(numpy.log(vector.draft))[None]
    ids = torch.from_numpy(vector.drafts)[None]
    return ids, q, len(vector.drafts), p


def outcome(result):
    valid, matches = result
    return int(matches), int(valid[0, -1])


def token(vector, samples, seed):
    torch.manual_seed(seed)
    arguments = call(vector)
    # The function takes one sequence at a time.
    samples_here = [outcome(utils._speculative_sampling(*arguments)) for _ in range(samples)]
    return tuple(numpy.array(samples_here).T)


def token_coins(vector, coins, final_coin):
    torch.manual_seed(0)
    arguments, original, outcomes = call(vector), torch.rand_like, []
    try:
        for tests in coins:
            torch.rand_like = lambda like, tests=tests: torch.tensor(tests, dtype=like.dtype)
            outcomes.append(outcome(utils._speculative_sampling(*arguments)))
    finally:
        torch.rand_like = original
    return tuple(numpy.array(outcomes).T)

"""SGLang's chain kernel in Triton's interpreter, on the CPU.

    SPECGAP_SGLANG=DIR python harness.py vectors --kernel sglang_kernel --samples 400 --largest 1024

DIR is the unpacked wheel; `sglang/kernels/ops/speculative/reject_sampling.py` is loaded by itself.
The kernel is a function of its uniform numbers. Checked with SGLang 0.5.23, Triton 3.9.0.
"""

import importlib.util
import os
import pathlib

os.environ["TRITON_INTERPRET"] = "1"

import numpy
import torch

SOURCE = (
    pathlib.Path(os.environ["SPECGAP_SGLANG"])
    / "sglang/kernels/ops/speculative/reject_sampling.py"
)
spec = importlib.util.spec_from_file_location("reject_sampling", SOURCE)
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)


def token_coins(vector, coins, final_coin):
    samples, k = coins.shape
    v = vector.target.shape[-1]
    slots = k + 1
    # The first slot is the token before the drafts.
    candidates = torch.zeros((samples, slots), dtype=torch.int64)
    candidates[:, 1:] = torch.from_numpy(vector.drafts)
    index = torch.arange(samples * slots, dtype=torch.int64).reshape(samples, slots)
    predicts = torch.full((samples * slots,), -1, dtype=torch.int32)
    accept_index = torch.full((samples, slots), -1, dtype=torch.int32)
    count = torch.zeros(samples, dtype=torch.int32)
    kernels.chain_speculative_sampling_triton(
        predicts=predicts,
        accept_index=accept_index,
        accept_token_num=count,
        candidates=candidates,
        retrive_index=index,
        retrive_next_token=None,
        retrive_next_sibling=None,
        uniform_samples=torch.from_numpy(numpy.hstack([coins, coins[:, :1]]).astype(numpy.float32)),
        uniform_samples_for_final_sampling=torch.from_numpy(final_coin.astype(numpy.float32)),
        target_probs=torch.from_numpy(vector.target).repeat(samples, 1, 1).contiguous(),
        draft_probs=torch.from_numpy(vector.draft).repeat(samples, 1, 1).contiguous(),
        threshold_single=1.0,
        threshold_acc=1.0,
        deterministic=True,
    )
    accepted = count.numpy()
    last = accept_index.numpy()[numpy.arange(samples), accepted]
    return accepted, predicts.numpy()[last]


def token(vector, samples, seed):
    random = numpy.random.default_rng(seed)
    coins = random.random((samples, len(vector.drafts)), numpy.float32)
    return token_coins(vector, coins, random.random(samples, numpy.float32))

"""vLLM's rejection sampling kernels in Triton's interpreter, on the CPU.

    SPECGAP_VLLM=DIR python harness.py vectors --kernel vllm_kernel --samples 400 --largest 1024

DIR is the unpacked wheel. The functions of vllm/v1/sample/rejection_sampler.py are taken from the
source as they stand: the wheel does not import without a GPU's libraries. Uniform numbers and the
noise of the recovered token come from torch, as there. Checked with vLLM 0.33.0, Triton 3.9.0.
"""

import ast
import importlib.util
import inspect
import linecache
import os
import pathlib
import tempfile
import types

os.environ["TRITON_INTERPRET"] = "1"

import numpy
import torch

FINAL_COIN = False
SOURCE = pathlib.Path(os.environ["SPECGAP_VLLM"]) / "vllm/v1/sample/rejection_sampler.py"
NAMES = [
    "rejection_random_sample_kernel",
    "sample_recovered_tokens_kernel",
    "_rejection_random_sample",
    "_sample_recovered_tokens",
    "sample_recovered_tokens",
    "generate_uniform_probs",
    "rejection_sample",
]
HEADER = """from __future__ import annotations
import torch
import triton
import triton.language as tl
PLACEHOLDER_TOKEN_ID: tl.constexpr = -1
GREEDY_TEMPERATURE: tl.constexpr = 0

"""


def dispatcher(kernel, warmup_inputs):
    """Launches a kernel with the arguments of its wrapper, and those that it returns."""

    def decorate(function):
        signature = inspect.signature(function)

        def launch(*args, **kwargs):
            grid, more = function(*args, **kwargs)
            given = signature.bind(*args, **kwargs).arguments | more
            names = ((name, name.removesuffix("_ptr")) for name in kernel.arg_names)
            kernel[grid](**{name: given[short] for name, short in names})

        return launch

    return decorate


def load():
    """The functions, in a module of their own: Triton reads their source from a file."""
    lines = SOURCE.read_text().splitlines(keepends=True)
    found = {
        node.name: node for node in ast.parse("".join(lines)).body
        if isinstance(node, ast.FunctionDef)
    }
    text = HEADER
    for name in NAMES:
        node = found[name]
        first = min([node, *node.decorator_list], key=lambda part: part.lineno).lineno
        text += "".join(lines[first - 1 : node.end_lineno]) + "\n\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "vllm_kernels.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("vllm_kernels", path)
        module = importlib.util.module_from_spec(spec)
        module.triton_kernel_dispatcher_with_warmup = dispatcher
        module._rejection_random_sample_warmup_inputs = None
        module._sample_recovered_tokens_warmup_inputs = None
        spec.loader.exec_module(module)
        # The interpreter reads the source when a kernel first runs.
        for kernel in ("rejection_random_sample_kernel", "sample_recovered_tokens_kernel"):
            linecache.getlines(str(path))
            getattr(module, kernel).rewrite()
    return module


kernels = load()


def run(vector, samples, one_hot, coins=None):
    """A batch of the same request, through `rejection_sample`."""
    k, v = len(vector.drafts), vector.target.shape[-1]
    with numpy.errstate(divide="ignore"):
        logits = torch.from_numpy(numpy.log(vector.target[:k])).repeat(samples, 1)
    draft = None if one_hot else torch.from_numpy(vector.draft).repeat(samples, 1).contiguous()
    bonus = torch.multinomial(torch.from_numpy(vector.target[k]), samples, replacement=True)
    metadata = types.SimpleNamespace(
        all_greedy=False, all_random=True, generators={}, temperature=torch.ones(samples)
    )
    original = kernels.generate_uniform_probs
    if coins is not None:
        given = torch.from_numpy(numpy.ascontiguousarray(coins)).reshape(-1)
        kernels.generate_uniform_probs = lambda *_: given
    try:
        out = kernels.rejection_sample(
            torch.from_numpy(vector.drafts).to(torch.int32).repeat(samples),
            [k] * samples,
            k,
            torch.arange(1, samples + 1, dtype=torch.int32) * k,
            draft,
            logits.contiguous(),
            bonus[:, None].contiguous(),
            metadata,
        ).numpy()
    finally:
        kernels.generate_uniform_probs = original
    accepted = (out >= 0).sum(1) - 1
    return accepted, out[numpy.arange(samples), accepted]


def token(vector, samples, seed):
    torch.manual_seed(seed)
    return run(vector, samples, False)


def one_hot(vector, samples, seed):
    torch.manual_seed(seed)
    return run(vector, samples, True)


def token_coins(vector, coins, final_coin):
    torch.manual_seed(0)
    return run(vector, len(coins), False, coins)


def one_hot_coins(vector, coins, final_coin):
    torch.manual_seed(0)
    return run(vector, len(coins), True, coins)

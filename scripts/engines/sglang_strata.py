#!/usr/bin/env python3
"""Rounds of specgap.sglang through SGLang's own code, on CPU tensors.

SGLang's package is imported as it is, without its kernels: what it imports and this machine lacks stands as an
object that does nothing. Its hook registry hooks its own draft steps and ``eagle_sample``, which run on tables of
rows in place of models. Prints chi-square of the tokens against the target's law, and the share of drafts kept
beside its exact value.

    pip download --no-deps sglang==0.5.23 && unzip -d sglang-src sglang-*.whl
    pip install torch numpy msgspec pydantic orjson psutil requests pyzmq fastapi aiohttp einops tqdm regex tiktoken \\
        pybase64 xxhash IPython uvicorn prometheus_client setproctitle pillow scipy openai dill transformers \\
        apache-tvm-ffi
    pip install --no-deps xgrammar llguidance mistral_common openai-harmony
    python scripts/engines/sglang_strata.py sglang-src
"""

import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
import warnings
from unittest.mock import MagicMock

HOME = os.path.abspath(sys.argv[1])
KERNELS = ("sgl_kernel", "flashinfer", "outlines", "decord", "torchcodec", "modelscope", "torchao")
ROUNDS, SIZE, DRAFTS, TEMPERATURE = 60_000, 9, 4, 0.8


class Nothing(types.ModuleType):
    """A module of objects that do nothing."""

    __path__: list[str] = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what SGLang imports and nothing else has."""

    def find_spec(self, name, path, target=None):
        frame = sys._getframe(1)
        while frame and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        of_engine = frame is not None and frame.f_code.co_filename.startswith(HOME)
        if name.partition(".")[0] in KERNELS or (of_engine and not name.startswith("sglang")):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Nothing(spec.name)

    def exec_module(self, module):
        pass


def main():
    import numpy
    import torch

    warnings.simplefilter("ignore")
    sys.path.insert(0, HOME)
    sys.meta_path.append(Missing())
    import sglang.srt.layers.dp_attention as attention
    import sglang.srt.runtime_context as context
    import sglang.srt.speculative.eagle_utils as utils
    import sglang.srt.speculative.eagle_worker_v2 as steps
    import sglang.srt.speculative.spec_utils as common
    from sglang.srt.plugins.hook_registry import HookRegistry

    from specgap import sglang as plugin

    def own_rule(**call):
        raise AssertionError("the engine's own rule ran")

    # What a machine without its kernels lacks.
    utils.tree_speculative_sampling_target_only = own_rule
    os.environ[plugin.SWITCH] = "stratified"
    plugin.plugin()
    HookRegistry.apply_hooks()
    assert HookRegistry._patched == set(plugin.HOOKS)

    some = types.SimpleNamespace
    spec = some(
        speculative_use_rejection_sampling=False, speculative_use_block_verification=False,
        speculative_accept_threshold_single=1.0, speculative_accept_threshold_acc=1.0,
    )  # fmt: skip
    for module in (steps, utils, common):
        module.get_spec = lambda: spec
    alone = some(world_size=1)
    context.get_parallel = lambda: some(tp_group=alone, attn_tp_group=alone)
    attention.is_dp_attention_enabled = lambda: False
    steps.per_step_draft_out_cache_loc = lambda places, *rest: places
    utils._is_cpu = utils._is_hip = utils._is_xpu = False
    for module in (utils, common):
        module.sampling_softmax = lambda logits, temperatures=1.0: torch.softmax(logits / temperatures, -1)

    random = numpy.random.default_rng(4)
    rows = random.dirichlet(numpy.full(SIZE, 0.7), (2, SIZE)).astype(numpy.float32)
    target, draft = torch.from_numpy(numpy.log(rows))
    mode = some(is_idle=lambda: False)
    last = torch.ones(ROUNDS, dtype=torch.int64)
    width = DRAFTS + 1
    info = some(
        temperatures=torch.full((ROUNDS, 1), TEMPERATURE), top_ks=torch.full((ROUNDS,), 1 << 30),
        sampling_seed=None, is_all_greedy=False, need_top_k_sampling=False, need_top_p_sampling=False,
        need_min_p_sampling=False, acc_additive_penalties=None, acc_scaling_penalties=None, logit_bias=None,
        has_watermark_candidates=False,
    )  # fmt: skip
    batch = some(
        sampling_info=info, seq_lens=torch.full((ROUNDS,), 7), forward_mode=mode, spec_info=None,
        return_logprob=False, device="cpu",
    )  # fmt: skip

    def forward(of):
        logits = draft[last].repeat_interleave(width, 0)
        return some(logits_output=some(next_token_logits=logits, hidden_states=torch.zeros(len(logits), 2)))

    worker = object.__new__(steps.EagleDraftWorker)
    config = some(hf_config=some(architectures=["none"]), model_is_mrope=False)
    vars(worker).update(
        topk=DRAFTS, speculative_num_steps=1, speculative_num_draft_tokens=width, device="cpu",
        hot_token_id=None, seed_dsa_topk_from_draft_extend=False, plan_stream=None,
        plan_stream_ctx=contextlib.nullcontext(), cuda_graph_runner_for_draft_extend=None,
        index_share_for_mtp_iteration=False, _topk1_parents_prealloc=torch.zeros(1, 1),
        draft_runner=some(forward=forward, canary_manager=None, model_config=config),
    )  # fmt: skip
    steps.prepare_for_draft_extend = lambda *args, **kwargs: some(
        spec_info=some(), input_ids=last, forward_mode=mode
    )
    drafts = some(topk_p=None, topk_index=None, hidden_states=None, draft_probs=None)
    before = some(
        prepared_draft_extend_inputs=None, accept_lens=last, next_token_ids=torch.zeros(ROUNDS * width),
        logits_output=some(hidden_states=torch.zeros(ROUNDS * width, 2)), next_draft_input=drafts,
        new_seq_lens=torch.full((ROUNDS,), 8),
    )  # fmt: skip
    worker._draft_extend_for_decode(batch, before)
    forwarded = some(
        spec_info=drafts, forward_mode=mode, out_cache_loc=torch.zeros(ROUNDS * DRAFTS), batch_size=ROUNDS,
        sampling_info=info,
    )  # fmt: skip
    _, _, tokens, laws = worker.draft_forward(forwarded)
    nodes = torch.cat([last[:, None], tokens], 1)
    places = torch.arange(ROUNDS * width).reshape(ROUNDS, width)
    verify = some(
        draft_token_num=width, draft_token=nodes.flatten(), max_tree_depth=2, retrieve_index=places,
        retrieve_next_token=None, retrieve_next_sibling=None, tree_topk=DRAFTS, draft_probs=laws,
    )  # fmt: skip
    scored = some(next_token_logits=target[nodes.flatten()])
    predicts, lengths, index = utils.eagle_sample(verify, batch, scored)[:3]
    law = torch.softmax(target / TEMPERATURE, -1).double().numpy()
    first, kept = predicts[index[:, 0].long()].numpy(), (lengths > 1).numpy()
    second = predicts[index[:, 1].clamp(min=0).long()].numpy()
    surprise(first, law[1], "the first token")
    for x in range(SIZE):
        surprise(second[kept & (first == x)], law[x], f"the token behind draft {x}")
    row = torch.softmax(draft / TEMPERATURE, -1).double().numpy()[1]
    print(f"kept {kept.mean():.4f} +- {2 / ROUNDS**0.5 / 2:.4f}, by all drafts and coins {exact(law[1], row):.4f}")


def exact(p, q):
    """How often a draft is kept, by every draft and every coin of specgap.rules."""
    import numpy
    from specgap import rules

    found = 0.0
    for drafts, chance in explored(lambda coins: rules.draft_strata(q, DRAFTS, coins, "independent")):
        play = explored(lambda coins: rules.verify_level(p, q, numpy.array(drafts), coins, "independent"))
        found += chance * sum(share for (_, slot), share in play if slot is not None)
    return found


class Coins:
    """The choices of one run: those that are given, then the first possible ones."""

    def __init__(self, given):
        self.taken, self.open, self.chance, self.at = given, [], 1.0, 0

    def _pick(self, shares):
        there = [k for k, share in enumerate(shares) if share > 0]
        if self.at == len(self.taken):
            self.taken.append(0)
        found = there[self.taken[self.at]]
        self.open.append(len(there))
        self.at += 1
        self.chance *= shares[found]
        return found

    def branch(self, prob):
        return self._pick([1 - prob, prob]) == 1

    def choice(self, a, p):
        return self._pick(list(p / p.sum()))


def explored(run):
    """All outcomes, each with its probability."""
    taken = []
    while True:
        coins = Coins(taken)
        yield run(coins), coins.chance
        while taken and taken[-1] + 1 >= coins.open[len(taken) - 1]:
            taken.pop()
        if not taken:
            return
        taken[-1] += 1


def surprise(tokens, law, name):
    import numpy

    if len(tokens) < 200:
        return
    expected = len(tokens) * law
    value = ((numpy.bincount(tokens, minlength=SIZE) - expected) ** 2 / expected).sum()
    print(f"{name}: {len(tokens)} times, chi-square {value:.1f} of {SIZE - 1} degrees")
    assert value < SIZE - 1 + 6 * (2 * (SIZE - 1)) ** 0.5


if __name__ == "__main__":
    main()

"""The real verification functions of vLLM and SGLang, recorded and audited, on the CPU.

    pip download --no-deps vllm==0.33.0 sglang==0.5.23, and unzip each into DIR
    python scripts/engines/record_kernels.py DIR [ROUNDS]

DIR has the unpacked wheels. They do not import without a GPU's libraries, so the files of the
functions are loaded by themselves and run in Triton's interpreter: `rejection_sample` of both of
vLLM's model runners and SGLang's `chain_speculative_sampling_triton`. Models are made up, and drafts
are drawn from their rows. The recorders of the wheel wrap the functions as they do in an engine,
write logs, and `specgap.audit` judges them. Exits with 1 if it refutes any. Checked with vLLM 0.33.0,
SGLang 0.5.23, Triton 3.9.0 and torch 2.15.0.
"""

import functools
import importlib
import importlib.util
import os
import pathlib
import sys
import tempfile
import types
import warnings

os.environ["TRITON_INTERPRET"] = "1"

import numpy
import torch
import triton
import triton.language as tl

import specgap as sg

# Where nothing can be left over, the interpreter takes the logarithm of 0 as NumPy does.
warnings.filterwarnings("ignore", category=RuntimeWarning)

V, STEPS, REQUESTS = 24, 3, 8
RNG = numpy.random.default_rng(0)


def softmax(logits):
    weights = numpy.exp(logits.astype(numpy.float64) - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def rows():
    """Logits of both models on the prefixes of a round."""
    base = RNG.normal(0, 1.5, (REQUESTS, STEPS + 1, V))
    return (base + RNG.normal(0, 1, base.shape)).astype("f4"), base.astype("f4")


def drawn(q):
    """A chain of drafts for each request, one from each row."""
    tokens = [[RNG.choice(V, p=row) for row in chain] for chain in q]
    return numpy.array(tokens, dtype=numpy.int64)


def loaded(root, name):
    """A module by its file alone."""
    path = root.joinpath(*name.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_in(name, **members):
    """A module that only has what is used of it."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if path not in sys.modules:
            sys.modules[path] = types.ModuleType(path)
            sys.modules[path].__path__ = []
    for key, value in members.items():
        setattr(sys.modules[name], key, value)
    return sys.modules[name]


def vllm_first(root, one_hot, rounds):
    """Rounds of vLLM's first model runner."""
    os.environ["SPECGAP_VLLM"] = str(root)
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "conformance"))
    kernels = importlib.import_module("vllm_kernel").kernels
    home = "vllm.v1.sample.rejection_sampler"
    caller = stand_in(home, rejection_sample=kernels.rejection_sample)
    recorder = importlib.reload(importlib.import_module("specgap.record.vllm"))
    recorder.plugin()
    metadata = types.SimpleNamespace(
        all_greedy=False, all_random=True, generators={}, temperature=torch.ones(REQUESTS)
    )
    for _ in range(rounds):
        target, draft = rows()
        q = softmax(draft[:, :STEPS])
        drafts = draft[:, :STEPS].argmax(-1) if one_hot else drawn(q)
        bonus = drawn(softmax(target)[:, STEPS:])
        caller.rejection_sample(
            torch.from_numpy(drafts.reshape(-1)).to(torch.int32),
            [STEPS] * REQUESTS,
            STEPS,
            torch.arange(1, REQUESTS + 1, dtype=torch.int32) * STEPS,
            None if one_hot else torch.from_numpy(q.astype("f4").reshape(-1, V)),
            torch.from_numpy(target[:, :STEPS].reshape(-1, V).copy()),
            torch.from_numpy(bonus.astype("i4")),
            metadata,
        )
    recorder._plugin.close()


def vllm_second(root, one_hot, rounds):
    """Rounds of vLLM's second model runner, the draft at the temperature of each request."""
    device = types.SimpleNamespace(log1p=log1p)
    stand_in("vllm.triton_utils", tl=tl, triton=triton, tldevice=device)
    stand_in("vllm.v1.spec_decode.fly", compute_fly_entropy=None)
    watermark = {"philox_gumbel_block_argmax": no_watermark}
    stand_in("vllm.v1.worker.gpu.sample.watermark", **watermark)
    loaded(root, "vllm.v1.worker.gpu.sample.gumbel")
    home = "vllm.v1.worker.gpu.spec_decode.rejection_sampler"
    kernels = loaded(root, f"{home}_utils")
    caller = stand_in(home, rejection_sample=kernels.rejection_sample)
    recorder = importlib.reload(importlib.import_module("specgap.record.vllm"))
    recorder.plugin()
    heats = numpy.resize(numpy.array([0.7, 1.0, 1.4], "f4"), REQUESTS)
    starts = torch.arange(0, (REQUESTS + 1) * (STEPS + 1), STEPS + 1, dtype=torch.int32)
    slots = torch.arange(REQUESTS, dtype=torch.int32).flip(0)
    # Requests lie in the slots in the other order.
    local = torch.arange(STEPS + 1, dtype=torch.int32).repeat(REQUESTS)
    for number in range(rounds):
        target, draft = rows()
        heat = heats[slots.numpy()][:, None, None]
        drafts = drawn(softmax(draft[:, :STEPS] / heat))
        if one_hot:
            drafts = draft[:, :STEPS].argmax(-1)
        ids = numpy.hstack([numpy.zeros((REQUESTS, 1), numpy.int64), drafts])
        held = torch.empty(REQUESTS, STEPS, V)
        held[slots.long()] = torch.from_numpy(draft[:, :STEPS].copy())
        caller.rejection_sample(
            torch.from_numpy(target / heat).reshape(-1, V).contiguous(),
            None if one_hot else held,
            torch.from_numpy(ids.reshape(-1)),
            starts,
            torch.arange(number * 1000, number * 1000 + len(ids.reshape(-1)), dtype=torch.int64),
            slots,
            slots.repeat_interleave(STEPS + 1),
            local,
            torch.from_numpy(heats),
            torch.from_numpy(RNG.integers(0, 2**31, REQUESTS)),
            STEPS,
            None,
        )
    recorder._plugin.close()


@triton.jit
def log1p(x):
    """The interpreter has no library of the device."""
    return tl.log(1.0 + x)


@triton.jit
def no_watermark(logits):
    """In the place of a function that is not called."""
    return logits


def sglang_chain(root, block, rounds):
    """Rounds of SGLang's kernel for chains."""
    hooks = {}

    class HookRegistry:
        register = classmethod(lambda cls, target, hook, kind: hooks.update({target: hook}))

    registry = "sglang.srt.plugins.hook_registry"
    stand_in(registry, HookRegistry=HookRegistry, HookType=types.SimpleNamespace(AROUND="around"))
    kernels = loaded(root, "sglang.kernels.ops.speculative.reject_sampling")
    name = "chain_speculative_sampling_triton"
    stand_in("sglang.srt.speculative.eagle_utils", **{name: getattr(kernels, name)})
    recorder = importlib.reload(importlib.import_module("specgap.record.sglang"))
    recorder.plugin()
    function = getattr(kernels, name)
    (hook,) = hooks.values()
    if block:
        function = functools.partial(function, block_verification=True)
    slots = STEPS + 1
    for _ in range(rounds):
        target, draft = rows()
        p, q = softmax(target).astype("f4"), softmax(draft[:, :STEPS])
        candidates = torch.zeros((REQUESTS, slots), dtype=torch.int64)
        candidates[:, 1:] = torch.from_numpy(drawn(q))
        hook(
            function,
            predicts=torch.full((REQUESTS * slots,), -1, dtype=torch.int32),
            accept_index=torch.full((REQUESTS, slots), -1, dtype=torch.int32),
            accept_token_num=torch.zeros(REQUESTS, dtype=torch.int32),
            candidates=candidates,
            retrive_index=torch.arange(REQUESTS * slots).reshape(REQUESTS, slots),
            retrive_next_token=None,
            retrive_next_sibling=torch.full((REQUESTS, slots), -1),
            uniform_samples=torch.from_numpy(RNG.random((REQUESTS, slots), "f4")),
            uniform_samples_for_final_sampling=torch.from_numpy(RNG.random(REQUESTS, "f4")),
            target_probs=torch.from_numpy(p),
            draft_probs=torch.from_numpy(q.astype("f4")),
            threshold_single=1.0,
            threshold_acc=1.0,
            deterministic=True,
        )
    recorder._plugin.close()


RUNS = {
    "vLLM, first runner, sampled drafts": ("vllm", vllm_first, False, "token"),
    "vLLM, first runner, argmax drafts": ("vllm", vllm_first, True, "one-hot"),
    "vLLM, second runner, sampled drafts": ("vllm", vllm_second, False, "token"),
    "vLLM, second runner, argmax drafts": ("vllm", vllm_second, True, "one-hot"),
    "SGLang, chains": ("sglang", sglang_chain, False, "token"),
    "SGLang, chains, block verification": ("sglang", sglang_chain, True, "block"),
}


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    root, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 60
    refuted, ran = 0, 0
    for what, (engine, run, other, rule) in RUNS.items():
        if not (root / engine).is_dir():
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["SPECGAP_RECORD"] = folder
            run(root, other, rounds)
            (log,) = pathlib.Path(folder).iterdir()
            records = sg.Log.open(log).engine_records()
            audited = sg.audit(log, rule=rule)
            wrong = {"token": "exact-match", "one-hot": "threshold:0.5"}.get(rule, "one-hot")
            other_rule = sg.audit(log, rule=wrong)
        count = sum(one.round == 0 for one in records)
        verdict = "passes" if audited.ok else "REFUTED"
        print(f"{what}: {count} rounds, {len(records)} positions; audited as {rule}: {verdict}; "
              f"as {wrong}: {'passes' if other_rule.ok else 'refuted'}")
        refuted += not audited.ok
        ran += 1
    if not ran:
        print(f"{root}: has neither vllm nor sglang", file=sys.stderr)
        return 2
    return 1 if refuted else 0


if __name__ == "__main__":
    sys.exit(main())

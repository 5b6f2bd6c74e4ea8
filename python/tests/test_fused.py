"""The kernels of specgap.fused, run by Triton's interpreter, against specgap.kernels with the same coins."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

# In a process of its own: Triton reads the variable when it is imported first.
SCRIPT = """
import torch
from specgap import fused, kernels

fused.BLOCK = 256
generator = torch.Generator().manual_seed(5)

def coins(*shape):
    return torch.rand(*shape, generator=generator)

accepted = 0
#                 V, n: one tile, several, no certain token, all certain, half of q 0, one draft
for trial, (size, n) in enumerate([(7, 3), (600, 4), (300, 2), (3, 4), (40, 5), (30, 1)]):
    logits = 3 * torch.randn(6, size, generator=generator)
    noisy = logits + torch.randn(6, size, generator=generator)
    if trial == 2:
        noisy = 0.01 * noisy
    if trial == 4:
        noisy[:, ::2], logits[:, ::3] = -1e9, -1e9
    noisy[0, 1:] = -1e9
    p, q = logits.softmax(1), noisy.softmax(1)
    first, more = coins(6, n), coins(6, 4 * n + 1)
    drafts, cuts = fused.draft_strata(q, n, first)
    expected = kernels.draft_strata(q.double(), n, first.double(), "independent")
    assert torch.equal(drafts, expected), (size, n)
    found = fused.verify_level(p, q, drafts, cuts, more)
    expected = kernels.verify_level(p.double(), q.double(), drafts, more.double(), "independent")
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1]), (size, n)
    accepted += int((found[1] >= 0).sum())
    # Recursive rejection, by its definition.
    free = fused.draft_independent(q, n, first)
    ends = q.double().cumsum(1)
    least = torch.searchsorted(ends, first.double() * ends[:, -1:], right=True)
    assert torch.equal(free, least.clamp(max=size - 1)), (size, n)
    few = coins(6, n + 1)
    tokens, slots = fused.verify_rrs(p, q, free, few)
    for row in range(6):
        left, slot = p[row].double(), -1
        for i in range(n):
            x = free[row, i]
            if few[row, i] * q[row, x] < left[x]:
                slot, token = i, int(x)
                break
            left = (left - q[row]).clamp(min=0)
            left = left / left.sum()
        if slot < 0:
            token = int(torch.searchsorted(left.cumsum(0), few[row, -1].double(), right=True))
        assert (int(tokens[row]), int(slots[row])) == (token, slot), (size, n, row)
    seeds = torch.arange(6) + 100 * trial
    noise = fused.noise(seeds, size)
    expected = kernels.shared_gumbel(p, q, noise, n)
    assert torch.equal(fused.race(q, seeds, n), expected[0]), (size, n)
    assert torch.equal(fused.race(p, seeds)[:, 0], expected[1]), (size, n)
    # Even numbers, of each token and seed its own.
    assert (noise >= 0).all() and noise.unique().numel() > 0.99 * noise.numel(), (size, n)
    if trial == 1:
        assert abs(float(noise.mean()) - 1) < 0.1 and abs(float((-noise).exp().mean()) - 0.5) < 0.03
assert 5 < accepted < 35, accepted
for wrong in (lambda: fused.draft_strata(q.double(), 1, first), lambda: fused.draft_strata(q, 17, coins(6, 17)),
              lambda: fused.verify_level(p, q, drafts, cuts, first), lambda: fused.race(q, seeds[:2]),
              lambda: fused.race(q, seeds.float())):
    try:
        wrong()
    except ValueError:
        continue
    raise AssertionError("not refused")
print("as by torch")
"""


def test_kernels_do_what_the_torch_forms_do() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "as by torch"

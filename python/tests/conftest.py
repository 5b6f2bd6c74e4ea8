"""The log that the repository ships, and the command that the wheel installs."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


class Coins:
    """Even numbers that are given, in place of a generator."""

    def __init__(self, coins: Any) -> None:
        self.coins = list(coins)

    def branch(self, prob: float) -> bool:
        return bool(self.coins.pop(0) < prob)

    def random(self, count: int | None = None) -> Any:
        found = [float(self.coins.pop(0)) for _ in range(1 if count is None else count)]
        return found[0] if count is None else np.array(found)

    def choice(self, a: int, p: Any = None) -> int:
        ends = np.cumsum([1.0 / a] * a if p is None else p)
        found = int(np.searchsorted(ends, self.coins.pop(0) * ends[-1], side="right"))
        return min(found, int(np.flatnonzero(np.diff(ends, prepend=0.0))[-1]))


def faked(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> types.ModuleType:
    """A module and its parents, as if they were installed."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if path not in sys.modules or end == len(parts):
            monkeypatch.setitem(sys.modules, path, types.ModuleType(path))
        if end > 1:
            parent = sys.modules[".".join(parts[: end - 1])]
            monkeypatch.setattr(parent, parts[end - 1], sys.modules[path], raising=False)
    module = sys.modules[name]
    for key, value in members.items():
        setattr(module, key, value)
    return module


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def log() -> str:
    return str(ROOT / "models" / "logs" / "smollm2-demo")


@pytest.fixture(scope="session")
def command() -> Callable[..., Ran]:
    """Runs the command line, as the script `specgap` does."""

    def run(*args: object) -> Ran:
        words = [sys.executable, "-m", "specgap", *map(str, args)]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    return run


def prompted(seed: int, prompts: int, each: int, vocabulary: int) -> dict[str, Any]:
    """Rows of a made pair, so many of each prompt."""
    rng = np.random.default_rng(seed)
    target = 2.0 * rng.normal(size=(prompts * each, vocabulary))
    return {
        "target_logits": target,
        "draft_logits": target + rng.normal(size=target.shape),
        "prompt_id": np.repeat(np.arange(prompts), each),
        "position": np.tile(np.arange(each), prompts),
    }

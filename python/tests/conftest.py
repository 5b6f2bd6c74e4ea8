"""The log that the repository ships, and the command that the wheel installs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]


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

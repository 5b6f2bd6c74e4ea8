"""The command that the wheel installs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Ran

MODELS = ROOT / "tests" / "fixtures" / "tiny-model"


def capture(out: Path) -> list[str]:
    prompts = out.with_name("prompts.jsonl")
    prompts.write_text('{"id": 1, "prompt": "one two"}\n')
    words = ["capture", "--target", MODELS / "target.onnx", "--draft", MODELS / "draft.onnx"]
    words += ["--tokenizer", MODELS / "tokenizer.json", "--prompts", prompts]
    words += ["--max-tokens", "4", "--device", "cpu", "--out", out]
    return [str(word) for word in words]


def without_library() -> dict[str, str]:
    names = ("SPECGAP_ONNXRUNTIME", "ORT_DYLIB_PATH")
    return {key: value for key, value in os.environ.items() if key not in names}


def test_everything_that_help_lists_is_in_the_wheel(command: Callable[..., Ran]) -> None:
    listed = command("--help").out
    assert "capture" in listed
    for name in ("gap", "audit", "capture", "decode", "verify", "demo"):
        helped = command(name, "--help")
        assert helped.code == 0 and "Usage: specgap" in helped.out, name


@pytest.mark.skipif(
    not os.environ.get("SPECGAP_ONNXRUNTIME"), reason="SPECGAP_ONNXRUNTIME names no ONNX Runtime"
)
def test_capture_runs(command: Callable[..., Ran], tmp_path: Path) -> None:
    ran = command(*capture(tmp_path / "log"))
    assert ran.code == 0, ran.err
    import specgap as sg

    assert sg.Log.open(tmp_path / "log").positions > 0


def test_capture_finds_the_installed_runtime(tmp_path: Path) -> None:
    library = tmp_path / "onnxruntime" / "capi" / "libonnxruntime.so.9.9.9"
    library.parent.mkdir(parents=True)
    library.write_text("no library")
    # That it is found and not imported.
    (tmp_path / "onnxruntime" / "__init__.py").write_text("raise SystemExit(99)")
    environment = {**without_library(), "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-m", "specgap", *capture(tmp_path / "log")],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert ran.returncode == 2, ran.stderr
    assert str(library) in ran.stderr
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize(
    ("before", "after"), [("default_int_handler", "SIG_DFL"), ("SIG_IGN", "SIG_IGN")]
)
def test_an_ignored_ctrl_c_stays_ignored(before: str, after: str) -> None:
    program = f"""
import signal, types
signal.signal(signal.SIGINT, signal.{before})
import specgap.__main__ as command
command._native = types.SimpleNamespace(main=lambda words: 7)
assert command.main() == 7
assert signal.getsignal(signal.SIGINT) == signal.{after}
"""
    subprocess.run([sys.executable, "-c", program], check=True)

"""Recipes of `examples/drafter_*.py`: each trains, evaluates and logs, where its library is
installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

#: A recipe, and what it needs besides torch.
RECIPES = {
    "drafter_plain": [],
    "drafter_lightning": ["lightning"],
    "drafter_trainer": ["transformers", "accelerate"],
}


def test_all_recipes_are_run() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("drafter_*.py")} == set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_trains_and_logs(name: str, tmp_path: Path) -> None:
    for needed in ["torch", *RECIPES[name]]:
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    words = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--steps", "30"]
    board = importlib.util.find_spec("tensorboard") is not None
    if board:
        words += ["--logs", str(tmp_path / "board")]
    places = os.pathsep.join(one for one in sys.path if one)
    # Small models are quicker on one thread.
    environment = os.environ | {"PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        words, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    shown = [line for line in ran.stdout.splitlines() if line.startswith("step ")]
    assert [line.split(":")[0] for line in shown] == ["step 0", "step 10", "step 20", "step 30"]
    lengths = [float(line.split("acceptance_length ")[1].split(" ")[0]) for line in shown]
    assert lengths[-1] > lengths[0] + 0.2
    assert "acceptance length, sampled: +" in ran.stdout
    assert "off by one" not in ran.stderr and "does not look drawn" not in ran.stderr
    if board:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        found = [path.parent for path in (tmp_path / "board").rglob("events.out.tfevents.*")]
        assert found
        logged = EventAccumulator(str(found[0]))
        logged.Reload()
        tags = [tag for tag in logged.Tags()["scalars"] if tag.endswith("eval/acceptance_length")]
        assert len(tags) == 1, logged.Tags()
        values = [event.value for event in logged.Scalars(tags[0])]
        assert values[-1] == pytest.approx(lengths[-1], abs=1e-3)

"""Logs are written and read, with what engines did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import specgap as sg


def test_a_log_comes_back_as_it_was_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target, draft = rng.normal(size=(2, 6, 10)).astype(np.float32)
    path = tmp_path / "log"
    with sg.LogWriter(path, dtype="float32", metadata={"note": "mine"}) as log:
        for at in range(6):
            log.append(
                target_logits=target[at],
                draft_logits=draft[at],
                prompt_id=at // 3,
                token=at,
                drafts=[1, 2] if at % 3 == 0 else [],
                accepted=1 if at % 3 == 0 else -1,
                output=at,
                round=at % 3,
            )
        assert log.positions == 6
    read = sg.Log.open(path)
    assert len(read) == 6 and read.vocabulary == 10 and read.dtypes == ("f32", "f32")
    assert read.metadata["note"] == "mine"
    for at, row in enumerate(read):
        assert (row.target == target[at]).all() and (row.draft == draft[at]).all()
        assert (row.prompt_id, row.position, row.token) == (at // 3, at % 3, at)
    records = read.engine_records()
    assert records[0].drafts == [1, 2] and records[1].drafts == [-1, -1]
    assert [one.accepted for one in records] == [1, -1, -1, 1, -1, -1]
    assert [one.round for one in records] == [0, 1, 2, 0, 1, 2]
    # The same arrays in memory give the same report, but for the log's name.
    mine = sg.gap(target, draft, prompt_id=[0, 0, 0, 1, 1, 1], temperature=1.0).to_dict()
    assert mine["cells"] == sg.gap(path, temperature=1.0).to_dict()["cells"]


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "log"
    code = f"""
import os, specgap as sg
log = sg.LogWriter({str(path)!r})
log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0])
log.commit()
log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0])
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert sg.Log.open(path).positions == 1
    with sg.LogWriter(path, vocabulary=2, resume=True) as log:
        log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0], position=1)
    assert sg.Log.open(path).positions == 2


def test_top_heavy_logs_are_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "log"
    with sg.LogWriter(path, top=5, rest_temperatures=[0.7, 1.0]) as log:
        for _ in range(4):
            target, draft = rng.normal(0, 4, (2, 50))
            log.append(target_logits=target, draft_logits=draft)
    read = sg.Log.open(path)
    assert 5 <= read.listed <= 10 and read.row(0).token_ids is not None
    rate = sg.gap(path, drafts=2).to_dict()["cells"][0]["optimal_acceptance_rate"]
    low, high = rate["truncation"]
    assert low < high


def test_positions_are_counted_from_either_end() -> None:
    log = sg.Log.of_arrays(
        target_logits=np.zeros((3, 2)), draft_logits=np.zeros((3, 2)), prompt_id=np.arange(3)
    )
    assert log.row(-1).prompt_id == 2 == log.row(2).prompt_id
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"position {index} of a log of 3"):
            log.row(index)


def test_what_a_log_refuses(tmp_path: Path) -> None:
    log = sg.LogWriter(tmp_path / "log")
    log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0])
    with pytest.raises(ValueError, match="draft_logits.*has 3 entries; the vocabulary has 2"):
        log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="target_logits.* is NaN"):
        log.append(target_logits=[0.0, np.nan], draft_logits=[1.0, 0.0])
    with pytest.raises(ValueError, match="drafts.*token 2 is outside the vocabulary of 2"):
        log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0], drafts=[2])
    log.close()
    with pytest.raises(ValueError, match="was closed"):
        log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0])
    with pytest.raises(ValueError, match="holds a log already"):
        sg.LogWriter(tmp_path / "log", vocabulary=2)
    with pytest.raises(TypeError, match="int32 or int64|floats|type"):
        sg.LogWriter(tmp_path / "other", vocabulary=2, dtype="float8")
    with pytest.raises(ValueError, match="target_logits.* is missing"):
        sg.Log.of_arrays(draft_logits=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="prompt_id.*must be i64"):
        sg.Log.of_arrays(
            target_logits=np.zeros((2, 3)), draft_logits=np.zeros((2, 3)), prompt_id=[1]
        )
    with pytest.raises(IndexError):
        sg.Log.open(tmp_path / "log").row(5)
    assert sorted(os.listdir(tmp_path)) == ["log"]


def test_arrays_go_to_every_command(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(0, 2, (60, 30)).astype(np.float32)
    draft = (target + rng.normal(0, 1, target.shape)).astype(np.float32)
    weights = np.exp(target.astype(np.float64))
    token = [int(rng.choice(30, p=row / row.sum())) for row in weights]
    said = {"sampling": {"temperature": 1.0}}
    prompts = np.arange(60) // 20
    with sg.LogWriter(tmp_path / "log", dtype="float32", metadata=said) as log:
        for at in range(60):
            log.append(
                target_logits=target[at],
                draft_logits=draft[at],
                prompt_id=int(prompts[at]),
                token=token[at],
            )
    # Columns first, and every second row: nothing lies as in a file.
    wide = np.zeros((120, 30), np.float32)
    wide[::2] = target
    held = sg.Log.of_arrays(
        target_logits=wide[::2],
        draft_logits=np.asfortranarray(draft),
        prompt_id=prompts,
        position=np.arange(60) % 20,
        token=token,
        metadata=said,
    )
    for report, same in (
        (sg.length(held, lengths=[1, 2]), sg.length(tmp_path / "log", lengths=[1, 2])),
        (sg.tree(held, verifiers="rrs", budget=3), sg.tree(tmp_path / "log", verifiers="rrs", budget=3)),
        (sg.paths(held, paths=[1, 2]), sg.paths(tmp_path / "log", paths=[1, 2])),
    ):
        mine, theirs = report.to_dict(), same.to_dict()
        assert set(mine) == set(theirs)
        # They differ by the name of the log alone.
        numbers = {key for key in mine if mine[key] != theirs[key]}
        assert numbers <= {"logs", "command", "log", "provenance"}, numbers
        assert mine["results" if "results" in mine else "by_drafts"]

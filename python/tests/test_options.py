"""Calls take every option of their commands, and make the same reports to the byte."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import specgap as sg
from specgap._reports import Whole

from .conftest import ROOT, Ran

Command = Callable[..., Ran]

#: What is another thing in Python: files of ``Report.save``, words of ``Report.text``, data of
#: ``Report.json``, parts of ``Summary.of`` and ``Summary.to_bytes``.
ELSEWHERE = set("out figures table digits columns verbose quiet format shard partial help".split())
#: Keywords with another name, and calls in which nothing is random.
RENAMED = {"vocab": "vocabulary", "laws": "schemes", "law": "scheme", "trees": "topology",
           "draft-kinds": "drafts"}  # fmt: skip
NOT_RANDOM = {("length", "seed"), ("paths", "seed")}


def test_parts_take_the_keywords_of_gap() -> None:
    """By the types that an editor shows and mypy checks."""
    of_gap = inspect.signature(sg.gap).parameters
    for name, kind in Whole.__annotations__.items():
        assert getattr(kind, "__forward_arg__", kind) in (of_gap[name].annotation, f"{of_gap[name].annotation} | None")
    arrays = {"logs", "draft_logits", "prompt_id", "position", "token"}
    assert of_gap.keys() - Whole.__annotations__.keys() == arrays | {"positions", "threads", "progress"}
    assert inspect.signature(sg.Summary.of).parameters["asked"].annotation == "Unpack[Measured]"
    assert inspect.signature(sg.Summary.report).parameters["given"].annotation == "Unpack[Told]"


def parts_that_mypy_refuses(log: str) -> None:
    sg.Summary.of(log, draft=2)  # type: ignore[call-arg]
    sg.Summary.of(log, top_k="50")  # type: ignore[arg-type]
    sg.Summary.of(log).report(engines="vllm")  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["gap", "length", "tree", "paths", "audit"])
def test_a_call_takes_every_option_of_its_command(name: str, command: Command) -> None:
    options = set(re.findall(r"^ {2,6}(?:-\w, )?--([a-z-]+)", command(name, "--help").out, re.M))
    assert len(options) > 10
    keywords = inspect.signature(getattr(sg, name)).parameters
    keyword = {one: RENAMED.get(one, one.replace("-", "_")) for one in options - ELSEWHERE}
    lacks = {one for one in keyword if keyword[one] not in keywords and (name, one) not in NOT_RANDOM}
    assert not lacks


VOCABULARY, TEXTS, TOKENS, PATHS, LENGTH = 5, 12, 8, 2, 3


def laws(last: int) -> tuple[Any, Any]:
    """p and q behind a token."""
    i = np.arange(VOCABULARY)
    both = [((i * step + 3 * last + i * i) % 7) + 0.5 for step in (3, 5)]
    return both[0] / both[0].sum(), both[1] / both[1].sum()


def write(folder: Path, seed: int) -> str:
    """A log of texts with two draft paths at every second position."""
    generator = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {}

    def add(**row: Any) -> None:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)

    for prompt in range(TEXTS):
        last = prompt % VOCABULARY
        for position in range(TOKENS):
            p, q = laws(last)
            for _ in range(PATHS if position % 2 == prompt % 2 else 0):
                path, before = [], last
                for _ in range(LENGTH):
                    of_target, of_draft = laws(before)
                    before = int(generator.choice(VOCABULARY, p=of_draft))
                    path.append((before, of_draft[before], of_target[before]))
                drawn, of_q, of_p = zip(*path)
                add(rollout_position=len(columns.get("token", [])), rollout_token=drawn)
                add(rollout_q=of_q, rollout_target_p=of_p)
            last = int(generator.choice(VOCABULARY, p=p))
            add(target_probs=p, draft_probs=q, prompt_id=prompt, position=position, token=last)
    folder.mkdir()
    arrays: dict[str, Any] = {name: np.array(column) for name, column in columns.items()}
    np.savez(folder / "shard-00000.npz", **arrays)
    rollouts = {"version": 2, "tokens": LENGTH, "every": 2, "inclusion_probability": 0.5,
                "paths": PATHS, "temperature": 1.0, "target": True}  # fmt: skip
    metadata = {"sampling": {"temperature": 1.0, "max_tokens": TOKENS}, "vocabulary": VOCABULARY}
    shards = [{"file": "shard-00000.npz", "positions": TEXTS * TOKENS}]
    index = {"schema": 1, "metadata": {**metadata, "rollouts": rollouts}, "shards": shards}
    (folder / "log.json").write_text(json.dumps(index))
    return str(folder)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("options")
    times = home / "times.toml"
    times.write_text(
        "schema = 1\ntarget_step = { seconds = 0.02 }\ndraft_step = { seconds = 0.004 }\n"
        "verify = [{ tokens = 1, seconds = 0.02 }, { tokens = 9, seconds = 0.03 }]\n"
        "rules = [{ name = 'rrs', seconds = 0.001 }]\n"
    )
    return {"one": write(home / "one", 1), "other": write(home / "other", 2), "times": times}


ASKED: dict[str, Any] = {"drafts": [2, 3], "verifiers": ["rrs", "rrs-wo"], "progress": False}
DEPTHS = [str(ROOT / "models" / "logs" / "smollm2-by-depth" / f"eagle-{one}.safetensors")
          for one in ("kl", "tv")]  # fmt: skip


def same(report: sg.Report, command: Command, folder: Path, *line: object) -> dict[str, Any]:
    """Saves a report, and compares every file with those of a command; its data."""
    report.save(folder / "mine")
    ran = command(*line, "--out", folder / "theirs", "--format", "json")
    assert ran.code == 0, ran.err
    mine, theirs = (
        {str(one.relative_to(home)): one.read_bytes() for one in home.rglob("*") if one.is_file()}
        for home in (folder / "mine", folder / "theirs")
    )
    assert mine == theirs
    assert report.to_dict() == ran.json
    return report.to_dict()


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        ("", {}),
        ("--cost-ratio 0.1 --engine vllm", {"cost_ratio": 0.1, "engine": "vllm"}),
        ("--timings TIMES --block-length 3", {"timings": "TIMES", "block_length": 3}),
        (
            "--temperature 1,0.7 --draft-temperature 0.5,0.8 --draft-top-k 3 --draft-top-p 0.9 "
            "--draft-min-p 0.01 --top-k 4 --min-p 0.02 --cut-order vllm --seed 3",
            {"temperature": [1, 0.7], "draft_temperature": [0.5, 0.8], "draft_top_k": 3,
             "draft_top_p": 0.9, "draft_min_p": 0.01, "top_k": 4, "min_p": 0.02,
             "cut_order": "vllm", "seed": 3},
        ),
    ],
)  # fmt: skip
def test_gap_is_the_command_to_the_byte(
    options: str, keywords: dict[str, Any], given: dict[str, Any], command: Command, tmp_path: Path
) -> None:
    line = [given["times"] if word == "TIMES" else word for word in options.split()]
    asked = {key: given["times"] if one == "TIMES" else one for key, one in keywords.items()}
    log, usual = given["one"], ["--drafts", "2,3", "--verifiers", "rrs,rrs-wo"]
    report = sg.gap(log, **ASKED, **asked)
    data = same(report, command, tmp_path / "one", "gap", log, *usual, *line)
    assert data["draft_paths"]["logged_paths"] == PATHS
    assert pickle.loads(pickle.dumps(report)).json == report.json
    # Parts, in any order, have all that the whole has.
    said = {one: asked.pop(one) for one in ("engine", "cost_ratio", "timings") if one in asked}
    parts = [sg.Summary.of(log, part=(k, 3), **ASKED, **asked) for k in (2, 3, 1)]
    merged = parts[0].merge(parts[1]).merge(parts[2]).report(**said)
    assert merged.json == report.json
    files = [tmp_path / f"part-{k}" for k in range(3)]
    for file, part in zip(files, parts):
        file.write_bytes(part.to_bytes())
    words = {"engine": "--engine", "cost_ratio": "--cost-ratio", "timings": "--timings"}
    line = [word for one in said for word in (words[one], said[one])]
    same(merged, command, tmp_path / "merged", "merge", *files, *line)
    # Several logs, each with its own, and together.
    logs = [log, given["other"]]
    line = [given["times"] if word == "TIMES" else word for word in options.split()]
    for pool in (False, True):
        both = sg.gap(logs, pool=pool, **ASKED, **asked, **said)
        pooled = ["--pool"] if pool else []
        same(both, command, tmp_path / f"both{pool}", "gap", *logs, *usual, *pooled, *line)


def test_depths_and_pairs_are_those_of_the_command(command: Command, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"drafts": 2, "schemes": "with-replacement", "verifiers": "rrs"}
    line = ["--drafts", "2", "--laws", "with-replacement", "--verifiers", "rrs"]
    both = sg.gap(DEPTHS, depth="1-2", paired=True, progress=False, **asked)
    same(both, command, tmp_path / "both", "gap", *DEPTHS, *line, "--depth", "1-2", "--paired")
    second = sg.gap(DEPTHS[0], depth=2, cost_ratio=0.2, progress=False, **asked)
    cost = ["--depth", "2", "--cost-ratio", "0.2"]
    same(second, command, tmp_path / "second", "gap", DEPTHS[0], *line, *cost)
    with pytest.raises(sg.Refused, match="depth=.*pool="):
        sg.gap(DEPTHS, depth=1, pool=True, progress=False, **asked)
    with pytest.raises(sg.Refused, match="ask for one"):
        sg.Summary.of(DEPTHS[0], depth=[1, 2], progress=False, **asked)


def test_pairs_that_are_none_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(sg.Refused, match="cannot be paired with .*one"):
        sg.gap([given["one"], given["other"]], paired=True, **ASKED)


def test_a_baseline_names_what_got_worse(
    given: dict[str, Any], command: Command, tmp_path: Path
) -> None:
    log, baseline, junit = given["one"], tmp_path / "report.json", tmp_path / "junit.xml"
    report = sg.gap(log, **ASKED)
    baseline.write_text(report.json)
    held = sg.gap(log, **ASKED, baseline=baseline, within=1e-9, junit=junit)
    assert held.ok and held.regressions == [] and "<testcase" in junit.read_text()
    colder = {**ASKED, "draft_temperature": 0.5}
    rates = json.loads(report.json)
    rates["cells"][0]["optimal_acceptance_rate"]["mean"] = 0.999
    rates["cells"][0]["optimal_acceptance_rate"]["ci95"] = [0.998, 1.0]
    baseline.write_text(json.dumps(rates))
    worse = sg.gap(log, **colder, baseline=baseline)
    options = ["--drafts", "2,3", "--verifiers", "rrs,rrs-wo", "--draft-temperature", "0.5"]
    ran = command("gap", log, *options, "--baseline", baseline)
    assert ran.code == 1 and not worse.ok and len(worse.regressions) == 1
    assert worse.regressions[0] in ran.err
    again = pickle.loads(pickle.dumps(worse))
    assert not again.ok and again.regressions == worse.regressions and again.summary.positions == 96
    with pytest.raises(sg.Refused, match="baseline: measure one log"):
        sg.gap([log, given["other"]], **ASKED, baseline=baseline)
    with pytest.raises(TypeError, match="report.. got an unexpected keyword argument 'seed'"):
        report.summary and report.summary.report(seed=1)  # type: ignore[call-arg]
    for wrong, near in (("draft", "drafts"), ("engin", "engine")):
        with pytest.raises(TypeError, match=f"gap.. got an unexpected keyword argument '{wrong}'; did you mean {near}="):
            sg.Summary.of(log, **{wrong: 2})  # type: ignore[arg-type]


def test_profiles_are_files_of_a_report(
    given: dict[str, Any], command: Command, tmp_path: Path
) -> None:
    report = sg.length(given["one"], lengths=[1, 2], policies="fixed", profile=["vllm", "sglang"])
    line = ["--lengths", "1,2", "--policies", "fixed", "--profile", "vllm,sglang"]
    same(report, command, tmp_path, "length", given["one"], *line)
    assert len([one for one in (tmp_path / "mine").rglob("*") if one.is_dir()]) > 0


def test_an_audit_takes_counters(given: dict[str, Any], command: Command, tmp_path: Path) -> None:
    for name, rounds in (("before", 0), ("after", 1000)):
        name_of = "vllm:spec_decode_num_"
        accepted = [rounds * 7 // 10, rounds * 4 // 10]
        counts = {"drafts": rounds, "draft_tokens": 2 * rounds, "accepted_tokens": sum(accepted)}
        lines = [f"{name_of}{one}_total {count}" for one, count in counts.items()]
        per = f"{name_of}accepted_tokens_per_pos_total"
        lines += [f'{per}{{position="{at}"}} {count}' for at, count in enumerate(accepted)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    files = [tmp_path / "before", tmp_path / "after"]
    report = sg.audit(given["one"], rule="token", counters=files, exclude=0.2, noise=0, strict=True)
    line = ["--rule", "token", "--exclude", "0.2", "--noise", "0", "--strict"]
    line += [f"--counters={file}" for file in files]
    ran = command("audit", given["one"], *line, "--format", "json")
    assert ran.code in (0, 1, 4), ran.err
    assert report.to_dict() == ran.json

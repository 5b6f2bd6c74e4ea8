"""Reports equal those of the command line, and are as good to have in a notebook."""

from __future__ import annotations

import json
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specgap as sg

from .conftest import Ran

Command = Callable[..., Ran]
SMALL: dict[str, Any] = {"drafts": (2, 3), "temperature": 1.0, "verifiers": ("rrs", "rrs-wo")}
OPTIONS = ["--drafts", "2,3", "--temperature", "1.0", "--verifiers", "rrs,rrs-wo"]


def test_gap_is_that_of_the_command_line(log: str, command: Command) -> None:
    report = sg.gap(log, **SMALL)
    assert report.to_dict() == command("gap", log, *OPTIONS, "--format", "json").json
    assert report.ok
    assert report.summary is not None and report.summary.positions == 400


def test_served_rows_are_those_of_the_command_line(log: str, command: Command) -> None:
    report = sg.gap(log, drafts=2, temperature=(0, 1), verifiers="rrs", top_k=20, top_p=0.9)
    options = ["--drafts", "2", "--temperature", "0,1", "--verifiers", "rrs"]
    served = ["--top-k", "20", "--top-p", "0.9", "--format", "json"]
    assert report.to_dict() == command("gap", log, *options, *served).json
    assert report.to_dict()["served"] == {"top_k": 20, "top_p": 0.9}


def _cut(logits: Any, order: str) -> Any:
    """Rows at T = 0.7 behind top-k 5, top-p 0.6 and min-p 0.2, one letter after the other."""
    weights = np.exp(logits / (1.0 if order.endswith(",T") else 0.7))
    for letter in order.removesuffix(",T").split(","):
        rows = weights / weights.sum(-1, keepdims=True)
        falling = -np.sort(-rows, -1)
        rank = np.argsort(np.argsort(-rows, -1), -1)
        before = np.take_along_axis(falling.cumsum(-1) - falling, rank, -1)
        kept = {"k": rank < 5, "p": before < 0.6, "m": rows >= 0.2 * rows.max(-1, keepdims=True)}
        weights = np.where(kept[letter], weights, 0.0)
    return weights ** (1 / 0.7) if order.endswith(",T") else weights


@pytest.mark.parametrize(
    ("order", "name"),
    [("k,p,m", None), ("p,k,m", "joint"), ("m,k,p", "vllm"), ("m,p,k,T", "m,p,k,T"),
     ("k,p,m,T", "llama.cpp"), ("p,m,k,T", "mlx-lm"), ("k,p,m", "sglang")],
)  # fmt: skip
def test_rows_are_cut_in_the_order_that_is_asked_for(order: str, name: str | None) -> None:
    rows = 1.5 * np.random.default_rng(5).normal(size=(2, 40, 16))
    cuts: dict[str, Any] = {"top_k": 5, "top_p": 0.6, "min_p": 0.2}
    usual: dict[str, Any] = {"drafts": 2, "verifiers": "rrs", "progress": False}
    asked = usual | cuts | {"temperature": 0.7}
    with np.errstate(divide="ignore"):
        cut = [np.log(_cut(one, order)) for one in rows]

    def rates(report: sg.Report) -> list[float]:
        cells = report.to_dict()["cells"]
        return [cell["optimal_acceptance_rate"]["mean"] for cell in cells]

    expected = rates(sg.gap(cut[0], cut[1], temperature=1.0, **usual))
    found = sg.gap(rows[0], rows[1], cut_order=name, **asked)
    assert rates(found) == pytest.approx(expected, rel=1e-9)
    # A log says it as well, and the option goes before it.
    said = {"sampling": {"temperature": 0.7, "cut_order": name or "transformers"}}
    by_log = sg.gap(rows[0], rows[1], metadata=said, **asked)
    assert rates(by_log) == rates(found)
    again = sg.gap(rows[0], rows[1], metadata=said, cut_order="k,m,p", **asked)
    assert (rates(again) == rates(found)) == (order == "m,k,p")


def test_an_order_of_cuts_that_is_none_is_refused(log: str) -> None:
    with pytest.raises(sg.Refused, match='cut_order=: "p" is no order of cuts'):
        sg.gap(log, drafts=2, top_k=5, cut_order="p", progress=False)
    with pytest.raises(sg.Refused, match="is no order of cuts"):
        sg.audit(log, cut_order="p", progress=False)


@pytest.mark.parametrize(
    ("made", "args"),
    [
        (
            lambda log: sg.length(log, lengths=[1, 2], policies=["fixed", "p-min=0.5"]),
            ["length", "--lengths", "1,2", "--policies", "fixed,p-min=0.5"],
        ),
        (
            lambda log: sg.tree(
                log, topology="chain-2", schemes="with-replacement", verifiers="rrs", budget=4
            ),
            ["tree", "--trees", "chain-2", "--laws", "with-replacement", "--verifiers",
             "rrs", "--budget", "4"],
        ),
        (lambda log: sg.paths(log, paths=[1, 2]), ["paths", "--paths", "1,2"]),
    ],
)  # fmt: skip
def test_reports_of_text_are_those_of_the_command_line(
    made: Callable[[str], sg.Report], args: list[str], log: str, command: Command
) -> None:
    report = made(log)
    ran = command(args[0], log, *args[1:], "--format", "json")
    assert ran.code == 0, ran.err
    assert report.to_dict() == ran.json


def test_saved_files_are_those_of_the_command_line(
    log: str, command: Command, tmp_path: Path
) -> None:
    page = sg.tree(log, topology="chain-2", verifiers="rrs", budget=4).save(tmp_path / "mine")
    assert page == tmp_path / "mine" / "report.html"
    options = ["--trees", "chain-2", "--verifiers", "rrs", "--budget", "4"]
    assert command("tree", log, *options, "--out", tmp_path / "theirs").code == 0
    names = sorted(os.listdir(tmp_path / "mine"))
    assert "best-tree.eagle.json" in names
    assert names == sorted(os.listdir(tmp_path / "theirs"))
    for name in names:
        assert (tmp_path / "mine" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()


def test_logs_are_compared_as_by_the_command_line(
    log: str, command: Command, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    rows = list(sg.Log.open(log))[:40]
    with sg.LogWriter(second, vocabulary=49152, dtype="float32") as writer:
        for row in rows:
            full = np.full((2, 49152), -30.0, dtype=np.float32)
            assert row.token_ids is not None
            full[:, row.token_ids] = row.target, row.draft
            writer.append(
                target_logits=full[0], draft_logits=full[1], prompt_id=row.prompt_id or 0,
                token=row.token,
            )  # fmt: skip
    report = sg.gap([log, second], **SMALL)
    ran = command("gap", log, second, *OPTIONS, "--format", "json")
    assert report.to_dict() == ran.json
    report.save(tmp_path / "out")
    assert (tmp_path / "out" / "second" / "report.html").exists()
    with pytest.raises(ValueError, match="no table of positions"):
        report.positions()


def test_the_table_of_positions_is_that_of_the_command_line(
    log: str, command: Command, tmp_path: Path
) -> None:
    report = sg.gap(log, **SMALL)
    table = report.positions()
    assert command("gap", log, *OPTIONS, "--positions", tmp_path / "table.csv").code == 0
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[0].split(",") == table.names
    assert len(table) == len(lines) - 1 == 800
    columns = table.to_numpy()
    for at in (0, 399, 799):
        theirs = lines[at + 1].split(",")
        for name, entry in zip(table.names[1:], theirs[1:]):
            mine = float(columns[name][at])
            assert (entry == "" and np.isnan(mine)) or float(entry) == mine, name


def test_the_table_goes_to_every_library(log: str) -> None:
    table = sg.gap(log, drafts=2, temperature=1.0, verifiers="rrs", positions=True).positions()
    value = "with-replacement/rrs"
    arrow = pytest.importorskip("pyarrow").table(table)
    assert arrow.num_rows == len(table) == 400
    assert arrow[value].to_pylist() == list(table.to_numpy()[value])
    assert table.to_arrow().equals(arrow)
    pandas = pytest.importorskip("pandas")
    assert isinstance(table.to_pandas(), pandas.DataFrame)
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(table)[value].sum() == table.to_polars()[value].sum()


def test_nulls_are_nulls() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 6, 8))
    table = sg.gap(logits[0], logits[1], drafts=2, temperature=1.0, positions=True).positions()
    assert np.isnan(table.to_numpy()["prompt_id"]).all()
    assert pytest.importorskip("polars").DataFrame(table.to_polars())["prompt_id"].null_count() == 6
    assert pytest.importorskip("pyarrow").table(table)["prompt_id"].null_count == 6


def test_a_report_shows_itself_in_a_notebook(log: str) -> None:
    report = sg.gap(log, **SMALL)
    shown = report._repr_html_()
    assert shown.startswith('<div class="specgap"') and "&lt;svg" in shown
    assert "<script src" not in report.html()
    assert "rrs-wo" in str(report) and "| rrs" in report.markdown()
    assert json.loads(report.json) == report.to_dict()


def test_parts_merge_to_the_whole(log: str, command: Command, tmp_path: Path) -> None:
    whole = sg.gap(log, **SMALL)
    parts = [sg.Summary.of(log, part=(index, 3), **SMALL) for index in (3, 1, 2)]
    with pytest.raises(ValueError, match="positions"):
        parts[0].report()
    carried = [pickle.loads(pickle.dumps(part)) for part in parts]
    merged = carried[0].merge(carried[1]).merge(carried[2])
    assert merged.report().json == whole.json
    assert whole.summary is not None
    assert merged.to_bytes() == whole.summary.to_bytes()
    # The same bytes go through `specgap merge`.
    for at, part in enumerate(parts):
        (tmp_path / f"part-{at}").write_bytes(part.to_bytes())
    ran = command("merge", *sorted(tmp_path.glob("part-*")), "--format", "json")
    assert ran.json == whole.to_dict()


def test_errors_are_the_products_own(log: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere: cannot be opened"):
        sg.gap(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="temperature -1 is out of range"):
        sg.gap(log, temperature=-1.0)
    with pytest.raises(ValueError, match="top_p=2 is out of range"):
        sg.gap(log, top_p=2.0)
    with pytest.raises(ValueError, match="rrrs"):
        sg.gap(log, verifiers="rrrs")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'many' for lengths="):
        sg.length(log, lengths="many")
    with pytest.raises(ValueError, match="drafts, output and accepted|drafts"):
        sg.audit(log, rule="token")
    for what in ([3.5], 3):
        with pytest.raises(TypeError, match="a log is a path"):
            sg.gap(what)
    with pytest.raises(TypeError, match="rows of the target alone; give those of the draft too"):
        sg.gap(np.zeros((2, 3)))
    with pytest.raises(TypeError, match="temperature: give a number or several; this is 'x'"):
        sg.gap(log, temperature="x")  # type: ignore[arg-type]
    for drafts in (0, -2, 1.5, "0-2", True):
        with pytest.raises(ValueError, match="drafts: give whole numbers of at least 1"):
            sg.gap(log, drafts=drafts)  # type: ignore[arg-type]
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="is not a whole .npz archive"):
        sg.gap(broken)


def test_progress_is_told_and_may_stop_the_work() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 400, 2000)).astype(np.float32)
    told: list[tuple[int, int | None]] = []
    sg.gap(logits[0], logits[1], progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (400, 400)

    def stop(done: int, total: int | None) -> None:
        raise InterruptedError("enough")

    start = time.monotonic()
    with pytest.raises(InterruptedError, match="enough"):
        sg.gap(
            np.tile(logits[0], (20, 1)), np.tile(logits[1], (20, 1)),
            temperature=[0.5, 0.7, 1.0], progress=stop,
        )  # fmt: skip
    assert time.monotonic() - start < 30


def test_ctrl_c_stops_the_work() -> None:
    rng = np.random.default_rng(0)
    logits = np.tile(rng.normal(size=(2, 400, 4000)), (1, 30, 1))
    # A shell without job control starts what it puts in the background with Ctrl-C ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            sg.gap(logits[0], logits[1], temperature=[0.5, 0.7, 1.0])
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


def test_any_number_of_threads_gives_the_same_bytes(log: str) -> None:
    assert sg.gap(log, threads=1, **SMALL).json == sg.gap(log, threads=3, **SMALL).json


def test_a_forked_process_works(log: str) -> None:
    sg.alpha([0.5, 0.5], [0.75, 0.25], 2)
    child = os.fork()
    if child == 0:
        os._exit(0 if sg.alpha([0.5, 0.5], [0.75, 0.25], 2).value == 0.9375 else 1)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the forked process hangs")


def test_the_command_is_in_the_wheel(command: Command, tmp_path: Path) -> None:
    assert command("--version").out.startswith("specgap ")
    assert command("gap", tmp_path / "nowhere").code == 2
    problem = tmp_path / "coin.toml"
    problem.write_text(
        'schema = 1\nname = "coin"\ntarget = [0.5, 0.5]\ndrafts = 2\n'
        '[draft]\nscheme = "with-replacement"\nq = [0.75, 0.25]\n'
    )
    ran = command("solve", problem, "--format", "json").json
    mine = sg.solve(problem).to_dict()
    assert mine["optimal_acceptance_rate"] == ran["optimal_acceptance_rate"]
    assert mine["certificate"] == ran["certificate"]
    assert sg.verify(problem).to_dict() == command("verify", problem, "--format", "json").json
    assert sg.verify(problem.read_text()).ok


def test_a_paper_gets_what_the_command_line_gives(
    log: str, command: Command, tmp_path: Path
) -> None:
    report = sg.gap(log, **SMALL)
    tables = {"latex": ["acceptance", "gaps"], "csv": ()}
    report.save(
        tmp_path / "mine", figures=["pdf", "tex"], tables=tables, columns="n = 3", digits=2
    )
    options = ["--figures", "pdf,tex", "--table", "latex=acceptance,gaps,csv", "--columns", "n = 3"]
    ran = command("gap", log, *OPTIONS, *options, "--digits", "2", "--out", tmp_path / "theirs")
    assert ran.code == 0, ran.err
    names = sorted(os.listdir(tmp_path / "mine"))
    assert names == sorted(os.listdir(tmp_path / "theirs"))
    assert [name for name in names if name.startswith("table-") and name.endswith(".tex")] == [
        "table-acceptance.tex",
        "table-gaps.tex",
    ]
    for name in names:
        assert (tmp_path / "mine" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    table = report.table("acceptance")
    latex = (tmp_path / "mine" / "table-acceptance.tex").read_text()
    assert table.to_latex(columns=["n = 3"], digits=2) == latex
    assert table.to_csv("n = 3") == (tmp_path / "mine" / "table-acceptance.csv").read_text()
    for name in report.figures:
        drawn = tmp_path / "mine" / f"figure-{name}.pdf"
        assert report.figure(name).pdf == drawn.read_bytes()
        assert report.figure(name).savefig(tmp_path / "one.tex").read_text() == (
            drawn.with_suffix(".tex").read_text()
        )
        assert report.figure(name).svg.startswith(b"<svg")
    with pytest.raises(ValueError, match="no 'rates'; this report has .*acceptance"):
        report.table("rates")
    with pytest.raises(ValueError, match="columns: there is no \"n = 9\"; .*n = 3"):
        table.to_csv("n = 9")
    with pytest.raises(ValueError, match="'html' is no format; give latex or csv"):
        report.save(tmp_path / "no", tables="html")
    with pytest.raises(ValueError, match="give svg, pdf, tex, csv or png"):
        report.figure(report.figures[0]).savefig(tmp_path / "one.jpg")


def test_tables_of_rows_in_memory_have_the_numbers_of_the_data() -> None:
    random = np.random.default_rng(1)
    logits = random.normal(size=(2, 40, 30)).astype(np.float32)
    report = sg.gap(logits[0], logits[1], prompt_id=np.arange(40) // 8, **SMALL)
    lines = [line.split(",") for line in report.table("verifiers").to_csv().splitlines()]
    numbers = {(line[0], line[1]): [float(cell) for cell in line[2:5]] for line in lines[1:]}
    for cell in report.to_dict()["cells"]:
        if cell["drafts"] == 3:
            for row in cell["verifiers"]:
                known = row["acceptance"]
                mean, low, high = numbers[cell["scheme"], row["name"]]
                assert (mean, [low, high]) == (known["mean"], known["ci95"])
    assert "table-verifiers" not in report.table("verifiers").to_latex(digits=3)


def test_what_is_cited_is_what_a_report_has(log: str, command: Command, tmp_path: Path) -> None:
    report = sg.gap(log, schemes="with-replacement", **SMALL)
    text = sg.cite(report)
    assert f"note = {{Version {sg.__version__}" in text
    assert "SpecTr}: Fast" in text and "SpecHub" not in text and "SpecHub" in sg.cite()
    report.save(tmp_path)
    assert sg.cite(tmp_path / "report.json") == text
    assert command("cite", tmp_path / "report.json").out == text
    assert command("cite").out == sg.cite()


def test_a_bias_is_not_as_claimed_where_shared_numbers_would_explain_it() -> None:
    random = np.random.default_rng(8)
    p = random.dirichlet([2.0] * 4, 200)
    laws = p * [0.02, 6.0, 0.2, 0.6]
    laws /= laws.sum(1, keepdims=True)
    places = np.arange(200)
    log = {
        "target_probs": p, "draft_probs": p[:, ::-1].copy(), "prompt_id": places // 50, "position": places % 50,
        "token": np.array([random.choice(4, p=law) for law in laws]),
    }  # fmt: skip
    told = sg.audit(log, rule="text", temperature=1.0, exclude=0.3).to_dict()
    assert told["conclusion"] == "undecided" and "log seed [N]" in told["open"][0]
    fresh = sg.audit(log, rule="text", temperature=1.0, exclude=0.3, seeds="fresh").to_dict()
    assert fresh["conclusion"] == "lossy"


def test_a_log_with_evidence_against_it_is_not_as_claimed() -> None:
    undecided = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows, shift = rng.normal(size=(140, 40)), 1.5 * rng.normal(size=40)
        token = [rng.choice(40, p=row / row.sum()) for row in np.exp(rows + shift)]
        log = sg.Log.of_arrays(
            metadata={"sampling": {"temperature": 1.0}, "rows_from": "engine-raw"},
            target_logits=rows,
            prompt_id=np.arange(140) // 35,
            position=np.arange(140) % 35,
            seed=np.arange(140) // 35,
            output=np.array(token),
        )
        found = sg.audit(log, exclude=0.4).to_dict()
        if 3.0 <= found["capital"]["log10_outputs"] < found["capital"]["log10_needed"]:
            assert found["conclusion"] != "as-claimed", seed
            undecided += any("evidence against the claim" in one for one in found["open"])
    assert undecided > 3

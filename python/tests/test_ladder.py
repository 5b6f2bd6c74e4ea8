"""Does `scripts/ladder.py` make the pictures of reports/ladder, of their numbers?"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from .conftest import ROOT

_SHIPPED = ROOT / "reports" / "ladder"


def _made(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "ladder.py"), str(folder)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_the_shipped_section_is_what_the_script_makes(tmp_path: Path) -> None:
    shutil.copy(_SHIPPED / "report.json", tmp_path)
    (tmp_path / "report.md").write_text("# Title\n\n## Rates\n", encoding="utf-8")
    assert _made(tmp_path).returncode == 0
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    head, section = page.removesuffix("## Rates\n").split("\n\n", 1)
    assert head == "# Title" and section in (_SHIPPED / "report.md").read_text(encoding="utf-8")
    names = {file.name for file in tmp_path.glob("*.svg")}
    assert len(names) == 12 and names == {file.name for file in _SHIPPED.glob("*.svg")}
    for name in names:
        assert (tmp_path / name).read_bytes() == (_SHIPPED / name).read_bytes(), name

    # What is drawn is what the report has, from the worst draft to the best.
    report = json.loads((_SHIPPED / "report.json").read_text(encoding="utf-8"))

    def mean(what: str, log: int) -> float:
        found = [rate for rate in report["rates"] if (rate["what"], rate["temperature"]) == (what, 1.0)]
        usual = [r for r in found if r.get("drafts") == 3 and r["scheme"] == "with-replacement" and r.get("verifier") != "k-seq"]
        return float((usual or found)[0]["estimates"][log]["mean"])

    overlaps = [mean("overlap", log) for log in range(8)]
    ends = [overlaps.index(min(overlaps)), overlaps.index(max(overlaps))]
    left = [100 * (mean("optimum", log) - mean("acceptance", log)) for log in ends]
    assert f"left by rrs, with-replacement goes from {left[0]:.1f}% to {left[1]:.1f}%" in section


def test_two_logs_are_no_ladder(tmp_path: Path) -> None:
    report = json.loads((_SHIPPED / "report.json").read_text(encoding="utf-8"))
    report["logs"] = report["logs"][:2]
    (tmp_path / "report.json").write_text(json.dumps(report), encoding="utf-8")
    ran = _made(tmp_path)
    assert ran.returncode == 1 and "three or more logs of one text" in ran.stderr

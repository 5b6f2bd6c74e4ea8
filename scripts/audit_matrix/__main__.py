"""`scripts/audit-matrix`: made engines by length and source of rows, and what `specgap audit` says."""

import argparse
import concurrent.futures
import functools
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import engines
import rows
from play import Play

ACCUSED = ("lossy", "not-the-rule", "lossless-other")
EXITS = {"as-claimed": 0, "lossless-other": 0, "undecided": 4, "lossy": 1, "not-the-rule": 1}
WITHIN = 3  # a departure has to be found at this many times the ideal number of tokens
LIMIT = 900  # seconds of an audit
GOAL_CAUSES, GOAL_FOUND = 0.95, 0.95
TOLERANCE = 0.15  # of fitted values, of themselves; of probabilities near 1, of what lacks


def audit(binary, path, engine, alpha):
    command = [binary, "audit", str(path), "--format", "json", "--alpha", str(alpha)]
    if engine.rule != "text":
        command += ["--rule", engine.rule]
    if engine.by_option:
        command += ["--cut-order", engine.order]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "refused", {"name": f"no answer in {LIMIT} s", "fit": {}}, None, LIMIT
    seconds = time.monotonic() - began
    try:
        report = json.loads(done.stdout)
        return report["conclusion"], report.get("cause"), done.returncode, seconds
    except (ValueError, KeyError):
        return "refused", {"name": done.stderr.strip()[:300], "fit": {}}, done.returncode, seconds


def fits(wanted, fit):
    """None where nothing is fitted, else whether all wanted values are near."""
    found = []
    for key, value in wanted.items():
        if not isinstance(fit.get(key), (int, float)):
            continue
        if key == "top_p":
            found.append(abs(fit[key] - value) <= 0.35 * (1 - value) + 0.005)
        else:
            found.append(abs(fit[key] - value) <= TOLERANCE * abs(value) + 0.02)
    return all(found) if found else None


def judge(engine, count, conclusion, cause, ideal, moved, exclude):
    """What is right or wrong about one audit."""
    told = {"honest": True, "lossy": conclusion in ("lossy", "not-the-rule")}
    told["numbers"] = told["lossy"]
    told["lossless"] = conclusion in ("lossless-other", "not-the-rule")
    decidable = engine.truth != "honest" and ideal is not None and not engine.learnt and WITHIN * ideal <= count
    name = cause["name"] if cause else None
    right = None
    if engine.truth != "honest" and told[engine.truth] and name and engine.causes:
        right = name in engine.causes
    wanted = engine.causes.get(name, {}) if right else {}
    cleared = conclusion in ("as-claimed", "lossless-other") if engine.truth == "lossy" else False
    return {
        "accused": conclusion in ACCUSED if engine.truth == "honest" else
        engine.truth == "lossless" and conclusion == "lossy",
        "cleared": cleared and moved is not None and moved > exclude,
        "found": told[engine.truth] if engine.truth != "honest" else None,
        "decidable": decidable,
        "right": right,
        "fits": fits(wanted, cause.get("fit") or {}) if right and wanted else None,
    }


@functools.cache
def source_of(name):
    return rows.SOURCES[name]()


def case(task):
    """One engine on one source of rows: a play, and an audit of its first tokens at each length."""
    name, source, seed, options = task
    engine = next(one for one in engines.all_engines() if one.name == name)
    lengths = [count for count in options["lengths"] if count <= engine.most] or options["lengths"][:1]
    began = time.monotonic()
    played = Play(engine, source_of(source), seed).play(max(lengths))
    ideal, outputs, moved = played.ideal(max(lengths), 6), played.ideal(max(lengths), 7), played.moved_mean()
    seconds = time.monotonic() - began

    def at(count):
        safe = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
        path = pathlib.Path(options["folder"]) / f"{safe}-{source}-{count}-{seed}.npz"
        played.save(path, count)
        conclusion, cause, code, taken = audit(options["binary"], path, engine, options["alpha"])
        if not options["keep"]:
            path.unlink()
        result = {"engine": name, "rows": source, "count": count, "seed": seed, "conclusion": conclusion}
        result |= {"cause": cause["name"] if cause else None, "fit": (cause or {}).get("fit"), "exit": code}
        result |= {"ideal": ideal, "ideal_outputs": outputs, "tv": moved, "seconds": round(taken, 2)}
        return result | judge(engine, count, conclusion, cause, ideal, moved, options["exclude"])

    results = [at(count) for count in lengths]
    results[0]["played"] = round(seconds, 2)
    found = [one["count"] for one in results if one["found"]]
    if found:
        low, high = max([count for count in lengths if count < min(found)], default=10), min(found)
        for _ in range(options["refine"]):
            middle = round((low * high) ** 0.5)
            low, high = (low, middle) if at(middle)["found"] else (middle, high)
        results[0]["first"] = high
    return results


def joined(results):
    """Runs of different lengths as one: an engine was found at the least of all, and the longest run says the ideal."""
    by = {}
    for one in sorted(results, key=lambda one: one["count"]):
        by.setdefault((one["engine"], one["rows"], one["seed"]), []).append(one)
    for some in by.values():
        first = [one.pop("first") for one in some if "first" in one]
        some[0] |= {"first": min(first)} if first else {}
        for name in ("ideal", "ideal_outputs"):
            known = [one[name] for one in some if one[name] is not None]
            some[0][name] = known[-1] if known else None
    return [one for some in by.values() for one in some]


def shown(number):
    return "–" if number is None else f"{number:,}"


def table(results, lengths, sources):
    """A line for each engine: ideal tokens, where it was found, and its cause, by source of rows."""
    lines = ["|engine|" + "|".join(f"{source}: ideal|found at|cause" for source in sources) + "|"]
    lines.append("|---|" + "---:|---:|---|" * len(sources))
    by = {}
    for one in results:
        by.setdefault(one["engine"], {}).setdefault(one["rows"], []).append(one)
    kinds = {engine.name: engine for engine in engines.all_engines()}
    for name, of in by.items():
        cells = [name]
        for source in sources:
            some, honest = of.get(source, []), kinds[name].truth == "honest"
            if not some:
                cells += ["", "", ""]
                continue
            refused = [one for one in some if one["conclusion"] == "refused"]
            at = [one["count"] for one in some if one["accused"]] if honest else [one["first"] for one in some if "first" in one]
            last = max(some, key=lambda one: one["count"])
            ideals = sorted(one["ideal"] for one in some if one["ideal"] is not None)
            cells.append("honest" if honest else shown(ideals[len(ideals) // 2] if ideals else None))
            where = "refused" if refused else f"**accused at {min(at):,}**" if honest and at else shown(min(at) if at else None)
            cells.append(where + (" **cleared**" if any(one["cleared"] for one in some) else ""))
            rights = [one["right"] for one in some if one["right"] is not None]
            wrong = sorted({one["cause"] for one in some if one["right"] is False})
            words = "" if honest else "none" if not rights else "right" if all(rights) else "**wrong**: " + ", ".join(wrong)
            cells.append(last["conclusion"] if honest else words)
        lines.append("|" + "|".join(cells) + "|")
    return lines


def spread(times):
    if not times:
        return "none"
    times = sorted(times)
    return f"median {times[len(times) // 2]:.1f} times, nine in ten {times[len(times) * 9 // 10]:.1f}, most {times[-1]:.1f}"


def summary(results, alpha):
    """Lines of what was asked for, and whether each goal is met."""
    kinds = {engine.name: engine.truth for engine in engines.all_engines()}
    learnt = {engine.name: engine.learnt for engine in engines.all_engines()}
    honest = [one for one in results if kinds[one["engine"]] == "honest"]
    lossless = [one for one in results if kinds[one["engine"]] in ("honest", "lossless")]
    refused = [one for one in results if one["conclusion"] == "refused"]
    accused = [one for one in results if one["accused"]]
    lossy = [one for one in results if kinds[one["engine"]] == "lossy"]
    cleared = [one for one in lossy if one["cleared"]]
    named = [one for one in results if one["right"] is not None]
    right = [one for one in named if one["right"]]
    fitted = [one for one in right if one["fits"] is not None]
    due = [one for one in results if one["decidable"]]
    found = [one for one in due if one["found"]]
    told = [one for one in lossy if one["ideal_outputs"] and not learnt[one["engine"]] and WITHIN * one["ideal_outputs"] <= one["count"]]
    exits = [one for one in results if one["exit"] != EXITS.get(one["conclusion"], one["exit"])]
    longest = max(one["count"] for one in results)
    last = [one for one in honest if one["count"] == longest]
    allowed = alpha * len(honest) + 3 * (alpha * len(honest)) ** 0.5 * (alpha > 1e-3)

    ideal = [one for one in results if one["ideal"] and one["ideal"] >= 100 and "first" in one]

    def share(some, of):
        return f"{len(some)} of {len(of)}" + (f" ({len(some) / len(of):.1%})" if of else "")

    def where(some):
        return "".join(f"\n  - {one['engine']}, {one['rows']}, {one['count']:,}: {one['conclusion']}, {one['cause']}" for one in some[:40])

    lines = [
        (not refused, f"logs that were refused: {share(refused, results)}" + where(refused)),
        (len(accused) <= allowed, f"false accusations: {share(accused, lossless)}" + where(accused)),
        (not cleared, f"broken engines called as claimed, above what is excluded: {share(cleared, lossy)}" + where(cleared)),
        (len(right) >= GOAL_CAUSES * len(named), f"named causes that are right: {share(right, named)}"
         + where([one for one in named if not one["right"]])),
        (True, f"fitted values that are near: {share([one for one in fitted if one['fits']], fitted)}"
         + where([one for one in fitted if not one["fits"]])),
        (len(found) >= GOAL_FOUND * len(due), f"found at {WITHIN} times the ideal number of tokens: {share(found, due)}"
         + where([one for one in due if not one["found"]])),
        (True, f"found at, by ideal, of those whose ideal is at least 100: {spread([one['first'] / one['ideal'] for one in ideal])}"),
        (True, f"called lossy where outputs tell, by the same measure: {share([one for one in told if one['conclusion'] == 'lossy'], told)}"),
        (not exits, f"exit codes that do not fit the conclusion: {len(exits)}" + where(exits)),
        (True, f"honest logs of {longest:,} tokens that are as claimed: {share([one for one in last if one['conclusion'] == 'as-claimed'], last)}"),
    ]
    return lines


INTRO = """# Made engines, honest and broken, and what an audit says of each

`scripts/audit-matrix` plays engines of which the law is known to logs, and `specgap audit` is held against the truth. *Ideal*:
tokens at which the likelihood of what the engine does, over the claim, is expected to pass 1/alpha: no test that knows the bug
needs fewer on average. *Found at*: the shortest log that was called lossy, or another rule. *Cause*: whether what was named is
what was made; none is named where nothing explains the log better than all else by e^7. Rows: *made* (V = 48), *demo* (the shipped
log's on its 400 commonest tokens), *peaked* (V = 2,000). alpha = 1e-6; a broken engine counts as cleared where it moves a step by
more than TV .05 and is said to be as claimed, or another lossless rule.
"""


def not_run(results, lengths, sources):
    """Lengths at which engines of a source of rows were left out, in words."""
    chosen = {engine.name: engine for engine in engines.all_engines() if any(one["engine"] == engine.name for one in results)}
    run = {(one["engine"], one["rows"], one["count"]) for one in results}
    for source, count in itertools.product(sources, lengths):
        absent = sum((name, source, count) not in run for name, engine in chosen.items() if count <= engine.most)
        if absent:
            yield f" Not run: {absent} engines, {source}, {count:,} tokens."


def report(results, lengths, sources, options):
    """Prints the page, and writes it where it is asked for; the exit code."""
    lines = summary(results, options.alpha)
    page = "\n".join([
        *(f"- {'' if good else '**missed** '}{text}" for good, text in lines), "",
        f"{len({one['engine'] for one in results})} engines, {len(results)} logs, of {lengths} tokens."
        + "".join(not_run(results, lengths, sources)), "",
        *table(results, lengths, sources),
    ])
    print(page)
    if options.out:
        pathlib.Path(options.out).write_text(f"{INTRO}\n{page}\n")
        pathlib.Path(options.out).with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(good for good, _ in lines) else 1


def main():
    parser = argparse.ArgumentParser(prog="audit-matrix", description=__doc__)
    parser.add_argument("--binary", default="target/release/specgap")
    parser.add_argument("--engines", default="", metavar="REGEX", help="only those whose name it is found in")
    parser.add_argument("--lengths", help="default 200,1000,5000,20000; with --quick 200,1000")
    parser.add_argument("--rows", help=f"default {','.join(rows.SOURCES)}; with --quick made")
    parser.add_argument("--seeds", type=int, default=1, help="logs of each engine and source")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--refine", type=int, default=0, metavar="N", help="halve N times between the lengths where it is found")
    parser.add_argument("--quick", action="store_true", help="a small part, within a minute")
    parser.add_argument("--keep", metavar="DIR", help="keep the logs here")
    parser.add_argument("--from", nargs="+", metavar="JSON", dest="before", help="results of earlier runs in place of new ones")
    parser.add_argument("--alpha", type=float, default=1e-6)
    parser.add_argument("--exclude", type=float, default=0.05, help="the departure below which as-claimed is no fault")
    parser.add_argument("--out", metavar="FILE", help="write the Markdown here, and the results beside it as .json")
    options = parser.parse_args()
    lengths, sources, chosen = "200,1000,5000,20000", ",".join(rows.SOURCES), engines.all_engines()
    if options.quick:
        lengths, sources = "200,1000", "made"
        chosen = [engine for engine in chosen if engine.name in engines.QUICK]
    lengths = sorted(int(one) for one in (options.lengths or lengths).split(","))
    sources = (options.rows or sources).split(",")
    chosen = [engine for engine in chosen if re.search(options.engines, engine.name)]
    if options.before:
        results = joined([one for file in options.before for one in json.loads(pathlib.Path(file).read_text())])
        order = {engine.name: place for place, engine in enumerate(chosen)}
        results = sorted((one for one in results if one["engine"] in order), key=lambda one: order[one["engine"]])
        lengths = sorted({one["count"] for one in results})
        return report(results, lengths, [name for name in sources if any(one["rows"] == name for one in results)], options)
    if not chosen or set(sources) - set(rows.SOURCES) or not os.access(options.binary, os.X_OK):
        parser.error("no such engine, rows (of made, demo, peaked) or program at --binary")
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or made
        os.makedirs(folder, exist_ok=True)
        shared = {"binary": os.path.abspath(options.binary), "lengths": lengths, "folder": folder, "keep": bool(options.keep)}
        shared |= {"alpha": options.alpha, "exclude": options.exclude, "refine": options.refine}
        tasks = [(engine.name, source, seed, shared) for source in sources for engine in chosen for seed in range(options.seeds)]
        results = []
        with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
            for number, some in enumerate(pool.map(case, tasks), 1):
                results += some
                if sys.stderr.isatty() or number % 20 == 0:
                    print(f"{number} of {len(tasks)}", file=sys.stderr)
    return report(results, lengths, sources, options)


if __name__ == "__main__":
    sys.exit(main())

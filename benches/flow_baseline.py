#!/usr/bin/env python3
"""Times what one would use today, without specgap, for one optimal acceptance rate.

The quantity is the maximum flow

    source -> draft set A  (capacity: probability that the draft tokens form A)
    A -> each token in A   (no capacity)
    token i -> sink        (capacity: target probability p_i)

and three libraries can compute it:

    ortools-max-flow  SimpleMaxFlow on capacities scaled by 2^bits and rounded
    scipy-highs       linprog(method="highs") on the membership LP, sparse
    pot-emd           ot.emd2, dense sets x tokens cost, 0 for members, 1 otherwise

Standard input is a JSON list of problems:

    [{"name": "...", "target": [p_0, ...], "sets": [[token, ...], ...],
      "capacities": [mass of each set, ...], "expected": optional number}, ...]

or `--example V,V,...` generates problems: two draws with replacement, softmax
of normal logits, the draft's those of the target plus noise, fixed seed,
expected value by the ratio scan.

Standard output is one JSON object; progress goes to standard error. Each solve
runs in a process of its own, and the wall-clock limit counts from the moment
its input is read and its library imported. `build_seconds` is the time to form
the model from arrays in memory, `solve_seconds` the library's solve call alone,
`difference` is value minus expected. Status:

    ok           solved to what the library calls optimal
    timeout      stopped at the limit
    unavailable  the library is not installed
    memory-skip  not started: it could not fit; `message` has the numbers
    error        the library or its process failed; `message` says how

Exit code 0 when every input was processed, whatever the statuses; 2 for bad input.

    python3 -m venv .venv && .venv/bin/pip install -r benches/requirements.txt
    .venv/bin/python benches/flow_baseline.py --example 100,500 --budget-seconds 120
"""

import argparse
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import time

SCHEMA = 1

# Module to import, and distributions whose versions matter, per baseline.
BASELINES = {
    "ortools-max-flow": ("ortools", ["ortools", "numpy"]),
    "scipy-highs": ("scipy", ["scipy", "numpy"]),
    "pot-emd": ("ot", ["POT", "numpy"]),
}

GIB = 1 << 30


# --- Solvers, run in a worker process ------------------------------------------
#
# Each takes (target, owner, token, capacities), all NumPy arrays: membership k
# says that token[k] is in the set owner[k]. Each calls `built()` once, between
# forming the model and solving it, and returns (value, extra fields).


def ortools_max_flow(target, owner, token, capacities, scale_bits, built):
    import numpy as np
    from ortools.graph.python import max_flow

    scale = float(1 << scale_bits)
    set_count, vocab = len(capacities), len(target)
    source, first_token, sink = 0, 1 + set_count, 1 + set_count + vocab
    set_node = np.arange(1, 1 + set_count, dtype=np.int32)
    token_node = np.arange(first_token, sink, dtype=np.int32)
    tails = np.concatenate([np.full(set_count, source, np.int32), set_node[owner], token_node])
    heads = np.concatenate([set_node, token_node[token], np.full(vocab, sink, np.int32)])
    unlimited = np.full(len(owner), 1 << (scale_bits + 2), np.int64)
    limits = np.concatenate(
        [
            np.rint(capacities * scale).astype(np.int64),
            unlimited,
            np.rint(target * scale).astype(np.int64),
        ]
    )
    graph = max_flow.SimpleMaxFlow()
    graph.add_arcs_with_capacity(tails, heads, limits)
    built()
    status = graph.solve(source, sink)
    if status != graph.OPTIMAL:
        raise RuntimeError(f"SimpleMaxFlow returned status {status}")
    # The flow equals a cut, and a cut holds at most one rounded capacity per
    # set and per token, each off by at most half a unit.
    bound = 0.5 * (set_count + vocab) / scale
    return graph.optimal_flow() / scale, {"scale_bits": scale_bits, "rounding_bound": bound}


def scipy_highs(target, owner, token, capacities, scale_bits, built):
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    set_count, vocab, variables = len(capacities), len(target), len(owner)
    rows = np.concatenate([owner, set_count + token])
    columns = np.concatenate([np.arange(variables), np.arange(variables)])
    matrix = csr_array((np.ones(2 * variables), (rows, columns)), shape=(set_count + vocab, variables))
    limits = np.concatenate([capacities, target])
    built()
    result = linprog(-np.ones(variables), A_ub=matrix, b_ub=limits, bounds=(0, None), method="highs")
    if result.status != 0:
        raise RuntimeError(f"linprog returned status {result.status}: {result.message}")
    return -result.fun, {"iterations": int(result.nit)}


def pot_emd(target, owner, token, capacities, scale_bits, built):
    import numpy as np
    import ot

    cost = np.ones((len(capacities), len(target)))
    cost[owner, token] = 0.0
    built()
    # The default iteration limit stops early and returns a wrong value.
    value, log = ot.emd2(capacities, target, cost, numItermax=10**12, log=True)
    if log.get("warning"):
        raise RuntimeError(f"emd2: {log['warning']}")
    # Coupling all of the mass leaves exactly the rejected part at cost 1.
    return 1.0 - float(value), {}


SOLVERS = {
    "ortools-max-flow": ortools_max_flow,
    "scipy-highs": scipy_highs,
    "pot-emd": pot_emd,
}


def worker(baseline, path, scale_bits, memory_bytes):
    """Solves the problem in `path`; prints one JSON object a line as it goes."""

    def say(**fields):
        print(json.dumps(fields), flush=True)

    import numpy as np

    importlib.import_module(
        {
            "ortools-max-flow": "ortools.graph.python.max_flow",
            "scipy-highs": "scipy.optimize",
            "pot-emd": "ot",
        }[baseline]
    )
    with open(path, encoding="utf-8") as file:
        problem = json.load(file)
    target = np.array(problem["target"], dtype=np.float64)
    capacities = np.array(problem["capacities"], dtype=np.float64)
    sizes = np.array([len(members) for members in problem["sets"]], dtype=np.int64)
    owner = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    token = np.array([t for members in problem["sets"] for t in members], dtype=np.int64)
    del problem
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (ImportError, ValueError, OSError):
        resource = None  # not a POSIX system: no memory limit
    say(ready=True)

    start = time.perf_counter()
    marks = []

    def built():
        marks.append(time.perf_counter())
        say(build_seconds=marks[0] - start)

    try:
        value, extra = SOLVERS[baseline](target, owner, token, capacities, scale_bits, built)
    except MemoryError:
        say(status="error", message=f"out of memory within {memory_bytes / GIB:.1f} GiB")
        return
    except Exception as error:
        say(status="error", message=f"{type(error).__name__}: {error}")
        return
    end = time.perf_counter()
    if resource is not None:
        unit = 1 if sys.platform == "darwin" else 1024
        extra["peak_resident_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    say(status="ok", value=float(value), solve_seconds=end - marks[0], **extra)


# --- The parent: standard library only ------------------------------------------


class InputError(Exception):
    pass


def check_problem(index, problem):
    """Refuses what a solver would silently misread."""
    if not isinstance(problem, dict):
        raise InputError(f"problem {index}: not an object")
    label = f"problem {index} ({problem.get('name', 'unnamed')})"
    for field in ("name", "target", "sets", "capacities"):
        if field not in problem:
            raise InputError(f"{label}: field `{field}` is missing")
    for field in ("target", "sets", "capacities"):
        if not isinstance(problem[field], list) or not problem[field]:
            raise InputError(f"{label}: `{field}` must be a list with at least one entry")
    for field in ("target", "capacities"):
        for entry, mass in enumerate(problem[field]):
            number = isinstance(mass, (int, float)) and not isinstance(mass, bool)
            if not number or not math.isfinite(mass) or mass < 0:
                raise InputError(f"{label}: {field}: entry {entry} is {mass!r}; masses must be finite and >= 0")
        total = math.fsum(problem[field])
        if abs(total - 1.0) > 1e-6:
            raise InputError(f"{label}: `{field}` sums to {total!r}; it must sum to 1 within 1e-6")
    if len(problem["sets"]) != len(problem["capacities"]):
        raise InputError(
            f"{label}: {len(problem['sets'])} sets but {len(problem['capacities'])} capacities; "
            "give one capacity per set"
        )
    expected = problem.get("expected", 0.0)
    if isinstance(expected, bool) or not isinstance(expected, (int, float)) or not 0 <= expected <= 1:
        raise InputError(f"{label}: expected: {expected!r} is not a number between 0 and 1")
    vocab = len(problem["target"])
    for entry, members in enumerate(problem["sets"]):
        tokens_ok = isinstance(members, list) and all(type(t) is int and 0 <= t < vocab for t in members)
        if not tokens_ok or not members or len(set(members)) != len(members):
            raise InputError(f"{label}: sets: entry {entry} must be distinct token ids below {vocab}, at least one")


def example(vocab):
    """Two draws with replacement; the expected value comes from the ratio scan."""
    generator = random.Random(vocab)

    def softmax(logits):
        weights = [math.exp(logit) for logit in logits]
        total = math.fsum(weights)
        return [weight / total for weight in weights]

    # A draft that resembles its target. With unrelated ones most tokens are
    # decided by presolve alone, and the timings flatter the LP.
    logits = [generator.gauss(0.0, 2.0) for _ in range(vocab)]
    target = softmax(logits)
    draft = softmax([logit + generator.gauss(0.0, 0.7) for logit in logits])
    sets = [[i] for i in range(vocab)]
    capacities = [mass * mass for mass in draft]
    for i in range(vocab):
        for j in range(i + 1, vocab):
            sets.append([i, j])
            capacities.append(2.0 * draft[i] * draft[j])
    # 1 + the least P(H) - q(H)^2 over prefixes H of the order by falling q/p.
    order = sorted(range(vocab), key=lambda i: target[i] / draft[i])
    best = p_mass = q_mass = 0.0
    for i in order:
        p_mass += target[i]
        q_mass += draft[i]
        best = min(best, p_mass - q_mass * q_mass)
    return {
        "name": f"with-replacement-v{vocab}-n2",
        "target": target,
        "sets": sets,
        "capacities": capacities,
        "expected": 1.0 + best,
    }


def physical_memory_bytes():
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * GIB


def least_memory(baseline, problem):
    """Bytes without which the baseline cannot hold its model, and what they are."""
    set_count, vocab = len(problem["sets"]), len(problem["target"])
    if baseline == "pot-emd":
        pairs = set_count * vocab
        # cost and plan: two doubles per (set, token)
        return 16 * pairs, f"the dense cost and plan of {set_count} sets x {vocab} tokens"
    memberships = sum(len(members) for members in problem["sets"])
    # one index and one double per nonzero, or one arc and its reverse
    return 24 * memberships, f"{memberships} memberships"


def run_baseline(baseline, problem, path, arguments):
    module, distributions = BASELINES[baseline]
    for needed in (module, "numpy"):
        if importlib.util.find_spec(needed) is None:
            return {
                "status": "unavailable",
                "message": f"{needed} is not installed; run: pip install -r benches/requirements.txt",
            }
    limit = int(arguments.memory_gib * GIB)
    needed_bytes, what = least_memory(baseline, problem)
    if needed_bytes > limit:
        return {
            "status": "memory-skip",
            "message": f"{what} need at least {needed_bytes / GIB:.1f} GiB; the limit is {limit / GIB:.1f} GiB",
        }

    command = [sys.executable, os.path.abspath(__file__), "--worker", baseline, path]
    command += ["--scale-bits", str(arguments.scale_bits), "--memory-gib", str(arguments.memory_gib)]
    with tempfile.TemporaryFile() as errors:
        # Unbuffered, so that reading a line leaves the rest to communicate().
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, bufsize=0)
        timed_out = False
        try:
            output = process.stdout.readline()
            try:
                rest, _ = process.communicate(timeout=arguments.budget_seconds)
            except subprocess.TimeoutExpired:
                timed_out = True
                process.kill()
                rest, _ = process.communicate()
        except BaseException:
            process.kill()
            process.wait()
            raise
        errors.seek(0)
        last_words = errors.read().decode("utf-8", "replace").strip().splitlines()[-3:]

    record = {}
    for line in (output + rest).splitlines():
        try:
            record.update(json.loads(line))
        except ValueError:
            pass  # a line cut off by the kill, or a library's own print
    record.pop("ready", None)
    if "status" in record:
        pass
    elif timed_out:
        phase = "solving" if "build_seconds" in record else "building"
        record["status"] = "timeout"
        record["message"] = f"stopped while {phase}, after {arguments.budget_seconds:g} s in all"
    else:
        record["status"] = "error"
        record["message"] = f"process ended with code {process.returncode}: " + " / ".join(last_words)
    if record["status"] == "ok" and "expected" in problem:
        record["difference"] = record["value"] - problem["expected"]
    return record


def versions():
    found = {}
    for name in sorted({name for _, names in BASELINES.values() for name in names}):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget-seconds", type=float, default=120.0, help="limit per solve (default 120)")
    parser.add_argument(
        "--memory-gib",
        type=float,
        default=physical_memory_bytes() / GIB / 2,
        help="address space per solve (default: half of the physical memory)",
    )
    parser.add_argument("--scale-bits", type=int, default=52, help="OR-Tools capacity scale, 1 to 56 (default 52)")
    parser.add_argument("--baselines", default=",".join(BASELINES), help="comma-separated (default: all)")
    parser.add_argument("--example", metavar="V,...", help="generate problems instead of reading standard input")
    parser.add_argument("--worker", nargs=2, metavar=("BASELINE", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not 1 <= arguments.scale_bits <= 56:
        parser.error("--scale-bits must be between 1 and 56")
    if not arguments.budget_seconds > 0:
        parser.error("--budget-seconds must be above 0")
    arguments.baselines = arguments.baselines.split(",")
    for name in arguments.baselines:
        if name not in BASELINES:
            parser.error(f"--baselines: `{name}` is not one of {', '.join(BASELINES)}")
    return arguments


def read_problems(arguments):
    if arguments.example:
        try:
            vocabularies = [int(text) for text in arguments.example.split(",")]
        except ValueError:
            raise InputError("--example: give vocabulary sizes separated by commas, such as 100,500") from None
        if min(vocabularies) < 1:
            raise InputError("--example: a vocabulary size must be at least 1")
        return [example(vocab) for vocab in vocabularies]
    try:
        problems = json.load(sys.stdin)
    except ValueError as error:
        raise InputError(f"standard input: not JSON: {error}") from error
    if not isinstance(problems, list):
        raise InputError("standard input: must be a JSON list of problems")
    for index, problem in enumerate(problems):
        check_problem(index, problem)
    return problems


def main():
    arguments = parse_arguments()
    if arguments.worker:
        worker(*arguments.worker, arguments.scale_bits, int(arguments.memory_gib * GIB))
        return 0
    try:
        problems = read_problems(arguments)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2

    results = []
    for problem in problems:
        records = {}
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "problem.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(problem, file)
            for baseline in arguments.baselines:
                records[baseline] = run_baseline(baseline, problem, path, arguments)
                took = records[baseline].get("solve_seconds")
                note = records[baseline]["status"] if took is None else f"{took:.4f} s"
                print(f"{problem['name']}: {baseline}: {note}", file=sys.stderr, flush=True)
        values = [record["value"] for record in records.values() if "value" in record]
        results.append(
            {
                "name": problem["name"],
                "vocab": len(problem["target"]),
                "sets": len(problem["sets"]),
                "memberships": sum(len(members) for members in problem["sets"]),
                "expected": problem.get("expected"),
                "max_abs_difference": max(values) - min(values) if len(values) > 1 else None,
                "baselines": records,
            }
        )
    report = {
        "schema": SCHEMA,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "packages": versions(),
        "budget_seconds": arguments.budget_seconds,
        "memory_gib": arguments.memory_gib,
        "problems": results,
    }
    json.dump(report, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())

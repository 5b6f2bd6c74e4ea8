"""Reports of the same rows written in two ways: as lists and in full, with a mask and masked by hand."""

import itertools
import json
import os
import tempfile

import numpy
import specgap as sg
from audits import log_uniform, softmax


def text(random, most):
    """Rows of two models at the places of some texts, and the temperature."""
    size, count, temperature = int(random.integers(4, 40)), int(log_uniform(random, 40, most)), float(random.choice([1.0, 0.7]))
    target = log_uniform(random, 0.5, 3.0) * random.normal(size=(count, size))
    draft = target + log_uniform(random, 0.2, 2.0) * random.normal(size=(count, size))
    prompts = numpy.sort(random.integers(int(random.integers(2, 9)), size=count))
    place = numpy.arange(count) - numpy.searchsorted(prompts, prompts)
    return {"target_logits": target, "draft_logits": draft, "prompt_id": prompts, "position": place}, temperature


def drawn(random, logits):
    return (softmax(logits).cumsum(axis=1) < random.random((len(logits), 1)) * (1 - 1e-12)).sum(axis=1)


def log_of(temperature, tensors, **more):
    return sg.Log.of_arrays(metadata={"sampling": {"temperature": temperature}, "temperature_applied": 1.0, **more}, **tensors)


def listed(random, tensors, temperature):
    """A log of the likeliest tokens of the same rows: shared or own lists, with the mass of the rest or without."""
    size, own, rest = tensors["target_logits"].shape[1], random.random() < 0.5, str(random.choice(["at T", "at 1", "of probabilities"]))
    most, at = int(random.integers(2, size)), temperature if rest == "at T" else 1.0
    made = {name: one for name, one in tensors.items() if "logits" not in name}
    for model in ("target", "draft"):
        logits, by = tensors[f"{model}_logits"], tensors[f"{model if own else 'target'}_logits"]
        ids = made[f"{model}_token_ids" if own else "token_ids"] = numpy.argsort(-by, axis=1, kind="stable")[:, :most]
        inside = numpy.take_along_axis(softmax(logits / at), ids, 1)
        by_logits = {f"{model}_logits": numpy.take_along_axis(logits, ids, 1), f"{model}_rest": 1 - inside.sum(axis=1, keepdims=True)}
        made |= {f"{model}_probs": inside} if rest == "of probabilities" else by_logits
    said = {"vocabulary": size, "top": {"target": most, "draft": most if own else 0}, "rest_temperatures": [at]}
    return f"{'own' if own else 'shared'} lists, rest {rest}", log_of(temperature, made, **said)


def misled(name, bounded, full, verdict=None):
    """What is wrong with a number of lists, where the rows in full have another; `verdict`: of advice."""
    (low, high), sampled = bounded.get("truncation") or (-numpy.inf, numpy.inf), numpy.diff(bounded["ci95"])[0] / 2
    is_right = low - 1e-9 <= full <= high + 1e-9 and not (verdict == "worth" and full < -sampled)
    return None if is_right else f"{name}: {verdict} {bounded}, and {full} on the rows in full"


def rankings(random):
    tensors, temperature = text(random, 300)
    tensors["token"] = drawn(random, tensors["target_logits"] / temperature)
    (kind, lists), wrong, order = listed(random, tensors, temperature), [], numpy.unique(tensors["prompt_id"], return_inverse=True)[1]
    odd = numpy.array([bin(number).count("1") % 2 == 1 for number in order])  # the half that measures: Thue and Morse's sequence
    full, half = (log_of(temperature, {name: one[of] for name, one in tensors.items()}) for of in (order >= 0, odd))
    asked = {"cost_ratio": float(random.choice([0.02, 0.1, 0.3])), "threads": 1, "progress": False}
    if random.random() < 0.5:
        call, kind, asked["budget"] = sg.tree, f"tree, {kind}", 3
        asked["schemes"] = str(random.choice(["with-replacement", "with-replacement", "top", "stratified"]))
        asked["topology"] = ["chain-2", str(random.choice(["2x1", "2x2", "prefix-2-1"]))]
    else:
        call, kind, asked["lengths"] = sg.length, f"length, {kind}", [1, 2, 3]

    def results(report):
        """By what a report calls it: each result that is no simulation."""
        words = "{tree}, {scheme}/{verifier}" if call is sg.tree else "{drafts}/{verifier}, {parameter}"
        return {words.format(**one): one for one in report["results"] if "sampled" not in one["kind"] and one["speedup"]}

    report, known = call(lists, **asked).to_dict(), results(call(full, **asked).to_dict())
    changes, numbers = report.get("advice") or [], ("tokens_per_call", "speedup", "expected_accepted_length")
    for name, number in itertools.product(known, numbers):
        one, other = results(report).get(name, {}).get(number), known[name].get(number)
        wrong += [misled(f"{name} {number}", one, other["mean"])] if one and other else []
    with tempfile.NamedTemporaryFile("w", suffix=".json", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as file:
        if changes and call is sg.tree:
            asked["topology"].append(file.name)
            file.write(json.dumps(report["best"][0]["paths"]))
            file.flush()
        speed = results(call(half, **asked).to_dict()) if changes else {}
    for one in changes:
        grown = f"{os.path.basename(file.name)}, {one['to'].rsplit(', ')[-1]}"
        if one["from"] in speed and (one["to"] in speed or grown in speed):
            difference = speed.get(one["to"], speed.get(grown))["speedup"]["mean"] - speed[one["from"]]["speedup"]["mean"]
            wrong.append(misled(f"{one['from']} to {one['to']}", one["difference"], difference, one["verdict"]))
    return kind, max((one["verdict"] for one in changes), default="no advice"), next(filter(None, wrong), None)


def masks(random):
    tensors, temperature = text(random, 120)
    count, size = tensors["target_logits"].shape
    allowed = (random.random((count, size)) < random.choice([0.2, 0.5, 0.9])) | (random.random((count, 1)) < 0.3)
    allowed[numpy.arange(count), random.integers(size, size=count)] = True
    form, kind = str(random.choice(["bool", "u8", "packed"])), str(random.choice(["f8", "f4", "f2"]))
    wide = numpy.pad(allowed, ((0, 0), (0, -size % 32)))
    mask = {"bool": allowed, "u8": allowed.astype("u1"), "packed": numpy.packbits(wide, axis=1, bitorder="little").view("<i4")}[form]
    tensors |= {name: tensors[name].astype(kind) for name in ("target_logits", "draft_logits")}
    by_hand = numpy.where(allowed, tensors["target_logits"], -numpy.inf).astype(kind)
    tensors["token"] = drawn(random, by_hand.astype(float) / temperature)
    cuts = [{}, {}, {"top_k": int(random.integers(1, size + 1))}, {"top_p": 0.8}, {"min_p": 0.1}][random.integers(5)]
    call, asked = [
        (sg.gap, {"drafts": [1, 2], **cuts}),
        (sg.length, {"lengths": [1, 2, 3], "cost_ratio": 0.1}),
        (sg.tree, {"topology": ["chain-2", "2x1"], "budget": 3, "schemes": "with-replacement"}),
    ][random.choice(3, p=[0.5, 0.35, 0.15])]
    logs = {**tensors, "allowed": mask}, {**tensors, "target_logits": by_hand}
    kept = lambda one: {key: one[key] for key in one if key not in ("command", "files", "masked")}  # noqa: E731
    reports = (call(log_of(temperature, log), **asked, threads=1, progress=False).json for log in logs)
    one, other = (json.dumps(json.loads(report, object_hook=kept)) for report in reports)
    at = max(len(os.path.commonprefix([one, other])) - 80, 0)
    wrong = None if one == other else [one[at : at + 160], other[at : at + 160]]
    return f"{call.__name__}, {form}", "differs" if wrong else "equal", wrong

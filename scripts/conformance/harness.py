"""Runs a verification kernel over the vectors of `specgap conformance`.

    specgap conformance --out vectors
    python harness.py vectors --kernel reference

The kernel is a C library or a C file, as header_kernel.c says, or a Python module (a name, or a
path ending in .py) with one function for each rule that it has, named after the rule with `_` for
`-`. Each gets one vector and does it many times, or returns `None` for drafts of a kind it lacks:

    def token(vector, samples, seed):           # and one_hot
        ...
        return accepted, token                  # integers [samples]

    def carried(vector, samples, seed):         # and carried_block
        ...
        return accepted, token, carry           # what is carried on: [samples, ...] as vector.carry

    def rrs(vector, samples, seed):             # and rrs_wo, level_4, exact_match
        ...
        return token                            # integers [samples]

    def shared_gumbel(vector, noise):           # noise [U, V]: -ln of even numbers
        ...
        return drafts, token, accepted          # integers [U, drafts], -1 behind the last; [U]; [U]

    def token_call(call, samples, seed):        # several requests at once, as a server has them
        ...
        return accepted, token                  # integers [samples, requests]; token -1 refuses

    def traversal(tree, samples, seed):         # and traversal_4, of a drafted tree
        ...
        return row, token                       # integers [samples]: the last row that is kept

`vector.target`, `vector.draft` and `vector.drafts` are arrays as manifest.json says. A kernel that
is a function of uniform numbers may have `token_coins(vector, coins, final_coin)` as well, with
coins [U, K] and final_coin [U], which returns the same for these numbers. If its last draw is no
inverse of the distribution function in order of id, it says FINAL_COIN = False. So may
`token_call_coins(call, coins, final_coin)`, with coins [U, R, K] and final_coin [U, R].

A tree is what trees.json says: `target`, `draft`, `tokens`, `parents`, `slots`, `levels`, `law`. Row
0 is the text and row i + 1 drafted node i. `traversal_coins(tree, coins, final_coin)` has a coin a
node, [U, nodes]: the node is refused while the coin is below the probability that all its offers so
far were refused.

A request whose q or p broke on the way (NaN, infinity, no sum) may be refused, by token -1 or by an
error that is raised. If it is not, q says nothing: then the first token follows p whatever was
drafted. The other requests of its call keep their laws, and no two requests of a call depend on
each other: a kernel whose requests share numbers has the right law in each of them.

What is checked:

- support, exactly: no token of probability 0 comes out, and no number of accepted drafts;
- coins, exactly: each outcome is the one that these numbers stand for;
- what is carried on behind the likeliest next token, within 1e-4;
- the law, by counts. Numbers of accepted drafts, and the next token given each of them, are
  compared with the exact law in cells: the likeliest tokens, one each, and ranges of ids. A cell
  fails if samples KL(observed, law) is above ln(2 cells / level), cells being those of the whole
  run. Of two requests of a call the cells are what both come to: numbers of accepted drafts, halves
  of the next token's law, and the same next token; their law is the product. By Chernoff's bound a correct kernel fails anywhere with probability at most `--level`.

Exit code 0 if all passed, 1 if a vector failed, 2 for bad usage. Needs NumPy alone.
"""

import argparse
import importlib
import importlib.util
import itertools
import json
import math
import pathlib
import sys
import traceback

import numpy

CELLS = 16
CHAINS = ("token", "one-hot", "carried", "carried-block")
TREES = ("traversal", "traversal-4")


# Names that rules had in vectors of earlier versions.
RENAMED = {"chain": "token", "target-only": "exact-match"}
# And in kernels.
OLD_NAMES = {"token": "chain", "exact_match": "target_only"}


class Vector:
    """One vector: the arrays of its file at its place."""

    def __init__(self, arrays, index, rule, situation, file):
        self.rule = RENAMED.get(rule, rule)
        self.situation, self.file, self.index = situation, file, index
        for name, array in arrays.items():
            setattr(self, name, array[index])

    def __str__(self):
        return f"{self.file}[{self.index}] {self.situation}"


def read(folder, only_rules, largest):
    path, of_trees = folder / "manifest.json", folder / "trees.json"
    if not path.exists() and not of_trees.exists():
        refuse(f"{path} is not there; make it with: specgap conformance --out {folder}")
    made = [json.loads(one.read_text()) if one.exists() else {"schema": 1} for one in (path, of_trees)]
    for one, contents in zip((path, of_trees), made):
        if contents.get("schema") != 1:
            refuse(f"{one}: schema is {contents.get('schema')}; this reads 1")
    for file in made[0].get("files", []):
        if only_rules and file["rule"] not in only_rules or file["vocabulary"] > largest:
            continue
        with numpy.load(folder / file["file"]) as archive:
            arrays = {name: archive[name] for name in archive.files}
        for index, situation in enumerate(file["situations"]):
            vector = Vector(arrays, index, file["rule"], situation, file["file"])
            vector.is_call, vector.is_noise = (file.get("kind") == kind for kind in ("calls", "noise"))
            yield vector
    for index, tree in enumerate(made[1].get("vectors", [])):
        if only_rules and tree["rule"] not in only_rules:
            continue
        arrays = {
            name: [numpy.array(tree[name])]
            for name in ("target", "draft", "tokens", "parents", "kept_law", "next_law")
        }
        vector = Vector(arrays, 0, tree["rule"], tree["situation"], of_trees.name)
        vector.index, vector.is_call, vector.is_noise = index, False, False
        vector.slots, vector.levels, vector.law = tree["slots"], tree["levels"], tree["law"]
        vector.coins = numpy.array([one["nodes"] for one in tree["coins"]])
        vector.final_coin = numpy.array([one["last"] for one in tree["coins"]])
        vector.right = numpy.array([[one["kept"], one["token"]] for one in tree["coins"]])
        yield vector


class Request(Vector):
    """One request of a call, as a vector whose padding is cut off."""

    def __init__(self, call, at):
        self.rule, self.situation, self.file, self.index = "token", call.situation, call.file, call.index
        self.expect, self.possible = int(call.expect[at]), 1
        self.first_law = call.first_law[at]
        self.accepted_law, self.next_law = call.request_accepted_law[at], call.request_next_law[at]
        count = int(call.verified[at])
        self.drafts, self.draft_tokens = call.draft_tokens[at][:count], call.draft_tokens[at]
        self.coins = call.request_coins[:, at]
        self.final_coin = call.request_final_coin[:, at]
        self.coins_accepted = call.request_coins_accepted[:, at]
        self.final_token = call.request_final_token[:, at]


def refuse(message):
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(2)


def load(name):
    if name.endswith((".c", ".so", ".dylib", ".dll")):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
        return importlib.import_module("c_kernel").Kernel(name)
    if name.endswith(".py"):
        spec = importlib.util.spec_from_file_location(pathlib.Path(name).stem, name)
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(pathlib.Path(name).resolve().parent))
        spec.loader.exec_module(module)
        return module
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    return importlib.import_module(name)


def divergence(observed, law):
    """KL of a coin that came up `observed` from one of probability `law`."""
    if law <= 0 or law >= 1:
        return 0.0 if observed == law else math.inf
    total = 0.0
    if observed > 0:
        total += observed * math.log(observed / law)
    if observed < 1:
        total += (1 - observed) * math.log((1 - observed) / (1 - law))
    return total


def cells(law):
    """Sets of tokens that are counted: (words, tokens)."""
    heavy = numpy.argsort(-law, kind="stable")[: min(CELLS, law.size)]
    for token in heavy:
        if law[token] > 0:
            yield f"token {token}", slice(token, token + 1)
    if law.size > CELLS:
        edges = numpy.linspace(0, law.size, CELLS + 1).astype(int)
        for low, high in zip(edges, edges[1:]):
            yield f"tokens {low}..{high - 1}", slice(low, high)


def halves(request, accepted, token):
    """What a request may come to, with its law: (words, where it came to that, probability)."""
    low = 0.0
    below = numpy.zeros(accepted.size, bool)
    for count, (chance, law) in enumerate(zip(request.accepted_law, request.next_law)):
        yield f"{count} accepted", accepted == count, float(chance)
        # The least ids with half of the law, as far as one id can have no more than that.
        ends = numpy.cumsum(law)
        middle = int(numpy.argmin(numpy.abs(ends - 0.5)))
        below |= (accepted == count) & (token <= middle)
        low += float(chance * ends[middle])
    yield "a low token", below, low


class Run:
    """One kernel over all vectors."""

    def __init__(self, kernel, samples, level, seed):
        self.kernel, self.samples, self.level, self.seed = kernel, samples, level, seed
        self.results = []
        self.counted = []
        self.left_out = 0

    def vector(self, vector):
        if vector.is_call:
            self.call(vector)
            return
        name = vector.rule.replace("-", "_")
        if not hasattr(self.kernel, name):
            name = OLD_NAMES.get(name, name)
        function = getattr(self.kernel, name, None)
        if function is None:
            return
        failures = []
        try:
            if vector.is_noise:
                failures += self.noise(vector, function)
                self.results.append([vector, failures])
                return
            ended = function(vector, self.samples, self.seed + vector.index)
            if ended is None:
                self.left_out += 1
                return
            if vector.rule in TREES:
                failures += self.tree(vector, *map(as_ids, ended))
                coins = getattr(self.kernel, f"{name}_coins", None)
                if coins is not None:
                    failures += self.tree_coins(vector, coins)
            elif vector.rule in CHAINS:
                accepted, token = map(as_ids, ended[:2])
                failures += self.chain(vector, accepted, token)
                failures += self.carried_on(vector, accepted, token, ended[2:])
                coins = getattr(self.kernel, f"{name}_coins", None)
                if coins is not None:
                    failures += self.coins(vector, coins)
            else:
                failures += self.siblings(vector, as_ids(ended))
        except Exception as error:
            failures.append(raised(error))
        self.results.append([vector, failures])

    def call(self, call):
        """Several requests at once: each is judged by itself."""
        function = getattr(self.kernel, "token_call", None)
        if function is None:
            return
        requests = [Request(call, at) for at in range(len(call.counts))]
        failures = []
        try:
            accepted, token = function(call, self.samples, self.seed + call.index)
            accepted, token = as_table(accepted), as_table(token)
            if accepted.shape != (self.samples, len(requests)) or token.shape != accepted.shape:
                failures.append(f"returned arrays of shape {accepted.shape} and {token.shape}")
            else:
                for at, request in enumerate(requests):
                    found = self.request(request, accepted[:, at], token[:, at])
                    failures += [f"request {at}: {words}" for words in found]
                if not failures:
                    self.pairs(requests, accepted, token)
                failures += self.call_coins(call, requests)
        except Exception as error:
            # A call with a row that broke may be refused as a whole.
            if not call.expect.any():
                failures.append(raised(error))
        self.results.append([call, failures])

    def request(self, request, accepted, token):
        if request.expect == 0:
            return self.chain(request, accepted, token)
        if (token == -1).all():
            return []
        size = request.first_law.shape[-1]
        drafted = request.draft_tokens[0]
        first = numpy.where(accepted > 0, drafted, token)
        if first.min() < 0 or first.max() >= size:
            return [f"first token: {first[(first < 0) | (first >= size)][0]} is no token"]
        if request.expect == 2:
            return []
        # One of the laws has to hold: the one that fits better is counted.
        laws = request.first_law
        held = [law for law in laws if not self.support(first, law, "")]
        if not held:
            return self.support(first, laws[0], "first token")
        counts = numpy.bincount(first, minlength=size) / first.size
        law = min(held, key=lambda law: numpy.abs(law - counts).sum())
        self.count(request, first, law, "first token")
        return []

    def pairs(self, requests, accepted, token):
        """What two requests come to together: its law is the product of both laws."""
        events = [
            list(halves(request, accepted[:, at], token[:, at]))
            for at, request in enumerate(requests)
        ]
        for one, other in itertools.combinations(range(len(requests)), 2):
            if requests[one].expect or requests[other].expect:
                continue
            what = f"requests {one} and {other} depend on each other"
            cells = [
                (f"{a} and {b}", x & y, p * q)
                for a, x, p in events[one] for b, y, q in events[other] if 0 < p < 1 and 0 < q < 1
            ]
            laws = [request.accepted_law @ request.next_law for request in (requests[one], requests[other])]
            same = token[:, one] == token[:, other]
            for words, came, law in [*cells, ("the same next token", same, min(1.0, float(laws[0] @ laws[1])))]:
                self.counted.append(
                    (len(self.results), f"{what}: {words}", came.mean(), law, self.samples)
                )

    def call_coins(self, call, requests):
        function = getattr(self.kernel, "token_call_coins", None)
        if function is None:
            return []
        accepted, token = function(call, call.request_coins, call.request_final_coin)
        accepted, token = as_table(accepted), as_table(token)
        failures = []
        for at, request in enumerate(requests):
            if request.expect == 0:
                found = self.coins(request, lambda *_: (accepted[:, at], token[:, at]))
                failures += [f"request {at}: {words}" for words in found]
        return failures

    def support(self, tokens, law, what):
        if tokens.size and (tokens.min() < 0 or tokens.max() >= law.size):
            return [f"{what}: token {tokens[(tokens < 0) | (tokens >= law.size)][0]} is no token"]
        wrong = tokens[law[tokens] <= 0] if tokens.size else tokens
        if wrong.size:
            return [f"{what}: token {wrong[0]} of probability 0 came out {wrong.size} times"]
        return []

    def count(self, vector, tokens, law, what):
        """Notes every cell, to be judged when their number is known."""
        counts = numpy.bincount(tokens, minlength=law.size)
        for words, chosen in cells(law):
            self.counted.append(
                (len(self.results), f"{what}, {words}", counts[chosen].sum() / tokens.size,
                 min(1.0, float(law[chosen].sum())), tokens.size)
            )

    def noise(self, vector, function):
        """Drafts, output and which draft it is are functions of the noise."""
        right = {"drafts": vector.noise_drafts, "token": vector.noise_token, "accepted": vector.noise_accepted}
        failures = []
        for (name, wanted), found in zip(right.items(), map(as_table, function(vector, vector.noise))):
            if found.shape != wanted.shape:
                return [f"{name}: returned an array of shape {found.shape}, not {wanted.shape}"]
            for choice in numpy.flatnonzero((found != wanted).reshape(len(wanted), -1).any(axis=1)):
                failures.append(f"noise {choice}: {name} {found[choice].tolist()}, not {wanted[choice].tolist()}")
        return failures

    def chain(self, vector, accepted, token):
        drafts = vector.drafts.size
        if accepted.shape != (self.samples,) or token.shape != (self.samples,):
            return [f"returned arrays of shape {accepted.shape} and {token.shape}"]
        if accepted.min() < 0 or accepted.max() > drafts:
            return [f"accepted {accepted.max()} of {drafts} drafts"]
        if not vector.possible:
            # Whatever comes out where these drafts were not drawn has to be possible, or refused.
            if (token == -1).all():
                return []
            first = numpy.where(accepted > 0, vector.drafts[0], token)
            return self.support(first, vector.target[0], "first token")
        failures = []
        numbers = numpy.bincount(accepted, minlength=drafts + 1)
        for k, (number, law) in enumerate(zip(numbers, vector.accepted_law)):
            what = f"{k} accepted"
            if number and law <= 0:
                failures.append(f"{what}: probability 0, came out {number} times")
                continue
            self.counted.append(
                (len(self.results), what, number / self.samples, float(law), self.samples)
            )
            if number:
                tokens, after = token[accepted == k], vector.next_law[k]
                wrong = self.support(tokens, after, f"next token after {k} accepted")
                failures += wrong
                if not wrong:
                    self.count(vector, tokens, after, f"next token after {k} accepted")
        return failures

    def carried_on(self, vector, accepted, token, carry):
        """Where the likeliest token came out, what is carried behind it is known."""
        if not vector.possible or not hasattr(vector, "carry"):
            return []
        if len(carry) != 1:
            return ["returned nothing to carry on"]
        carry = numpy.asarray(carry[0], numpy.float64)
        if carry.shape != (accepted.size, *vector.carry.shape):
            return [f"returned a carry of shape {carry.shape}"]
        failures = []
        for k, (likeliest, right) in enumerate(zip(vector.next_token, vector.carry_next)):
            found = carry[(accepted == k) & (token == likeliest)]
            off = ~numpy.isclose(found, right, rtol=1e-4, atol=1e-4)
            if off.any():
                worst = found[off.reshape(len(off), -1).any(axis=1)][0]
                failures.append(
                    f"behind {k} accepted and token {likeliest}: carries {worst.tolist()}, "
                    f"not {right.tolist()}"
                )
        return failures

    def coins(self, vector, function):
        if not vector.possible:
            return []
        ended = function(vector, vector.coins, vector.final_coin)
        accepted, token = map(as_ids, ended[:2])
        failures = self.carried_on(vector, accepted, token, ended[2:])
        for choice, (right, right_token) in enumerate(
            zip(vector.coins_accepted, vector.final_token)
        ):
            if right < 0:
                continue
            coins = ", ".join(f"{coin:.9g}" for coin in vector.coins[choice])
            if accepted[choice] != right:
                failures.append(
                    f"coins ({coins}): accepted {accepted[choice]} drafts, not {right}"
                )
                continue
            law = vector.next_law[right]
            wrong = self.support(token[choice : choice + 1], law, f"coins ({coins})")
            failures += wrong
            exact = getattr(self.kernel, "FINAL_COIN", True) and right_token >= 0
            if not wrong and exact and token[choice] != right_token:
                failures.append(
                    f"coins ({coins}), last {vector.final_coin[choice]:.9g}: token "
                    f"{token[choice]}, not {right_token}"
                )
        return failures

    def tree(self, tree, row, token):
        if row.shape != (self.samples,) or token.shape != row.shape:
            return [f"returned arrays of shape {row.shape} and {token.shape}"]
        failures = self.support(row, tree.kept_law, "last row that is kept")
        if failures:
            return failures
        self.count(tree, row, tree.kept_law, "last row that is kept")
        for x in numpy.unique(row):
            tokens, law = token[row == x], tree.next_law[x]
            wrong = self.support(tokens, law, f"next token behind row {x}")
            failures += wrong
            if not wrong:
                self.count(tree, tokens, law, f"next token behind row {x}")
        return failures

    def tree_coins(self, tree, function):
        ended = numpy.stack([as_ids(one) for one in function(tree, tree.coins, tree.final_coin)], 1)
        exact = 2 if getattr(self.kernel, "FINAL_COIN", True) else 1
        return [
            f"coins ({', '.join(f'{coin:.9g}' for coin in coins)}), last {last:.9g}: row and token "
            f"{found.tolist()}, not {right.tolist()}"
            for coins, last, found, right in zip(tree.coins, tree.final_coin, ended, tree.right)
            if (found != right)[:exact].any()
        ]

    def siblings(self, vector, token):
        if token.shape != (self.samples,):
            return [f"returned an array of shape {token.shape}"]
        if not vector.possible:
            return [] if (token == -1).all() else self.support(token, vector.target[0], "output")
        wrong = self.support(token, vector.next_law[0], "output")
        if not wrong:
            self.count(vector, token, vector.next_law[0], "output")
        return wrong

    def judge(self):
        limit = math.log(2 * max(1, len(self.counted)) / self.level)
        for index, what, observed, law, samples in self.counted:
            if samples * divergence(observed, law) > limit:
                self.results[index][1].append(
                    f"{what}: {observed:.6f} of {samples}, the law is {law:.6f}"
                )
        return limit


def raised(error):
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{pathlib.Path(where.filename).name}:{where.lineno}"
    first = str(error).splitlines()[0] if str(error) else ""
    return f"raised {type(error).__name__} at {place}: {first}"


def as_table(values):
    return numpy.asarray(values).astype(numpy.int64)


def as_ids(values):
    return numpy.asarray(values).astype(numpy.int64).reshape(-1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vectors", type=pathlib.Path)
    parser.add_argument("--kernel", required=True, help="module, or path of a .py file")
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--level", type=float, default=1e-6, help="of a false alarm, whole run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rules", default="", help="names, comma-separated; all if not given")
    parser.add_argument("--largest", type=int, default=1 << 30, help="largest vocabulary")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    args = parser.parse_args()
    kernel = load(args.kernel)
    run = Run(kernel, args.samples, args.level, args.seed)
    rules = [name for name in args.rules.split(",") if name]
    for vector in read(args.vectors, rules, args.largest):
        run.vector(vector)
    limit = run.judge()
    failed = [(vector, failures) for vector, failures in run.results if failures]
    passed = len(run.results) - len(failed)
    if not run.results:
        refuse(f"{args.kernel} has no function for any rule of these vectors")
    # Half of the cells of probability 1/2 that are off by this much are found.
    found = math.sqrt(limit / (2 * args.samples))
    if args.format == "json":
        print(json.dumps({
            "schema": 1, "kernel": args.kernel, "samples": args.samples, "level": args.level,
            "cells": len(run.counted), "passed": passed, "failed": len(failed),
            "left_out": run.left_out,
            "failures": [
                {"file": vector.file, "vector": vector.index, "situation": vector.situation,
                 "complaints": failures} for vector, failures in failed],
        }))
    else:
        for vector, failures in failed:
            print(f"FAIL {vector}")
            for failure in failures[:4]:
                print(f"     {failure}")
            if len(failures) > 4:
                print(f"     and {len(failures) - 4} more")
        print(f"{passed} passed, {len(failed)} failed" + f", {run.left_out} left out" * (run.left_out > 0))
        print(
            f"{args.samples} samples a vector, {len(run.counted)} cells; a correct kernel fails "
            f"anywhere with probability at most {args.level:g}; a cell that is off by {found:.3f} "
            "is found more often than not"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

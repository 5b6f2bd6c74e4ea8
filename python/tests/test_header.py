"""`include/specgap.h` against `specgap.rules` coin by coin, against the law of a position, and on rows that are wrong."""

from __future__ import annotations

import ctypes
import itertools
import json
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from specgap import carried, rules

from .conftest import ROOT, Coins

HEADER = ROOT / "include"
SCRIPTS = ROOT / "scripts" / "conformance"
SHIM = """
#include "header_kernel.c"
int draw(const float *row, int vocab, double coin) { return specgap_draw(row, vocab, coin); }
int verify_chain(const float *p, const float *q, int vocab, int drafts, int most, int last, const int *tokens,
                 const double *coins, double *ages, int *token) {
    const float *rows[2][SPECGAP_MOST + 1];
    double *scratch = malloc(SPECGAP_SCRATCH(vocab) * sizeof *scratch);
    for (int k = 0; k <= drafts; k++) rows[0][k] = p + k * vocab, rows[1][k] = k < drafts || last ? q + k * vocab : 0;
    struct specgap_chain chain = {vocab, drafts, most, rows[0], rows[1], tokens, coins, (struct specgap_age *)ages, scratch};
    int kept = specgap_verify_chain(&chain, token);
    free(scratch);
    return kept;
}
"""
SHAPES = {
    "fan": [0, 0, 0, 0],
    "chain": [0, 1, 2],
    "2-1": [0, 0, 1, 2],
    "2-2-1": [0, 0, 1, 1, 2, 2, 3, 4, 5, 6],
    "uneven": [0, 0, 0, 1, 1, 3, 3, 3],
}


FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{HEADER}", f"-I{SCRIPTS}"]


def _compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("there is no C compiler")
    return found


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("header")
    source, library = folder / "shim.c", folder / "shim.so"
    source.write_text(SHIM)
    subprocess.run([_compiler(), *FLAGS, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    built = ctypes.CDLL(str(library))
    built.draw.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_double]
    return built


def _at(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def draft(header: ctypes.CDLL, q: NDArray[np.float32], n: int, coins: NDArray[np.float64]) -> list[int]:
    drafts = np.full(max(n, 1), -7, np.int32)
    count = header.draft_strata(_at(q), len(q), n, _at(coins), _at(drafts))
    return [count] if count < 0 else [int(x) for x in drafts[:count]]


def verify(
    header: ctypes.CDLL, rows: Any, tokens: Any, parents: Any, coins: Any, levels: int, iid: bool, leaves: bool = True
) -> tuple[int, list[int], int]:
    p, q = (np.ascontiguousarray(one, np.float32) for one in rows)
    ids, up = (np.array(one, np.int32) for one in (tokens, parents))
    path, token = np.full(len(ids) + 1, -7, np.int32), np.full(1, -7, np.int32)
    numbers = np.ascontiguousarray(coins, np.float64)
    count = header.verify_tree(
        _at(p), _at(q), p.shape[1], len(ids), _at(ids), _at(up), int(iid), levels, int(leaves), _at(numbers), _at(path), _at(token)
    )
    return count, [int(x) for x in path[: max(count, 0)]], int(token[0])


def _row(rng: np.random.Generator, vocab: int) -> Any:
    kind = rng.integers(6)
    row = rng.dirichlet(np.full(vocab, [0.1, 1.0, 1.0, 5.0, 0.3, 1.0][kind]))
    if kind == 2:
        row = np.round(row * 8) + (rng.random(vocab) < 0.3)
    if kind == 5:
        row = np.eye(vocab)[rng.integers(vocab)]
    row = row.astype(np.float32)
    return row if row.sum() > 0 else np.full(vocab, 1 / vocab, np.float32)


def _drawn(header: ctypes.CDLL, q: Any, shape: list[int], iid: bool, rng: np.random.Generator) -> list[int] | None:
    """The tokens of a tree; none where a row has fewer than it has children."""
    tokens = [-1] * len(shape)
    for row in range(len(shape) + 1):
        nodes = [i for i, up in enumerate(shape) if up == row]
        if not nodes:
            continue
        if iid:
            drafts = [header.draw(_at(q[row]), q.shape[1], rng.random()) for _ in nodes]
        else:
            drafts = draft(header, q[row], len(nodes), rng.random(len(nodes)))
        if len(drafts) != len(nodes):
            return None
        for node, token in zip(nodes, drafts):
            tokens[node] = token
    return tokens


@pytest.mark.parametrize("name", SHAPES)
def test_trees_as_the_rules_verify_them(header: ctypes.CDLL, name: str) -> None:
    shape, rng, compared, deep = SHAPES[name], np.random.default_rng(len(name)), 0, 0
    for turn in range(400):
        vocab = int(rng.integers(2, 9)) if turn % 4 else 60
        p, q = (np.stack([_row(rng, vocab) for _ in range(len(shape) + 1)]) for _ in range(2))
        if turn % 3 == 0:
            p = np.where(rng.random(p.shape) < 0.5, q, p)
            p[p.sum(1) == 0] = 1.0
        levels, iid = [(4, False), (1, False), (1, True)][turn % 3]
        tokens = _drawn(header, q, shape, iid, rng)
        if tokens is None:
            continue
        coins = rng.random(len(shape) + 1)
        count, path, token = verify(header, (p, q), tokens, shape, coins, levels, iid)
        wide_p, wide_q = (one.astype(float) / one.astype(float).sum(1, keepdims=True) for one in (p, q))
        numbers: Any = Coins(coins)
        at = rules.TRAVERSAL_4 if levels == 4 else rules.TRAVERSAL
        kept, following = rules.verify_tree(wide_p, wide_q, tokens, shape, numbers, levels=at, iid=iid)
        assert (count, path, token) == (len(kept), kept, following), (turn, levels, iid, tokens)
        compared, deep = compared + 1, deep + (count > 1)
    assert compared > 200 and (deep > 30 or name == "fan")


def test_drafts_as_the_rules_draw_them(header: ctypes.CDLL) -> None:
    rng = np.random.default_rng(5)
    for _ in range(3000):
        vocab, n = int(rng.integers(1, 40)), int(rng.integers(1, 9))
        q, coins = _row(rng, vocab), rng.random(n)
        numbers: Any = Coins(coins)
        assert draft(header, q, n, coins) == rules.draft_strata(q.astype(float), n, numbers).tolist()


@pytest.mark.parametrize(("levels", "iid"), [(4, False), (1, False), (1, True)])
def test_what_comes_out_follows_the_target(header: ctypes.CDLL, levels: int, iid: bool) -> None:
    # Two tokens of text, 8,000 rounds. Chi-square of 15 degrees of freedom: above 62 once in 10^7.
    rng, shape, vocab = np.random.default_rng(levels + iid), SHAPES["2-1"], 4
    text = [rng.dirichlet(np.full(vocab, 1.0)).astype(np.float32) for _ in range(10)]
    prefixes: list[tuple[int, ...]] = [(), *((x,) for x in range(vocab))]
    p_of, q_of = dict(zip(prefixes, text[:5])), dict(zip(prefixes, text[5:]))
    counts = np.zeros((vocab, vocab))
    for _ in range(8_000):
        q = np.stack([q_of[()]] * 5)
        first = _drawn(header, q, [0, 0], iid, rng)
        assert first is not None
        for node, token in enumerate(first):
            q[node + 1] = q_of[(token,)]
        tokens = _drawn(header, q, shape, iid, np.random.default_rng(int(rng.integers(2**31))))
        assert tokens is not None
        tokens[:2] = first
        for node, token in enumerate(first):
            tokens[2 + node] = header.draw(_at(q_of[(token,)]), vocab, rng.random())
        # Behind two tokens the target is even.
        p = np.stack([p_of[()], p_of[(first[0],)], p_of[(first[1],)], *[np.full(vocab, 1.0, np.float32)] * 2])
        count, path, token = verify(header, (p, q), tokens, shape, rng.random(5), levels, iid)
        assert count >= 0
        text_of = [*(tokens[node] for node in path), token][:2]
        if len(text_of) < 2:
            text_of.append(header.draw(_at(p_of[(text_of[0],)]), vocab, rng.random()))
        counts[tuple(text_of)] += 1
    law = np.array([[p_of[()][x] / p_of[()].sum() * p_of[(x,)][y] / p_of[(x,)].sum() for y in range(vocab)] for x in range(vocab)])
    expected = law * counts.sum()
    assert float(((counts - expected) ** 2 / expected).sum()) < 62


def test_rows_and_trees_that_are_wrong_are_refused(header: ctypes.CDLL) -> None:
    good = np.array([0.25, 0.5, 0.25], np.float32)
    coins = np.full(4, 0.5)
    for wrong in (np.nan, -0.25, np.inf):
        bad = good.copy()
        bad[2] = wrong
        assert draft(header, bad, 2, coins) == [-1]
        assert header.draw(_at(bad), 3, 0.5) == -1
        for rows in ([[bad, good], [good, good]], [[good, good], [bad, good]]):
            assert verify(header, rows, [1], [0], coins, 1, True) == (-1, [], -7)
            assert verify(header, rows, [1], [0], coins, 4, False) == (-1, [], -7)
    assert draft(header, good * 0, 2, coins) == [-1]
    assert draft(header, good, 33, np.zeros(33)) == [-3] and draft(header, good, 0, coins) == [-3]
    both = [[good, good], [good, good]]
    assert verify(header, both, [3], [0], coins, 1, True)[0] == -2
    assert verify(header, both, [1], [1], coins, 1, True)[0] == -3
    assert verify(header, both, [1], [0], coins, 3, False)[0] == -3
    assert verify(header, both, [1], [0], coins, 4, True)[0] == -3
    # Token 1 is sure, and comes first.
    three = [[good] * 3, [good] * 3]
    assert verify(header, three, [1, 2], [0, 0], coins, 1, False)[0] >= 0
    assert verify(header, three, [2, 1], [0, 0], coins, 1, False)[0] == -2
    # A leaf without a row: the token behind it is not drawn.
    assert verify(header, both, [1], [0], coins, 1, True, leaves=False)[2] in (-1, 0, 1, 2)


def test_any_row_ends_in_a_token_or_a_refusal(header: ctypes.CDLL) -> None:
    rng = np.random.default_rng(99)
    values = np.array([0, 0, 1e-45, 1e-38, 1e-7, 0.25, 0.5, 1, 1, 3e38, np.nan, -1e-9, np.inf], np.float32)
    for turn, vocab in itertools.product(range(400), (1, 2, 5, 17)):
        shape = list(SHAPES.values())[turn % 5]
        few = values[: 10 if turn % 4 else 13]
        p, q = (rng.choice(few, size=(len(shape) + 1, vocab)) for _ in range(2))
        iid = bool(turn % 2)
        tokens = _drawn(header, q, shape, iid, rng) or [0] * len(shape)
        tokens = [max(0, x) for x in tokens]
        coins = rng.choice([0.0, 0.5, 1 - 2**-53], size=len(shape) + 1)
        count, path, token = verify(header, (p, q), tokens, shape, coins, 1 if iid else (1, 4)[turn // 2 % 2], iid)
        assert -3 <= count <= 4
        if count >= 0:
            assert 0 <= token < vocab
            row = p[path[-1] + 1] if path else p[0]
            assert row[token] > 0


def test_no_memory_but_its_own_and_nothing_undefined(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "fuzz"
    source = str(ROOT / "python" / "tests" / "header_fuzz.c")
    flags = [*FLAGS, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    if subprocess.run([_compiler(), *flags, source, "-lm", "-o", str(program)]).returncode:
        pytest.skip("there is no C compiler with sanitizers")
    done = subprocess.run([str(program), "20000", "3000", "32"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    kept, refused = (int(word) for word in done.stdout.split())
    assert kept > 8_000 and refused > 8_000


def test_it_is_a_header_of_cpp_too(tmp_path: pathlib.Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    source = tmp_path / "own.cpp"
    source.write_text('#include "specgap.h"\nint main() { specgap_age ages[3]; specgap_begin_text(ages, 2); return 0; }\n')
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{HEADER}", "-fsyntax-only"]
    subprocess.run([compiler, *flags, str(source)], check=True)


class Chain:
    """A text's rounds by the header; numbers [k, V], and no row of q behind the last draft where `last` is false."""

    def __init__(self, header: ctypes.CDLL, most: int, ages: Any = None) -> None:
        self.header, self.most = header, most
        self.ages = np.eye(most + 1)[0][:, None] * np.ones(2) if ages is None else ages.copy()

    def verify(self, p: Any, q: Any, drafts: Any, coins: Any, last: bool = True) -> tuple[int, int]:
        p, q = (np.ascontiguousarray(rows, np.float32) for rows in (p, q))
        ids, token, numbers = np.array([*drafts, 0], np.int32), np.full(1, -7, np.int32), np.array(coins, float)
        kept = self.header.verify_chain(
            _at(p), _at(q), p.shape[1], len(ids) - 1, self.most, int(last), _at(ids), _at(numbers), _at(self.ages), _at(token)
        )
        return kept, int(token[0])


class Stops:
    """Coins of a chain for `carried.CarriedBlock`, from the last draft on: it stops below its chance."""

    def __init__(self, coins: Any, drafts: int) -> None:
        self.stops, self.last = list(coins[:drafts])[::-1], coins[-1]

    def choice(self, a: int, *, p: Any) -> int:
        if a == 2 and self.stops:
            return int(self.stops.pop(0) < p[1])
        return Coins([self.last]).choice(a, p)


def test_chains_carry_on_as_the_rule_does(header: ctypes.CDLL) -> None:
    # A vocabulary of two would be taken for a coin.
    rng, kept_of = np.random.default_rng(62), []
    for _ in range(300):
        vocab, most = int(rng.integers(3, 9)), int(rng.integers(1, 9))
        own, rule = Chain(header, most), carried.CarriedBlock(most)
        for turn in range(5):
            drafts_of = most if turn < 4 else int(rng.integers(0, most + 1))
            p, q = (np.stack([_row(rng, vocab) for _ in range(drafts_of + 1)]) for _ in range(2))
            close = rng.random(drafts_of + 1) < 0.7
            q[close] = 0.7 * p[close] + 0.3 * q[close]
            drafts = [int(rng.choice(vocab, p=row / row.sum(dtype=float))) for row in q[:-1].astype(float)]
            coins = rng.random(drafts_of + 1)
            wide_p, wide_q = (one.astype(float) / one.astype(float).sum(1, keepdims=True) for one in (p, q))
            if turn == 4:
                wide_q[-1] = 0.0
            before, ages = rule.ages.copy(), own.ages.copy()
            numbers: Any = Stops(coins, drafts_of)
            right = rule.verify(wide_p, wide_q, drafts, numbers)
            assert own.verify(p, q, drafts, coins, turn < 4) == right, (before, ages)
            np.testing.assert_allclose(own.ages, rule.ages, rtol=1e-9, atol=1e-12)
            kept_of.append(right[0])
    assert np.mean(kept_of) > 0.8 and max(kept_of) > 5


def _chances(found: Any, low: float, high: float) -> float:
    """The coin at which `found` turns from true to false."""
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if found(middle) else (low, middle)
    return 0.5 * (low + high)


def _round(header: ctypes.CDLL, p: Any, q: Any, drafts: Any, ages: Any, last: bool) -> Any:
    """All ends of a round with their chances, by where its outcome changes in each coin: (chance, kept, token, ages)."""
    most, here, never = len(ages) - 1, 1.0, 1.0 - 2.0**-53
    for k in range(len(drafts), -1, -1):
        coins = np.full(len(drafts) + 1, never)

        def ended(at: int, coin: float, coins: Any = coins) -> Any:
            own = Chain(header, most, ages)
            coins[at] = coin
            return *own.verify(p, q, drafts, coins, last), own.ages

        stops = 1.0 if k == 0 else _chances(lambda coin: ended(k - 1, coin)[0] == k, 0.0, 1.0)
        if k > 0 and stops < 1e-11:
            continue
        coins[k - 1 if k > 0 else len(drafts)] = 0.0
        low = 0.0
        while low < 1.0 - 1e-9:
            _, token, carry = ended(len(drafts), low + 1e-11)
            high = _chances(lambda coin: ended(len(drafts), coin)[1] <= token, low, 1.0)
            yield here * stops * (high - low), k, token, carry
            low = high
        here *= 1.0 - stops
        if here < 1e-11:
            return


@pytest.mark.parametrize(("size", "length", "most"), [(2, 4, 1), (2, 4, 2), (3, 3, 2), (2, 5, 3)])
def test_texts_of_chains_have_the_targets_law_in_every_coin(header: ctypes.CDLL, size: int, length: int, most: int) -> None:
    rng = np.random.default_rng(size * length + most)
    rows = {
        prefix: rng.dirichlet([0.6] * size, 2).astype(np.float32)
        for depth in range(length)
        for prefix in itertools.product(range(size), repeat=depth)
    }
    law: dict[Any, float] = {}
    calls = 0.0

    def decode(text: Any, weight: float, ages: Any) -> None:
        nonlocal calls
        if len(text) == length:
            law[text] = law.get(text, 0.0) + weight
            return
        calls += weight
        count = min(most, length - 1 - len(text))
        for drafts in itertools.product(range(size), repeat=count):
            path = np.stack([rows[text + drafts[:k]] for k in range(count + 1)])
            chance = np.prod([path[k, 1, x] / path[k, 1].sum(dtype=float) for k, x in enumerate(drafts)])
            last = len(text) + count + 1 < length
            for share, kept, token, carry in _round(header, path[:, 0], path[:, 1], drafts, ages, last):
                decode((*text, *drafts[:kept], token), weight * chance * share, carry)

    decode((), 1.0, np.eye(most + 1)[0][:, None] * np.ones(2))
    for text in itertools.product(range(size), repeat=length):
        own = [rows[text[:t]][0] for t in range(length)]
        right = np.prod([row[x] / row.sum(dtype=float) for row, x in zip(own, text)])
        assert abs(law.get(text, 0.0) - right) < 1e-8, (text, law.get(text), right)
    assert calls < length


def test_what_rounding_leaves_of_a_chain_is_no_token(header: ctypes.CDLL) -> None:
    # p and q differ at two tokens by less than their sums over all are rounded by.
    for seed in range(10):
        p = np.random.default_rng(seed).random((2, 60_000)).astype(np.float32)
        q = p.copy()
        p[0, :2], q[0, :2] = (2e-15, 1e-15), (1e-15, 2e-15)
        assert Chain(header, 1).verify(p, q, [1], [0.9, 0.5]) == (0, 0)


def test_chains_that_are_wrong_are_refused(header: ctypes.CDLL) -> None:
    good = np.full((2, 3), 1 / 3)
    for p, q, drafts, most, last, code in [
        (good * [[1], [np.nan]], good, [1], 1, True, -1),
        (good, good * [[1], [0]], [1], 1, True, -1),
        (good, good * [1, 0, 1], [1], 1, True, -2),
        (good, good, [3], 1, True, -2),
        # Behind a chain that is cut short no round drafts.
        (good, good, [1], 2, True, -3),
        (good, good, [1], 33, False, -3),
        (good, good, [1], 2, False, 0),
    ]:
        own = Chain(header, most)
        before = own.ages.copy()
        kept, token = own.verify(p, q, drafts, [0.5, 0.5], last)
        if code < 0:
            assert (kept, token) == (code, -7) and (own.ages == before).all()
        else:
            assert kept >= 0 and abs(own.ages[:, 1].sum() - 1) < 1e-12


BROKEN = [
    ("rrs", "goal = coin * total;", "return specgap_draw(offer->p, vocab, coin);"),
    ("traversal", "tree->coins[row - 1] < state->refused", "0.999 * tree->coins[row - 1] < state->refused"),
    ("traversal-4", "part->middle = specgap_positive(middle);", ""),
    ("level-4", "{0.8, 0.5, 0.2, 0.0}", "{0.8, 0.5, 0.2, 0.2}"),
    ("shared-gumbel", "(double)noise[x] / row[x]", "(double)noise[x] * row[x]"),
    ("carried-block", "left -= alone;", ""),
    ("carried-block", "specgap_older(chain, kept, ages[kept], &gifts, next, chain->ages);", ""),
    ("carried-block", "(node->drafted - behind[kept])", "node->drafted"),
]


def test_a_library_passes_the_vectors_and_each_bug_fails(tmp_path: pathlib.Path, command: Any) -> None:
    rules_of = "token,one-hot,carried-block,rrs,level-4,shared-gumbel,exact-match,traversal,traversal-4"
    command("conformance", "--out", tmp_path / "vectors", "--vocab", "2,17", "--verifiers", rules_of)
    text = (HEADER / "specgap.h").read_text()
    for turn, (rule, right, wrong) in enumerate([("", "", ""), *BROKEN]):
        assert right in text
        broken, library = tmp_path / "broken.h", tmp_path / f"{turn}.so"
        broken.write_text(text.replace(right, wrong) if rule else text)
        own = ["-include", str(broken), str(SCRIPTS / "header_kernel.c"), "-o", str(library)]
        subprocess.run([_compiler(), "-std=c99", "-O1", "-shared", "-fPIC", *own], check=True)
        run = [sys.executable, str(SCRIPTS / "harness.py"), str(tmp_path / "vectors"), "--kernel", str(library)]
        more = ["--samples", "1000", "--rules", rule, "--format", "json"]
        done = subprocess.run([*run, *more], capture_output=True, text=True)
        said = json.loads(done.stdout)
        assert (done.returncode == 1) == bool(rule) == (said["failed"] > 0), (right, done)
        # Strata that may both be the token over a cut, and four levels over independent drafts, are not in the header.
        assert rule or (said["passed"] > 300 and said["left_out"] == 126)

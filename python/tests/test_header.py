"""`include/specgap.h` against `specgap.rules` coin by coin, against the law of a position, and on rows that are wrong."""

from __future__ import annotations

import ctypes
import itertools
import pathlib
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from specgap import rules

from .conftest import ROOT, Coins

HEADER = ROOT / "include"
SHIM = """
#include <stdlib.h>
#include "specgap.h"
int draft_strata(const float *q, int vocab, int n, const double *coins, int *drafts) {
    return specgap_draft_strata(q, vocab, n, coins, drafts);
}
int draw(const float *row, int vocab, double coin) { return specgap_draw(row, vocab, coin); }
/* Rows one behind the other; all memory has just the size that the header asks for. */
int verify_tree(const float *p, const float *q, int vocab, int nodes, const int *tokens, const int *parents, int iid,
                int levels, int leaves, const double *coins, int *path, int *token) {
    const float **rows = malloc(2 * (nodes + 1) * sizeof *rows);
    struct specgap_state *states = malloc((nodes + 1) * sizeof *states);
    double *scratch = malloc(SPECGAP_SCRATCH(vocab > 0 ? vocab : 0) * sizeof *scratch);
    for (int row = 0; row <= nodes; row++) {
        rows[row] = p + (size_t)row * vocab;
        rows[nodes + 1 + row] = q + (size_t)row * vocab;
        if (row > 0 && !leaves) rows[row] = 0;
    }
    struct specgap_tree tree = {vocab, nodes, rows, rows + nodes + 1, tokens, parents,
                                iid ? SPECGAP_IID : SPECGAP_STRATA, levels, coins, states, levels == 4 ? scratch : 0};
    int kept = specgap_verify_tree(&tree, path, token);
    free(rows), free(states), free(scratch);
    return kept;
}
#ifdef FUZZ
#include <stdio.h>
static unsigned long long seed = 32;
static double even(void) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(seed >> 11) / 9007199254740992.0;
}
int main(void) {
    static const int shape[] = {0, 0, 0, 1, 1, 3, 3, 3};
    long kept = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        int vocab = 1 + (int)(even() * (round % 100 ? 24 : 3000)), iid = round & 1, nodes = (int)(even() * 9), next = 0;
        int tokens[8] = {0}, *path = malloc((nodes + 1) * sizeof *path), drafts[3];
        double coins[9];
        float *rows = malloc(2 * (size_t)(nodes + 1) * vocab * sizeof *rows);
        for (size_t i = 0; i < 2 * (size_t)(nodes + 1) * vocab; i++) {
            double u = even();
            rows[i] = u < 0.2 ? 0.0f : u < 0.21 && round % 3 == 0 ? -1.0f : (float)(even() * even() * even());
        }
        for (int i = 0; i <= nodes; i++) coins[i] = even();
        float *q = rows + (size_t)(nodes + 1) * vocab;
        for (int row = 0; row < 4; row++) {
            int n = 0, first = -1, got = -1;
            for (int i = nodes; i-- > 0;)
                if (shape[i] == row) first = i, n++;
            if (n == 0) continue;
            if (!iid) got = draft_strata(q + (size_t)row * vocab, vocab, n, coins, drafts);
            for (int i = 0; i < n; i++)
                tokens[first + i] = iid ? draw(q + (size_t)row * vocab, vocab, even()) : i < got ? drafts[i] : 0;
        }
        int count = verify_tree(rows, q, vocab, nodes, tokens, shape, iid, iid ? 1 : 1 + 3 * (round / 2 % 2), round % 5 > 0,
                                coins, path, &next);
        if (count < 0) refused++;
        else kept += count;
        free(path), free(rows);
    }
    printf("%ld %ld\\n", kept, refused);
    return 0;
}
#endif
"""
SHAPES = {
    "fan": [0, 0, 0, 0],
    "chain": [0, 1, 2],
    "2-1": [0, 0, 1, 2],
    "2-2-1": [0, 0, 1, 1, 2, 2, 3, 4, 5, 6],
    "uneven": [0, 0, 0, 1, 1, 3, 3, 3],
}


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
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-shared", "-fPIC"]
    subprocess.run([_compiler(), *flags, f"-I{HEADER}", str(source), "-o", str(library)], check=True)
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
    source, program = tmp_path / "fuzz.c", tmp_path / "fuzz"
    source.write_text(SHIM)
    flags = ["-std=c99", "-DFUZZ", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    if subprocess.run([_compiler(), *flags, f"-I{HEADER}", str(source), "-o", str(program)]).returncode:
        pytest.skip("there is no C compiler with sanitizers")
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    kept, refused = (int(word) for word in done.stdout.split())
    assert kept > 2_000 and 500 < refused < 15_000

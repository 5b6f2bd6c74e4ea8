"""Kernels with one bug each, which the harness has to find: `--negative-control` of a harness.

    python broken.py VECTORS

Exit code 0 if every one of them fails where it should, and the reference passes.
"""

import pathlib
import subprocess
import sys

import numpy
import reference
from reference import invert, keep, positive, row

BUGS = {
    "at most": "u <= p/q keeps a token of probability 0 at u = 0",
    "residual": "the token behind a rejection is drawn from the target",
    "residual of q": "it is drawn from (q - p)+",
    "epsilon": "1e-10 is added to the residual before it is normalised",
    "ratio": "a draft is kept with p, not p/q",
    "bonus": "behind a whole chain the last draft's law is drawn from",
    "low end": "the inverse of the distribution function takes >= at 0",
}


def make(bug):
    def coins_of(vector, coins, final_coin):
        accepted, token = [], []
        for tests, last in zip(coins, final_coin):
            count = 0
            for k, x in enumerate(vector.drafts):
                p, q = float(vector.target[k][x]), float(vector.draft[k][x])
                kept = p if bug == "ratio" else keep(p, q)
                if not (tests[k] <= kept if bug == "at most" else tests[k] < kept):
                    break
                count += 1
            p = row(vector.target[count])
            if count == len(vector.drafts):
                law = row(vector.draft[count - 1]) if bug == "bonus" else p
            else:
                a, b = vector.target[count].astype(float), vector.draft[count].astype(float)
                law = {
                    "residual": lambda: p,
                    "residual of q": lambda: positive(b, a),
                    "epsilon": lambda: row(numpy.maximum(a - b, 0) + 1e-10),
                }.get(bug, lambda: positive(a, b))()
            ends = numpy.cumsum(law)
            accepted.append(count)
            if bug == "low end":
                token.append(min(int(numpy.searchsorted(ends, last * ends[-1])), law.size - 1))
            else:
                token.append(invert(law, [last])[0])
        return accepted, token

    def chain(vector, samples, seed):
        random = numpy.random.default_rng(seed)
        return coins_of(
            vector, random.random((samples, len(vector.drafts))), random.random(samples)
        )

    return chain, coins_of


def main():
    vectors = sys.argv[1]
    here = pathlib.Path(__file__).resolve().parent
    harness = [sys.executable, str(here / "harness.py"), vectors, "--largest", "1100"]
    wrong = 0
    for bug, words in [(None, "the reference"), *BUGS.items()]:
        kernel = str(here / "reference.py") if bug is None else write(bug, here)
        ended = subprocess.run([*harness, "--kernel", kernel, "--rules", "chain"], capture_output=True)
        found = b"FAIL " in ended.stdout
        right = ended.returncode == (0 if bug is None else 1) and found == (bug is not None)
        wrong += not right
        print(f"{'ok' if right else 'WRONG'}: {words}")
        if not right:
            print(ended.stdout.decode() + ended.stderr.decode())
    return 1 if wrong else 0


def write(bug, here):
    import tempfile

    file = tempfile.NamedTemporaryFile("w", suffix=".py", delete=False)
    file.write(
        f"import sys\nsys.path.insert(0, {str(here)!r})\nimport broken\n"
        f"chain, chain_coins = broken.make({bug!r})\n"
    )
    file.close()
    return file.name


if __name__ == "__main__":
    sys.exit(main())

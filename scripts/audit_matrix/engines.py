"""The made engines: what each claims, what it does, and what an audit should say of it."""

import dataclasses

import laws
from laws import (
    at_least, banned, biased, everything, floor, mixed, no_coin, no_repeat, nothing, over,
    pairs_banned, penalty, ratio, repetition, request, residual, row_before, same, scaled, tempered, without,
)
from rows import softmax


@dataclasses.dataclass
class Engine:
    name: str
    rule: str = "text"
    truth: str = "honest"  # or "lossy", "lossless" (another rule), "numbers" (laws hold, numbers do not)
    causes: dict = dataclasses.field(default_factory=dict)  # name: fit; any of them is right
    temperature: float = 1.0
    cuts: dict = dataclasses.field(default_factory=dict)
    order: str = "k,p,m"
    by_option: bool = False  # the order of cuts is said by an option, and not by the log
    drafts: int = 3
    target: object = same  # of the row, where `at` says; `of_rows`: made of the rows first
    of_rows: bool = False
    at: tuple = ("check", "correction", "bonus")
    stale: str = ""  # drafts come from the row of the place before: by "own" q, or by the "logged"
    draft: object = None  # (claim) -> the law that drafts are drawn from
    asked: object = None  # (claim) -> the q that the ratio takes
    keep: object = None
    replace: object = None
    share: float = 1.0  # of broken steps
    couple: str = ""
    sampler: str = "id"
    numbers: str = "fresh"  # "shared" by requests, "reset" each round, "step": the same at each
    seeds: str = ""  # "": the log has none; "own", "equal", "stream"
    length: int = 100
    layout: str = ""
    player: str = "chain"
    noise: float = 0.0
    learnt: bool = False  # what it does has to be learnt along the way: the ideal is out of reach

    @property
    def most(self):
        """Tokens of the longest log: several drafts of a position are slow to audit."""
        return 1000 if self.player == "siblings" else 10**9


# One engine of each kind: what `--quick` plays.
QUICK = (
    "text", "text at T .6", "text, cuts joint", "text, cuts llama.cpp by option", "text, shared numbers by id", "text, noise .1",
    "token", "token, ragged", "token, cuts", "token, half outside rounds", "one-hot", "exact-match", "block", "carried",
    "text, T .8", "text, top-p .9", "text, top-k 5", "text, presence 1", "text, tenth id banned", "text, no bigram twice",
    "text, rows of the place before", "text, joint for k,p,m", "text, shared, said to be fresh", "token, drafts at 2 T",
    "token, likeliest drafts", "token, target T .8", "token, kept with p/.5q", "token, kept where p >= .5q",
    "token, keeps everything", "token, never keeps, draws p", "token, never keeps, residual", "token, correction from q",
    "token, coin is the draft's number", "token, seed reset each round", "token, exact match", "one-hot, keeps everything",
)


def frequent(rows):
    """Tokens by falling mass over all contexts."""
    return softmax(rows.target).sum(axis=0).argsort()[::-1]


def honest():
    text = [
        Engine("text"),
        Engine("text at T .3", temperature=0.3),
        Engine("text at T .6", temperature=0.6),
        Engine("text at T 1.5", temperature=1.5),
        Engine("text at T 3", temperature=3.0),
        Engine("text at top-p .95", cuts={"top_p": 0.95}),
        Engine("text at top-k 20", cuts={"top_k": 20}),
        Engine("text at min-p .05", cuts={"min_p": 0.05}),
    ]
    cuts = {"top_k": 20, "top_p": 0.9, "min_p": 0.05}
    for order in ("k,p,m", "joint", "k,p,m,T", "p,m,k,T", "m,p,k"):
        text.append(Engine(f"text, cuts {order}", temperature=0.7, cuts=cuts, order=order))
    text += [
        Engine("text, cuts llama.cpp by option", temperature=0.7, cuts=cuts, order="llama.cpp", by_option=True),
        Engine("text, cuts joint by option", temperature=0.7, cuts=cuts, order="joint", by_option=True),
        Engine("text, mask", layout="mask"),
        Engine("text, stop token", layout="stop"),
        Engine("text, groups", layout="groups"),
        Engine("text, one long text", length=10**9),
        Engine("text, texts of 10", length=10),
        Engine("text, Gumbel", sampler="gumbel"),
        Engine("text, by mass, own seeds", sampler="mass", seeds="own"),
        Engine("text, shared numbers by id", numbers="shared"),
        Engine("text, shared numbers by mass", numbers="shared", sampler="mass"),
        Engine("text, shared Gumbel", numbers="shared", sampler="gumbel"),
        Engine("text, shared and said so", numbers="shared", seeds="equal"),
        Engine("text, one stream of the engine", seeds="stream"),
        Engine("text, rows behind the cuts", temperature=0.7, cuts=cuts, layout="processed"),
        Engine("text, lists", layout="lists"),
        Engine("text, noise .1", noise=0.1),
    ]
    for tool in ("vllm", "sglang", "mlx-lm"):
        text.append(Engine(f"text, cuts {tool} by option", temperature=0.7, cuts=cuts, order=tool, by_option=True))
    cuts_of_two = {"top_k": 20, "top_p": 0.9}
    text.append(Engine("text, cuts sglang, no min-p", temperature=0.7, cuts=cuts_of_two, order="sglang", by_option=True))
    token = [
        Engine("token"),
        Engine("token, T .6", temperature=0.6),
        Engine("token, T 1.3", temperature=1.3),
        Engine("token, 1 draft", drafts=1),
        Engine("token, 8 drafts", drafts=8),
        Engine("token, ragged", layout="ragged"),
        Engine("token, cuts", temperature=0.7, cuts=cuts),
        Engine("token, top-p .9", cuts={"top_p": 0.9}),
        Engine("token, mask", layout="mask"),
        Engine("token, stop token", layout="stop"),
        Engine("token, half outside rounds", layout="outside"),
        Engine("token, draft rows missing", layout="draft-row"),
        Engine("token, one long text", length=10**9),
        Engine("token, own seeds", seeds="own"),
        Engine("token, by mass", sampler="mass"),
        Engine("token, Gumbel", sampler="gumbel"),
        Engine("token, shared numbers", numbers="shared"),
        Engine("token, shared and said so", numbers="shared", seeds="equal"),
        Engine("token, rows behind the cuts", temperature=0.7, cuts=cuts, layout="processed"),
        Engine("token, lists", layout="lists"),
        Engine("token, noise .1", noise=0.1),
    ]
    others = [
        Engine("one-hot", "one-hot"),
        Engine("one-hot, T .6", "one-hot", temperature=0.6),
        Engine("one-hot, top-k 10", "one-hot", cuts={"top_k": 10}),
        Engine("one-hot, noise .1", "one-hot", noise=0.1),
        Engine("exact-match", "exact-match"),
        Engine("exact-match, ragged", "exact-match", layout="ragged"),
        Engine("block", "block", player="block"),
        Engine("carried", "carried", player="carried"),
        Engine("rrs", "rrs", player="siblings"),
        Engine("rrs-wo", "rrs-wo", player="siblings"),
        Engine("level-4", "level-4", player="siblings"),
    ]
    for engine in token:
        engine.rule = "token"
    return text + token + others


def lossy_text():
    cut = "target-cut"
    full = {"top_k": 20, "top_p": 0.9, "min_p": 0.05}
    made = [
        ("T .8", {"temperature": {"temperature": 0.8}}, tempered(0.8)),
        ("T .9", {"temperature": {"temperature": 0.9}}, tempered(0.9)),
        ("T 1.1", {"temperature": {"temperature": 1.1}}, tempered(1.1)),
        ("T 1.25", {"temperature": {"temperature": 1.25}}, tempered(1.25)),
        ("greedy", {"temperature": {"temperature": 0}}, request(temperature=0)),
        ("top-p .99", {cut: {"top_p": 0.99}}, request(cuts={"top_p": 0.99})),
        ("top-p .95", {cut: {"top_p": 0.95}}, request(cuts={"top_p": 0.95})),
        ("top-p .9", {cut: {"top_p": 0.9}}, request(cuts={"top_p": 0.9})),
        ("top-k 20", {cut: {"top_k": 20}}, request(cuts={"top_k": 20})),
        ("top-k 5", {cut: {"top_k": 5}}, request(cuts={"top_k": 5})),
        ("min-p .05", {cut: {"min_p": 0.05}}, request(cuts={"min_p": 0.05})),
        ("tail below .001 lost", {cut: {}}, floor(0.001)),
        ("presence .5 over 10", {"presence-penalty": {}}, penalty(0.5, 10)),
        ("presence 1", {"presence-penalty": {}}, penalty(1.0)),
        ("frequency .3", {"frequency-penalty": {}}, penalty(0.3, of=lambda count: count)),
        ("repetition 1.2", {"repetition-penalty": {}}, repetition(1.2)),
        ("no repeat", {"no-repeat": {}}, no_repeat(1)),
        ("no bigram twice", {"no-repeat": {}}, no_repeat(2)),
        ("rows of the place before", {"rows-off-by-one-place": {}}, row_before),
        ("mixed with the draft .9", {"ensemble": {}}, mixed(0.9)),
    ]
    engines = [Engine(f"text, {name}", truth="lossy", causes=causes, target=law) for name, causes, law in made]
    of_rows = [
        ("commonest id banned", {"token-banned": {}, "token-never": {}}, banned(0, frequent)),
        ("tenth id banned", {"token-banned": {}, "token-never": {}}, banned(9, frequent)),
        ("one id twice as often", {"token-bias": {}, "id-range": {}}, lambda rows: scaled([frequent(rows)[1]], 2)),
        ("last quarter of ids banned", {"id-range": {}, "token-banned": {}},
         lambda rows: scaled(range(rows.vocabulary * 3 // 4, rows.vocabulary), 1e-9)),
        ("bias of sd .3", {"token-bias": {}, "id-range": {}}, biased(0.3)),
    ]
    engines += [
        Engine(f"text, {name}", truth="lossy", causes=causes, target=law, of_rows=True) for name, causes, law in of_rows
    ]
    for order in ("joint", "k,p,m,T"):
        engines.append(Engine(
            f"text, {order} for k,p,m", truth="lossy", causes={"cut-order": {}}, temperature=0.7, cuts=full,
            target=request(order=order),
        ))
    engines += [
        Engine("text, claimed top-p is not cut", truth="lossy", causes={"cut-missing": {}, "cut-order": {}},
               cuts={"top_p": 0.9}, target=request(cuts={})),
        Engine("text, T 1 for .7", truth="lossy", causes={"temperature": {}}, temperature=0.7, target=request(temperature=1.0)),
        Engine("text, T .49 for .7", truth="lossy", causes={"temperature": {}}, temperature=0.7, target=request(temperature=0.49)),
        Engine("text, presence 1 at T .7", truth="lossy", causes={"presence-penalty": {"penalty": 1.0}}, temperature=0.7,
               target=penalty(1.0)),
        Engine("text, a third of all pairs banned", truth="lossy", causes={"pair-bias": {}, "token-bias": {}},
               target=pairs_banned(0.3), learnt=True),
        Engine("text, T .8 in lists", truth="lossy", causes={"temperature": {}}, layout="lists", target=tempered(0.8)),
        Engine("text, T .8 in half of the texts", truth="lossy", causes={"temperature": {}}, layout="odd texts",
               target=tempered(0.8), at=("outside",)),
        Engine("text, top-k 5 in half of the texts", truth="lossy", causes={"target-cut": {}}, layout="odd texts",
               target=request(cuts={"top_k": 5}), at=("outside",)),
        Engine("text, T .7 for 1 in cut rows", truth="lossy", causes={"temperature": {}}, cuts={"top_k": 20},
               target=tempered(0.7)),
        Engine("text, greedy in 10%", truth="lossy", causes={"temperature": {}}, target=request(temperature=0), share=0.1),
        Engine("text, greedy in 2%", truth="lossy", causes={"temperature": {}}, target=request(temperature=0), share=0.02),
        Engine("text, from the draft in 15%", truth="lossy", causes={"ensemble": {}}, target=mixed(0.0), share=0.15),
        Engine("text, mask forgotten", truth="lossy", causes={}, layout="mask", target=request(masked=False)),
        Engine("text, one number for all steps", truth="numbers", causes={"seed-reset-each-round": {}}, numbers="step"),
        Engine("text, shared, said to be fresh", truth="numbers", causes={"shared-stream": {}}, numbers="shared", seeds="own"),
    ]
    return engines


def drafted(temperature=None, cuts=None):
    return lambda claim: claim.draft(temperature=temperature, cuts=cuts)


def uniform(claim):
    return 0 * claim.draft() + 1 / claim.vocabulary


def lossy_token():
    drafts, rest = "draft-temperature", "correction-"
    of_draft = [
        ("drafts at 1.1 T", {drafts: {"temperature": 1.1}}, drafted(1.1)),
        ("drafts at 1.25 T", {drafts: {"temperature": 1.25}}, drafted(1.25)),
        ("drafts at 2 T", {drafts: {"temperature": 2}}, drafted(2)),
        ("drafts at .8 T", {drafts: {"temperature": 0.8}}, drafted(0.8)),
        ("drafts of top-k 10", {"draft-cut": {"top_k": 10}}, drafted(cuts={"top_k": 10})),
        ("drafts of top-p .9", {"draft-cut": {"top_p": 0.9}}, drafted(cuts={"top_p": 0.9})),
        ("likeliest drafts", {"draft-likeliest": {}}, lambda claim: laws.likeliest(claim.draft())),
        ("uniform drafts", {"draft-uniform": {}}, uniform),
    ]
    of_target = [
        ("target T .8", {"temperature": {"temperature": 0.8}}, tempered(0.8), None),
        ("target T 1.2", {"temperature": {"temperature": 1.2}}, tempered(1.2), None),
        ("target T .8 in the check", {"temperature": {}}, tempered(0.8), ("check",)),
        ("target top-p .95", {"target-cut": {"top_p": 0.95}}, request(cuts={"top_p": 0.95}), None),
        ("target top-k 10", {"target-cut": {"top_k": 10}}, request(cuts={"top_k": 10}), None),
        ("min-p .1 behind whole chains", {"target-cut": {"min_p": 0.1}}, request(cuts={"min_p": 0.1}), ("bonus",)),
        ("q behind whole chains", {"bonus-from-q": {}}, mixed(0.0), ("bonus",)),
        ("presence 1 behind whole chains", {"presence-penalty": {}}, penalty(1.0), ("bonus",)),
        ("presence .5 in the verifier", {"presence-penalty": {}}, penalty(0.5, 10), None),
        ("presence 1 lags a round", {"penalty-lag": {}, "presence-penalty": {}}, penalty(1.0, lag=True), None),
        ("target row of the place before", {"rows-off-by-one-place": {}}, row_before, None),
        ("checked by the row before", {"rows-off-by-one-place": {}}, row_before, ("check",)),
        ("corrected by the row before", {"rows-off-by-one-place": {}}, row_before, ("correction",)),
        ("row before behind whole chains", {"rows-off-by-one-place": {}}, row_before, ("bonus",)),
        ("mixed with the draft .9", {"ensemble": {}}, mixed(0.9), None),
    ]
    of_keeping = [
        ("kept with p/.9q", {"accepts-more": {}}, over(0.9)),
        ("kept with p/.8q", {"accepts-more": {}}, over(0.8)),
        ("kept with p/.5q", {"accepts-more": {}}, over(0.5)),
        ("kept with p/1.25q", {"accepts-less": {}}, over(1.25)),
        ("kept where p >= q", {"threshold": {"value": 1.0}}, no_coin(1.0)),
        ("kept where p >= .5q", {"threshold": {"value": 0.5}}, no_coin(0.5)),
        ("kept where p >= .1", {"threshold": {"value": 0.1}}, at_least(0.1)),
        ("typical acceptance", {"threshold": {}}, laws.typical),
        ("keeps everything", {"accepts-everything": {}}, everything),
        ("coin turned around", {"accepts-what-it-should-refuse": {}}, laws.refused),
        ("never keeps, residual", {"never-accepts-and-corrects": {}, "never-accepts": {}}, nothing),
        ("kept with p, residual", {"accepts-with-p": {}}, laws.of_p),
        ("kept with p/max p", {"accepts-by-the-largest": {}}, laws.of_largest),
    ]
    of_rest = [
        ("correction from p", {rest + "from-p": {}}, laws.from_p),
        ("correction from q", {rest + "from-q": {}}, laws.from_q),
        ("correction is the likeliest", {rest + "likeliest": {}}, laws.from_likeliest),
        ("correction is the likeliest left", {rest + "likeliest": {}}, laws.from_likeliest_left),
        ("correction is id 0", {rest + "first-token": {}}, laws.first_token),
        ("correction by softmax", {rest + "by-softmax": {}}, laws.by_softmax),
        ("correction not normalised", {rest + "not-normalised": {}}, laws.not_normalised),
        ("correction from p without x", {rest + "off-the-draft-only": {}}, without),
    ]
    of_coins = [
        ("coin is the draft's number", {"coin-is-the-drafts-number": {}}, "coin-is-draft"),
        ("coin is 1 - the draft's number", {"coin-is-the-drafts-number": {}}, "coin-mirrors-draft"),
        ("correction has the coin", {"correction-reuses-the-coin": {}}, "correction-has-coin"),
        ("correction has the draft's number", {"correction-reuses-the-drafts-number": {}}, "correction-has-draft"),
        ("bonus has the last coin", {"bonus-reuses-the-coin": {}}, "bonus-has-coin"),
    ]
    engines = [Engine(f"token, {n}", "token", "lossy", c, draft=law) for n, c, law in of_draft]
    for name, causes, law, at in of_target:
        engines.append(Engine(f"token, {name}", "token", "lossy", causes, target=law))
        engines[-1].at = at or engines[-1].at
    engines += [Engine(f"token, {n}", "token", "lossy", c, keep=law) for n, c, law in of_keeping]
    engines += [Engine(f"token, {n}", "token", "lossy", c, replace=law) for n, c, law in of_rest]
    for name, causes, couple in of_coins:
        engines.append(Engine(f"token, {name}", "token", "lossy", causes, couple=couple))
    engines += [
        Engine("token, both at 1.25 T", "token", "lossy", {"temperature": {"temperature": 1.25}}, target=tempered(1.25),
               draft=drafted(1.25), asked=drafted(1.25)),
        Engine("token, ratio by q at 1.25 T", "token", "lossy", {"ratio-of-another-q": {"factor": 1.25}}, asked=drafted(1.25)),
        Engine("token, ids of the last quarter banned", "token", "lossy", {"id-range": {}}, of_rows=True,
               target=lambda rows: scaled(range(rows.vocabulary * 3 // 4, rows.vocabulary), 1e-9)),
        Engine("token, keeps everything in 5%", "token", "lossy", {"accepts-everything": {}, "accepts-more": {}},
               keep=everything, share=0.05),
        Engine("token, keeps everything in 20%", "token", "lossy", {"accepts-more": {"share": 0.2}}, keep=everything, share=0.2),
        Engine("token, third id banned", "token", "lossy", {"token-banned": {}}, of_rows=True,
               target=banned(2, frequent)),
        Engine("token, correction from q in 5%", "token", "lossy", {rest + "from-q": {}}, replace=laws.from_q, share=0.05),
        Engine("token, correction from q in 25%", "token", "lossy", {rest + "from-q": {}}, replace=laws.from_q, share=0.25),
        Engine("token, correction is id 0 in 5%", "token", "lossy", {rest + "first-token": {}}, replace=laws.first_token, share=0.05),
        Engine("token, drafts of the row before", "token", "lossy",
               {"draft-rows-off-by-one-place": {}, "rows-off-by-one-place": {}}, stale="logged"),
        Engine("token, drafts of the row before, by their q", "token", "lossless",
               {"draft-rows-off-by-one-place": {}, "rows-off-by-one-place": {}}, stale="own"),
        Engine("token, greedy in 10%", "token", "lossy", {"temperature": {}}, target=request(temperature=0), share=0.1),
        Engine("token, likeliest of p or nothing", "token", "lossy", {"accepts-the-likeliest": {}, "temperature": {}},
               keep=laws.if_likeliest, replace=laws.from_likeliest),
        Engine("token, ratio, then p", "token", "lossy", {rest + "from-p": {}, "accepts-more": {}}, replace=laws.from_p,
               keep=over(0.9)),
        Engine("token, mask forgotten behind whole chains", "token", "lossy", {}, layout="mask",
               target=request(masked=False), at=("bonus",)),
        Engine("token, 1/.8 and half outside rounds", "token", "lossy", {"accepts-more": {}}, keep=over(0.8), layout="outside"),
        Engine("token, broken outside rounds", "token", "lossy", {"temperature": {}, "target-cut": {}, "ensemble": {}},
               layout="outside", target=tempered(0.6), at=("outside",)),
        Engine("token, seed reset each round", "token", "numbers", {"seed-reset-each-round": {}}, numbers="reset"),
        Engine("token, shared, said to be fresh", "token", "numbers", {"shared-stream": {}}, numbers="shared", seeds="own"),
        Engine("token, never keeps, draws p", "token", "lossless", {"never-accepts": {}}, keep=nothing, replace=laws.from_p),
        Engine("token, exact match", "token", "lossless", {"exact-match": {}}, keep=laws.of_p, replace=without),
        Engine("token, exact match in half", "token", "lossless", {"exact-match": {}}, keep=laws.of_p, replace=without, share=0.5),
        Engine("token, a draft of its own q", "token", "lossless",
               {"draft-of-its-own-row": {"factor": 1.5}}, draft=drafted(1.5), asked=drafted(1.5)),
    ]
    for rule in ("token", "exact-match"):
        engines += [
            Engine(f"{rule}, the target draws with the draft's {words}", rule, "lossless", {"exact-match-with-shared-numbers": {}},
                   sampler=sampler, couple="target-has-draft")
            for words, sampler in (("number, by id", "id"), ("number, by mass", "mass"), ("clocks", "gumbel"))
        ]
    return engines


def lossy_others():
    sure, draft = "one-hot", "draft-temperature"
    return [
        Engine("one-hot, kept with p/q, residual", sure, "lossy", {"token": {}, "accepts-with-ratio": {}}, keep=ratio, replace=residual),
        Engine("one-hot, sampled drafts", sure, "lossless", {"draft-sampled": {}}, draft=lambda claim: claim.draft()),
        Engine("one-hot, correction from p", sure, "lossy", {"correction-from-p": {}}, replace=laws.from_p),
        Engine("one-hot, correction from the residual", sure, "lossy", {"correction-from-the-residual": {}}, replace=residual),
        Engine("one-hot, keeps everything", sure, "lossy", {"accepts-everything": {}}, keep=everything),
        Engine("one-hot, kept where p >= .2", sure, "lossy", {"threshold": {"value": 0.2}}, keep=at_least(0.2)),
        Engine("one-hot, target T .8", sure, "lossy", {"temperature": {"temperature": 0.8}}, target=tempered(0.8)),
        Engine("one-hot, target top-p .9", sure, "lossy", {"target-cut": {"top_p": 0.9}}, target=request(cuts={"top_p": 0.9})),
        Engine("one-hot, never keeps, draws p", sure, "lossless", {"never-accepts": {}}, keep=nothing, replace=laws.from_p),
        Engine("exact-match, target T .8", "exact-match", "lossy", {"temperature": {"temperature": 0.8}}, target=tempered(0.8)),
        Engine("exact-match, is token", "exact-match", "lossless", {"token": {}}, keep=ratio, replace=residual),
        Engine("exact-match, kept with p/q", "exact-match", "lossy", {"accepts-with-ratio": {}, "accepts-more": {}}, keep=ratio),
        Engine("block, drafts at 1.25 T", "block", "lossy", {draft: {"temperature": 1.25}}, player="block", draft=drafted(1.25)),
        Engine("block, is token", "block", "lossless", {"token": {}}, keep=ratio, replace=residual),
        Engine("carried, drafts at 1.25 T", "carried", "lossy", {draft: {"temperature": 1.25}}, player="carried", draft=drafted(1.25)),
        Engine("rrs, drafts at 1.25 T", "rrs", "lossy", {draft: {"factor": 1.25}}, player="siblings", draft=drafted(1.25)),
        Engine("rrs, drafts of the top 4", "rrs", "lossy", {"draft-cut": {"top_k": 4}}, player="siblings",
               draft=drafted(cuts={"top_k": 4})),
        Engine("rrs, accepts 1.25 times", "rrs", "lossy", {"accepts-more": {"factor": 1.25}}, player="siblings", keep=over(0.8)),
        Engine("rrs, last draw from p", "rrs", "lossy", {"correction-from-p": {}}, player="siblings", replace=laws.from_p),
        Engine("rrs, each against p", "rrs", "lossy", {}, player="siblings", couple="truth-each"),
        Engine("rrs-wo, drafts at 1.25 T", "rrs-wo", "lossy", {draft: {"factor": 1.25}}, player="siblings", draft=drafted(1.25)),
        Engine("level-4, a draft of its own q", "level-4", "lossless", {"draft-of-its-own-row": {"factor": 1.25}}, player="siblings",
               draft=drafted(1.25), asked=drafted(1.25)),
    ]


def all_engines():
    return honest() + lossy_text() + lossy_token() + lossy_others()


if __name__ == "__main__":
    engines = all_engines()
    print(len(engines), sum(e.truth == "honest" for e in engines), len({e.name for e in engines}))

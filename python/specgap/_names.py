"""Names of laws and rules, for type checkers; a test compares them to the crate's tables."""

from __future__ import annotations

from typing import Literal, TypeAlias

#: A law of drafts that rows are asked about; :func:`specgap.schemes` has its words.
LawName: TypeAlias = Literal[
    "with-replacement",
    "without-replacement",
    "distinct-conditioned",
    "stratified",
    "stratified-independent",
    "greedy",
    "hub",
    "top",
]

#: A rule; :func:`specgap.verifiers` has its words.
RuleName: TypeAlias = Literal[
    "token",
    "rrs",
    "rrs-wo",
    "shared-gumbel",
    "gls",
    "level",
    "level-4",
    "k-seq",
    "naive-tree",
    "spechub",
    "greedy",
    "optimal",
    "importance",
    "exact-match",
]

#: A rule of :func:`specgap.tree`: at each node, or from the leaves.
TreeRuleName: TypeAlias = RuleName | Literal["traversal", "traversal-4"]

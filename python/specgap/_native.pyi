from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DraftLaw",
    "Log",
    "LogWriter",
    "Made",
    "Plan",
    "Priced",
    "RowLaw",
    "Summary",
    "__version__",
    "acceptance",
    "alpha",
    "block",
    "calls",
    "certificates",
    "cite",
    "clustered",
    "clustered_sums",
    "command",
    "compare",
    "cut_order",
    "draft_rows",
    "drafter",
    "font",
    "keep",
    "kept_from_leaves",
    "law_for",
    "law_named",
    "main",
    "optimum",
    "scanned",
    "schemes",
    "served",
    "solve",
    "strange_draft",
    "usual_serving",
    "verifiers",
    "verify",
    "verify_tree",
    "weigh_certificates",
]

__version__: str

_Typed = tuple[NDArray[Any], str]
_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
_Progress = Callable[[int, int | None], object] | None
_Answered = tuple[_Floats, _Floats, _Floats, list[str]]
_Bounds = tuple[float, float, float]
_Certificates = tuple[_Floats, _Floats, _Floats, _Floats, NDArray[np.uint8]]
_Path = str | PathLike[str]

def main(args: Sequence[str]) -> int: ...
def font() -> bytes: ...
def alpha(
    p: _Typed,
    q: _Typed,
    n: int,
    scheme: str,
    logits: bool,
    temperature: float,
    threads: int,
    progress: _Progress,
) -> _Answered: ...
def certificates(
    p: _Typed,
    q: _Typed,
    drafts: Sequence[int],
    scheme: str,
    logits: bool,
    temperature: float,
    threads: int,
    progress: _Progress = None,
    p_out: NDArray[Any] | None = None,
    q_out: NDArray[Any] | None = None,
) -> tuple[_Answered, _Certificates]: ...
def scanned() -> list[str]: ...
def weigh_certificates(
    sets: NDArray[np.uint8],
    weights: _Floats,
    centres: _Floats,
    rows: NDArray[Any] | None,
    into: NDArray[Any],
    threads: int,
) -> None: ...
def acceptance(
    name: str,
    p: _Typed,
    q: _Typed,
    n: int,
    scheme: str | None,
    logits: bool,
    temperature: float,
    seed: int,
    threads: int,
    progress: _Progress,
) -> tuple[_Answered, str]: ...
def law_for(name: str, scheme: str | None, n: int) -> str: ...
def law_named(name: str) -> str: ...
def schemes() -> list[tuple[str, str, bool]]: ...
def verifiers() -> list[tuple[str, str, str]]: ...
def solve(path: _Path | None, text: str | None, threads: int) -> list[tuple[str, str, bool]]: ...
def verify(
    path: _Path | None, text: str | None, seed: int, threads: int
) -> list[tuple[str, str, bool]]: ...
def calls(ratios: Sequence[float], drafts: int) -> tuple[float, float, float]: ...
def block(
    path: _Path | None, text: str | None, drafts: int | None, threads: int
) -> list[tuple[str, str, bool]]: ...
def kept_from_leaves(
    rule: str, widths: Sequence[int], p: _Floats, q: _Floats, tokens: Sequence[int]
) -> list[float]: ...
def draft_rows(rows: NDArray[Any], n: int, law: str, coins: _Floats) -> _Integers: ...
def verify_tree(
    p: NDArray[Any],
    q: NDArray[Any],
    tokens: Sequence[int],
    parents: Sequence[int],
    law: str,
    traversal: bool,
    levels: Sequence[Sequence[float]],
    coins: _Floats,
) -> tuple[list[int], int]: ...
def optimum(
    p: Sequence[float], q: Sequence[float], n: int, scheme: str
) -> tuple[float, float, float]: ...
def compare(
    logs: Sequence[Log],
    asked: dict[str, Any],
    threads: int,
    progress: _Progress,
) -> Made: ...
def command(
    args: Sequence[str], lent: Sequence[Log], threads: int, progress: _Progress
) -> Made: ...
def keep(args: Sequence[str], lent: Sequence[Log], threads: int) -> None: ...
def cite(report: str | None) -> str: ...
def drafter(json: str) -> Made: ...
def cut_order(
    order: str, temperature: float, top_k: int | None, top_p: float | None
) -> str: ...
def served(
    log: Log, options: Sequence[str], start: int, stop: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64] | None]: ...
def usual_serving(logs: Sequence[Log]) -> tuple[list[float], dict[str, Any]]: ...
def clustered(values: Sequence[float], clusters: Sequence[int]) -> _Bounds: ...
def strange_draft(prompts: Sequence[tuple[float, float, float, float]]) -> str | None: ...
def clustered_sums(sums: Sequence[float], sizes: Sequence[float]) -> _Bounds: ...
@final
class Plan:
    def __new__(
        cls, p: _Typed, q: _Typed, n: int, scheme: str, logits: bool, temperature: float
    ) -> Plan: ...
    @staticmethod
    def of_law(
        law: RowLaw, p: _Typed, qs: Sequence[_Typed], logits: bool, temperature: float
    ) -> Plan: ...
    def emit(self, drafts: _Integers, seed: int) -> tuple[_Integers, _Integers]: ...
    def accepted(self, drafts: _Integers) -> _Floats: ...
    @property
    def residual(self) -> _Floats: ...
    @property
    def optimum(self) -> _Bounds: ...
    @property
    def acceptance(self) -> _Bounds: ...
    @property
    def drafts(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...

@final
class Priced:
    def __new__(cls, text: str) -> Priced: ...
    @property
    def law(self) -> str: ...
    @property
    def limits(self) -> tuple[int, int]: ...
    def draft_rows(
        self,
        rows: NDArray[np.float32],
        law: str,
        price: float,
        depth: int,
        chances: Sequence[float],
        coins: _Floats,
    ) -> list[tuple[list[int], list[float]]]: ...
@final
class RowLaw:
    def __new__(cls, json: str) -> RowLaw: ...
    @property
    def made(self) -> str: ...
    def alpha(
        self,
        p: _Typed,
        qs: Sequence[_Typed],
        logits: bool,
        temperature: float,
        threads: int,
        progress: _Progress,
    ) -> tuple[_Answered, int, tuple[_Floats, _Floats, NDArray[np.uint8]] | None]: ...
    def acceptance(
        self,
        name: str,
        p: _Typed,
        qs: Sequence[_Typed],
        logits: bool,
        temperature: float,
        seed: int,
        threads: int,
        progress: _Progress,
    ) -> tuple[_Answered, int]: ...
    def at(self, vocabulary: int, qs: Sequence[_Floats]) -> DraftLaw: ...

@final
class DraftLaw:
    def __new__(cls, scheme: str, q: Sequence[float], n: int) -> DraftLaw: ...
    @property
    def count(self) -> float: ...
    @property
    def drafts(self) -> int: ...
    def alpha(self, p: Sequence[float]) -> _Bounds: ...
    def acceptance(self, name: str, p: Sequence[float]) -> _Bounds: ...
    def tuples(self) -> tuple[_Integers, _Floats]: ...

@final
class Log:
    @staticmethod
    def open(path: _Path, vocabulary: int | None) -> Log: ...
    @staticmethod
    def held(
        name: _Path,
        tensors: Sequence[tuple[str, NDArray[Any], str]],
        metadata: str,
        vocabulary: int | None,
    ) -> Log: ...
    @staticmethod
    def fetched(
        path: _Path,
        tensors: Sequence[tuple[str, Sequence[int], str]],
        fetch: Callable[[str, int, int], NDArray[np.uint8]],
        metadata: str,
        vocabulary: int | None,
        in_memory: bool,
    ) -> Log: ...
    def called(self, name: str) -> Log: ...
    def at_depth(self, depth: int) -> Log: ...
    @property
    def depth(self) -> int: ...
    @property
    def depths(self) -> int: ...
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def in_memory(self) -> bool: ...
    @property
    def kept(self) -> int | None: ...
    @property
    def positions(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def listed(self) -> int: ...
    @property
    def kinds(self) -> tuple[str, str]: ...
    @property
    def dtypes(self) -> tuple[str, str]: ...
    @property
    def has_tokens(self) -> bool: ...
    @property
    def own_lists(self) -> bool: ...
    @property
    def engine_tensors(self) -> list[str]: ...
    @property
    def ignored(self) -> list[str]: ...
    def metadata(self) -> str: ...
    @property
    def may_lack_drafts(self) -> bool: ...
    def row(
        self, index: int
    ) -> tuple[
        _Integers, _Floats, _Floats, list[int | None], list[_Floats], list[float | None]
    ]: ...
    def engine(self) -> list[tuple[list[int], list[int | None]]]: ...

@final
class LogWriter:
    def __new__(
        cls,
        path: _Path,
        vocabulary: int,
        dtype: str,
        metadata: str,
        top: int | None,
        rest_temperatures: Sequence[float],
        shard_bytes: int,
        resume: bool,
        lists: bool,
    ) -> LogWriter: ...
    @property
    def positions(self) -> int: ...
    def append(
        self,
        target: NDArray[np.float32],
        draft: NDArray[np.float32] | None,
        ids: tuple[Sequence[int], Sequence[int]] | None,
        prompt_id: int,
        position: int,
        token: int,
        drafts: Sequence[int],
        output: int | None,
        accepted: int | None,
        round: int | None,
        batch_size: int | None,
        seed: int | None,
    ) -> None: ...
    def commit(self) -> None: ...
    def set_metadata(self, json: str) -> None: ...
    def close(self) -> None: ...

@final
class Made:
    @property
    def ok(self) -> bool: ...
    @property
    def regressions(self) -> list[str]: ...
    @property
    def json(self) -> bytes: ...
    def html(self) -> str: ...
    def markdown(self) -> str: ...
    def text(self, width: int, whole: bool) -> str: ...
    def lead(self) -> tuple[str, list[str], str, list[str]]: ...
    def tables(self) -> list[tuple[str, str, list[str]]]: ...
    def table(
        self, name: str, columns: Sequence[str], digits: int | None
    ) -> tuple[list[str], str]: ...
    def figures(self) -> list[tuple[str, str]]: ...
    def figure(self, name: str, kind: str) -> bytes: ...
    def files(self, paper: dict[str, Any]) -> list[tuple[str, bytes]]: ...

@final
class Summary:
    @staticmethod
    def measure(
        logs: Sequence[Log],
        asked: dict[str, Any],
        index: int,
        count: int,
        table: bool,
        threads: int,
        progress: _Progress,
    ) -> tuple[Summary, dict[str, tuple[Any, NDArray[np.bool_] | None]] | None]: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Summary: ...
    def to_bytes(self) -> bytes: ...
    def merged(self, other: Summary) -> Summary: ...
    @property
    def positions(self) -> int: ...
    @property
    def logs(self) -> list[str]: ...
    @property
    def missing(self) -> list[str]: ...
    def report(self, given: Sequence[str]) -> Made: ...

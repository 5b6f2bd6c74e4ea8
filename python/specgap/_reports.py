"""Reports of logs: what the commands `gap`, `length`, `tree`, `paths` and `audit` make."""

from __future__ import annotations

import csv
import html
import io
import json
import operator
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._arrays import ArrayLike, natural, threads_of
from ._errors import Refused, by_any_name, stands_for_a_command, unexpected
from ._first_screen import Lead, first_screen, table_html
from ._kept import Kept
from ._logs import Log, LogLike, PathLike, each_opened, is_foreign, is_named, is_one, opened
from ._names import LawName, TreeRuleName
from ._parquet import is_parquet
from ._progress import Progress, shown
from ._own_laws import complete, split_schemes, with_told
from ._paper import escaped, floated, label_of, legend
from ._sequential import Rivals, called, split
from .laws import Law

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Laws of drafts by name.
LawNames: TypeAlias = "LawName | Sequence[LawName] | None"
#: Names, and laws of one's own.
Schemes: TypeAlias = "LawName | Law | Sequence[LawName | Law] | None"


class Options(TypedDict, total=False):
    """Keywords of :func:`gap` about what is measured that the command has too."""

    block_length: int
    seed: int
    rrs_wo: str
    plans: str
    solve_times: bool
    top_k: int | None
    top_p: float | None
    min_p: float | None
    cut_order: str | None
    draft_temperature: float | Sequence[float] | None
    draft_top_k: int | None
    draft_top_p: float | None
    draft_min_p: float | None
    depth: int | str | Sequence[int] | None
    paired: bool
    pool: bool


class Measured(Options, total=False):
    """All of them: what a part of a report is asked."""

    drafts: int | str | Sequence[int] | None
    temperature: float | Sequence[float] | None
    schemes: Schemes
    verifiers: Rivals
    samples: int


class Told(TypedDict, total=False):
    """Keywords of :func:`gap` about what a report says of what was measured."""

    engine: str | None
    cost_ratio: float | None
    timings: PathLike | None
    baseline: PathLike | None
    within: float | None
    junit: PathLike | None


class OfFiles(Measured, total=False):
    """The same of logs by their paths, and how these are read."""

    vocabulary: int | None
    metadata: Mapping[str, Any] | None


class Whole(OfFiles, Told, total=False):
    """What a report of logs by their paths is asked."""
#: One log, or several; by name, too.
Logs: TypeAlias = "LogLike | Sequence[LogLike] | Mapping[str, LogLike]"


#: Rows of a table of positions that is kept unasked: some 5 MB.
_SMALL_TABLE = 10_000


class Positions:
    """The table of a gap report: a row for each position, temperature and number of drafts.

    Columns are log, number, prompt_id, position, token, temperature, drafts, target_rest,
    draft_rest, and three a number: NAME, NAME/lower, NAME/upper (docs/reference/json.md). Any library
    that takes Arrow takes it as it is: ``pyarrow.table(positions)``, ``polars.DataFrame(positions)``.
    """

    def __init__(self, columns: Mapping[str, tuple[Any, NDArray[np.bool_] | None]]) -> None:
        self._columns = dict(columns)

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))[0])

    def to_numpy(self) -> dict[str, NDArray[Any]]:
        """Columns as arrays. What is not there is nan; a column of whole numbers that lacks
        some is of floats."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, (values, absent) in self._columns.items():
            array = np.asarray(values)
            if absent is not None and array.dtype.kind == "i" and absent.any():
                array = np.where(absent, np.nan, array.astype(np.float64))
            arrays[name] = array
        return arrays

    def to_long(self) -> Positions:
        """A row for each number, as plots want them: log, number, prompt_id, position, token,
        temperature, drafts, scheme (the draft law), verifier (``optimum`` for alpha*), value,
        lower, upper. ``overlap`` has no scheme. Numbers that were not measured are left out.

        >>> # sg.gap("log").positions().to_long().to_pandas().groupby(["drafts", "verifier"])
        """
        numbers = [name for name in self._columns if f"{name}/lower" in self._columns]
        said = ("log", "number", "prompt_id", "position", "token", "temperature", "drafts")
        there = {name: np.isfinite(self._columns[name][0]) for name in numbers}
        columns: dict[str, tuple[Any, NDArray[np.bool_] | None]] = {}
        for name in said:
            values, absent = self._columns[name]
            every = [np.asarray(values)[there[one]] for one in numbers]
            missing = [absent[there[one]] for one in numbers] if absent is not None else None
            columns[name] = (
                np.concatenate(every),
                None if missing is None else np.concatenate(missing),
            )
        counts = [int(there[name].sum()) for name in numbers]
        parts = [name.rpartition("/") for name in numbers]
        for name, words in (
            ("scheme", [law for law, _, _ in parts]),
            ("verifier", [rule for _, _, rule in parts]),
        ):
            columns[name] = np.repeat(np.asarray(words, dtype=object), counts), None
        for name, end in (("value", ""), ("lower", "/lower"), ("upper", "/upper")):
            every = [np.asarray(self._columns[f"{one}{end}"][0])[there[one]] for one in numbers]
            columns[name] = np.concatenate(every), None
        return Positions(columns)

    def to_arrow(self) -> Any:
        """As a pyarrow.Table, with nulls where there is nothing."""
        import pyarrow as pa

        return pa.table(
            {
                name: pa.array(values, mask=absent) if absent is not None else pa.array(values)
                for name, (values, absent) in self._columns.items()
            }
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's C interface, through which other libraries take the table."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """As a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.to_numpy())

    def to_polars(self) -> Any:
        """As a polars.DataFrame, with nulls where there is nothing."""
        import polars

        frame = polars.DataFrame({name: values for name, (values, _) in self._columns.items()})
        nulls = []
        for name, (_, absent) in self._columns.items():
            if absent is not None and absent.any():
                there = polars.Series(~absent)
                nulls.append(polars.when(there).then(polars.col(name)).alias(name))
        return frame.with_columns(nulls) if nulls else frame

    def __repr__(self) -> str:
        return f"Positions({len(self)} rows, {len(self._columns)} columns)"

    def _repr_html_(self) -> str:
        def word(value: Any) -> str:
            return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)

        first = [
            [word(array[row]) for array in self.to_numpy().values()] for row in range(min(len(self), 5))
        ]
        return table_html(repr(self), self.names, first, most=(5, 14))


class Summary:
    """Everything that a gap report needs of some positions. Summaries of parts merge, in any
    order and to the bit, into that of all: on other machines, by pickle or as bytes.

    >>> import specgap as sg
    >>> # sg.Summary.of("log", part=(1, 2)).merge(sg.Summary.of("log", part=(2, 2))).report()
    """

    def __init__(self, native: _native.Summary) -> None:
        self._native = native

    @classmethod
    def of(
        cls,
        logs: Logs,
        *,
        part: tuple[int, int] = (1, 1),
        threads: int = 0,
        progress: Progress = None,
        vocabulary: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        **asked: Unpack[Measured],
    ) -> Summary:
        """Measures the I-th of K stretches of every log's positions, counted from 1. What is
        measured is said as :func:`gap` takes it, and what else its report says in :meth:`report`."""
        if not isinstance(part, (tuple, list)) or len(part) != 2:
            raise TypeError(f"part: give the I-th of K stretches as (I, K); this is {part!r}")
        wanted = _asked(**asked)
        every = each_opened(logs, vocabulary, metadata)
        native, _ = _native.Summary.measure(
            [log._native for log in every],
            _of_logs(wanted, every),
            *part,
            False,
            threads,
            shown(progress),
        )
        return cls(native)

    @classmethod
    def from_bytes(cls, data: bytes) -> Summary:
        """Reads what :meth:`to_bytes` wrote, or ``specgap gap --partial``."""
        return cls(_native.Summary.from_bytes(bytes(data)))

    def to_bytes(self) -> bytes:
        """The same bytes for the same positions, however they were measured and merged;
        ``specgap merge`` takes them as a file."""
        return self._native.to_bytes()

    def merge(self, other: Summary) -> Summary:
        """Both together. Neither changes."""
        return Summary(self._native.merged(other._native))

    @property
    def positions(self) -> int:
        """How many positions it is of."""
        return self._native.positions

    @property
    def missing(self) -> list[str]:
        """Positions of its logs that are in no part, in words."""
        return self._native.missing

    def report(self, *, incomplete: bool = False, **given: Unpack[Told]) -> Report:
        """The report. Positions that are missing are an error unless ``incomplete``. ``given`` are
        ``engine``, ``cost_ratio``, ``timings``, ``baseline``, ``within`` and ``junit`` of :func:`gap`."""
        if self.missing and not incomplete:
            raise ValueError(
                f"{'; '.join(self.missing)}; merge the missing parts too, or say incomplete=True"
            )
        return self._report(_only(given, _SAID, "report"))

    def _report(self, given: Mapping[str, object], **kept: Any) -> Report:
        _refuse_alone(given)
        made = self._native.report(_options(given))
        # What files say is not in another process.
        lasts = all(given.get(name) is None for name in ("timings", "baseline"))
        return Report("gap", made, summary=self, given=given if lasts else None, **kept)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Summary.from_bytes, (self.to_bytes(),))

    def __repr__(self) -> str:
        return f"Summary(positions={self.positions}, logs={self._native.logs})"


def _refuse_alone(given: Mapping[str, object]) -> None:
    """Refuses what goes with a baseline alone."""
    for name in ("junit", "within"):
        if given.get(name) is not None and given.get("baseline") is None:
            raise Refused(f"{name}: goes with baseline=, the report that is compared with")


def _digits(digits: int | None) -> int | None:
    return None if digits is None else natural(digits, "digits")


class Table:
    """A table of a report, for a paper."""

    def __init__(
        self,
        made: _native.Made | Kept,
        name: str,
        caption: str,
        columns: list[str],
        report: Report | None = None,
    ) -> None:
        self._report = report
        #: As ``specgap --table latex=NAME`` takes it.
        self.name = name
        self.caption = caption
        self.columns = columns
        self._made = made

    def to_latex(
        self, columns: str | Sequence[str] | None = None, digits: int | None = None
    ) -> str:
        """For booktabs (a long one also for longtable), as narrow as a page: one that is too wide
        is in parts, one below the other. ``columns`` are names of columns behind the first, or of
        what spans them; ``digits`` those behind the point."""
        parts, _ = self._made.table(self.name, _names(columns) or [], _digits(digits))
        return "\n\\medskip\n".join(parts)

    def latex(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        digits: int | None = None,
        caption: str | None = None,
        label: str | None = None,
    ) -> str:
        """The same as a float that stands in a paper as it is: ``table``, the caption, a label and
        booktabs. The caption says what each number is, exact, enclosed or an estimate with its
        interval; ``caption`` is LaTeX of your own in its place."""
        parts, _ = self._made.table(self.name, _names(columns) or [], _digits(digits))
        command = self._report.command if self._report is not None else ""
        if caption is None:
            data = self._report.to_dict() if self._report is not None else {}
            own = f"{escaped(self.caption)}. " if self.caption else ""
            caption = own + escaped(legend(command, data))
        return floated(parts, caption, label or label_of("specgap", command, self.name))

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows as words: a number with half of its 95% interval."""
        return _worded(self.to_csv())

    def to_csv(self, columns: str | Sequence[str] | None = None) -> str:
        """All digits: a number in NAME, the ends of its 95% interval in NAME/low and NAME/high,
        bounds of what it would be of full rows in NAME/lower and NAME/upper."""
        return self._made.table(self.name, _names(columns) or [], None)[1]

    def to_pandas(self) -> Any:
        """All digits, as :meth:`to_csv`, as a pandas.DataFrame."""
        import pandas

        return pandas.read_csv(io.StringIO(self.to_csv()))

    def to_polars(self) -> Any:
        """All digits, as :meth:`to_csv`, as a polars.DataFrame."""
        import polars

        return polars.read_csv(io.StringIO(self.to_csv()))

    def _repr_html_(self) -> str:
        return table_html(self.caption, *self.rows(), most=(40, 12))

    def __repr__(self) -> str:
        return f"Table({self.name!r}, columns={self.columns!r})"


#: Of pictures.
_FORMATS = ("svg", "pdf", "tex", "csv", "png")


def _no_format(name: str, given: str) -> str:
    """Why a picture is not written so."""
    return f"{name}: {given!r} is no format of pictures; give svg, pdf, tex, csv or png"


def _pixels(svg: bytes) -> bytes:
    """A picture as PNG, two pixels wide for each of its own, in the letters that it has as PDF."""
    try:
        import resvg_py
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "pictures as PNG need resvg-py: pip install 'specgap[png]'; svg and pdf need nothing",
            name="resvg_py",
        ) from None
    with tempfile.TemporaryDirectory() as home:
        font = Path(home) / "DejaVuSans.ttf"
        font.write_bytes(_native.font())
        drawn = resvg_py.svg_to_bytes(
            svg_string=svg.decode(),
            zoom=2,
            skip_system_fonts=True,
            font_files=[str(font)],
            sans_serif_family="DejaVu Sans",
        )
    return bytes(drawn)


class Figure:
    """A picture of a report, for a paper: without its title."""

    def __init__(self, made: _native.Made | Kept, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self._made = made

    @property
    def svg(self) -> bytes:
        """Lines and letters."""
        return self._made.figure(self.name, "svg")

    @property
    def pdf(self) -> bytes:
        """A page with its font inside."""
        return self._made.figure(self.name, "pdf")

    @property
    def tex(self) -> str:
        """An axis of pgfplots, in the paper's own font."""
        return self._made.figure(self.name, "tex").decode()

    @property
    def csv(self) -> str:
        """The numbers that are drawn."""
        return self._made.figure(self.name, "csv").decode()

    @property
    def png(self) -> bytes:
        """Pixels, twice as many as the page has: needs the extra ``specgap[png]``."""
        return self._as("png")

    def _as(self, kind: str) -> bytes:
        return _pixels(self.svg) if kind == "png" else self._made.figure(self.name, kind)

    def savefig(self, path: PathLike) -> Path:
        """Writes it as the name ends: .svg, .pdf, .tex, .csv or .png, which needs the extra
        ``specgap[png]``."""
        place = Path(path)
        kind = place.suffix.removeprefix(".").lower()
        if kind not in _FORMATS:
            raise Refused(_no_format("path", place.suffix or place.name))
        place.write_bytes(self._as(kind))
        return place

    def _repr_svg_(self) -> str:
        return self.svg.decode()

    def __repr__(self) -> str:
        return f"Figure({self.name!r}, title={self.title!r})"


class Report:
    """What a command finds: as data, as a page for people, and as files."""

    def __init__(
        self,
        command: str,
        made: _native.Made | Kept,
        *,
        summary: Summary | None = None,
        positions: Positions | None = None,
        again: Any = None,
        given: Mapping[str, object] | None = None,
    ) -> None:
        self.command = command
        #: What the report was made of, of a gap report.
        self.summary = summary
        self._made = made
        self._positions = positions
        self._again = again
        self._given = given

    @property
    def ok(self) -> bool:
        """False where the command's exit code would be 1: an audit that refutes something, a number
        that is worse than the baseline's."""
        return self._made.ok

    @property
    def regressions(self) -> list[str]:
        """The numbers that are worse than those of ``baseline``, in words."""
        return self._made.regressions

    @property
    def json(self) -> str:
        """The data, as the command prints it with ``--format json``, indented."""
        return self._made.json.decode()

    def to_dict(self) -> dict[str, Any]:
        """The data; docs/reference/json.md names every field."""
        return cast("dict[str, Any]", json.loads(self._made.json))

    def positions(self) -> Positions:
        """The table of all positions, of a gap report. It is kept of up to 10,000 rows, or with
        ``positions=True``; else it is measured again, once."""
        if self._positions is None:
            if self._again is None:
                raise ValueError(
                    "this report has no table of positions; gap() of one log, or with pool=True, "
                    "has one"
                )
            self._positions = self._again()
        return self._positions

    def html(self) -> str:
        """The page as HTML, with its pictures in it."""
        return self._made.html()

    def markdown(self) -> str:
        """The page as Markdown; its pictures are files beside it."""
        return self._made.markdown()

    def text(self, *, width: int = 100, whole: bool = False) -> str:
        """The page as plain text; ``whole`` has all sections."""
        return self._made.text(width, whole)

    @property
    def tables(self) -> list[str]:
        """The names of its tables."""
        return [name for name, _, _ in self._made.tables()]

    def table(self, name: str) -> Table:
        """A table, for a paper: ``report.table("acceptance").to_latex(digits=3)``."""
        for own, caption, columns in self._made.tables():
            if own == name:
                return Table(self._made, own, caption, columns, self)
        raise ValueError(f"table: there is no {name!r}; this report has {', '.join(self.tables)}")

    @property
    def figures(self) -> list[str]:
        """The names of its pictures."""
        return [name for name, _ in self._made.figures()]

    def figure(self, name: str) -> Figure:
        """A picture, for a paper: ``report.figure("possible").savefig("possible.pdf")``."""
        for own, title in self._made.figures():
            if own == name:
                return Figure(self._made, own, title)
        raise ValueError(f"figure: there is no {name!r}; this report has {', '.join(self.figures)}")

    def latex(self, name: str | None = None, **asked: Any) -> str:
        """A table as LaTeX that stands in a paper as it is, with its caption: the one that a notebook
        shows, or one of :attr:`tables`. Keywords are those of :meth:`Table.latex`."""
        return self.table(self.tables[0] if name is None else name).latex(**asked)

    def save_figures(
        self, folder: PathLike, formats: str | Sequence[str] = ("svg", "pdf")
    ) -> list[Path]:
        """Writes every picture as ``NAME.svg``, ``.pdf`` (a page with its font inside), ``.tex``
        (pgfplots), ``.csv`` or ``.png``, without titles, as papers have captions. Nothing else is
        needed for any but ``.png``, which needs the extra ``specgap[png]``. Returns the paths."""
        wanted = _names(formats) or []
        for wrong in [one for one in wanted if one not in _FORMATS]:
            raise Refused(_no_format("formats", wrong))
        made = [
            (f"{name}.{kind}", self.figure(name)._as(kind))
            for name in self.figures
            for kind in wanted
        ]
        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        for name, data in made:
            (home / name).write_bytes(data)
        return [home / name for name, _ in made]

    def save(
        self,
        folder: PathLike,
        *,
        figures: str | Sequence[str] = (),
        tables: str | Sequence[str] | Mapping[str, Sequence[str]] = (),
        columns: str | Sequence[str] = (),
        digits: int | None = None,
    ) -> Path:
        """Writes report.html, report.md, report.json and the pictures, as ``--out`` does: all
        of them or none. Returns the path of report.html.

        For a paper, ``figures`` are formats ("svg", "pdf", "tex", "png"), and ``tables`` too ("latex",
        "csv"), or a dict of formats with the names of tables; ``columns`` and ``digits`` are those
        of :meth:`Table.to_latex`, where tables without such a column keep all."""
        home = Path(folder)
        asked = tables if isinstance(tables, Mapping) else {one: () for one in _names(tables) or []}
        for wrong in [one for one in asked if one not in ("latex", "csv")]:
            raise ValueError(f"tables: {wrong!r} is no format; give latex or csv")
        named = {one: _names(names) for one, names in asked.items()}
        for name in [name for names in named.values() for name in names or []]:
            # A comparison also has those of each log.
            if self.command != "gap" or self.summary is not None:
                self.table(name)
        formats = _names(figures) or []
        # Pixels are made of lines, which are no file then.
        lines = ["svg"] * ("png" in formats and "svg" not in formats)
        paper = {
            "figures": [one for one in formats if one != "png"] + lines,
            "latex": named.get("latex"),
            "csv": named.get("csv"),
            "columns": _names(columns),
            "digits": digits,
        }
        made: list[tuple[Path, Path]] = []
        try:
            for name, data in self._paper(paper, "png" in formats, bool(lines)):
                place = home / name
                place.parent.mkdir(parents=True, exist_ok=True)
                handle, temporary = tempfile.mkstemp(prefix=".tmp", dir=place.parent)
                made.append((Path(temporary), place))
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
            mask = os.umask(0)
            os.umask(mask)
            for before, after in made:
                before.chmod(0o666 & ~mask)
                before.replace(after)
        finally:
            for before, _ in made:
                before.unlink(missing_ok=True)
        return home / "report.html"

    def _paper(
        self, paper: dict[str, Any], pixels: bool, alone: bool
    ) -> Iterator[tuple[str, bytes]]:
        """Files by name, with ``pixels`` of each picture of a paper too, or with these ``alone``."""
        for name, data in self._made.files(paper):
            of_paper = pixels and name.endswith(".svg") and Path(name).name.startswith("figure-")
            if of_paper:
                yield f"{name.removesuffix('.svg')}.png", _pixels(data)
            if not (of_paper and alone):
                yield name, data

    def __reduce__(self) -> tuple[Any, ...]:
        """What it says, and the table if it is kept: by its summary, or as it was made."""
        if self.summary is not None and self._given is not None:
            return (_of_summary, (self.summary, self._given, self._positions))
        return (_of_kept, (self.command, Kept.of(self._made), self._positions, self.summary))

    def _repr_html_(self) -> str:
        page = html.escape(self.html(), quote=True)
        whole = (
            '<details style="margin-top: .4em"><summary style="opacity: .75">The whole page</summary>'
            f"<iframe srcdoc=\"{page}\" title=\"specgap {self.command}\" loading=\"lazy\" "
            'style="width: 100%; height: 42em; border: 1px solid #8884"></iframe></details>'
        )
        return first_screen(Lead(*self._made.lead()), self._small_table(), whole)

    def _small_table(self) -> tuple[str, list[str], list[list[str]], str] | None:
        """The first table of the page; none of a report that came by pickle."""
        if isinstance(self._made, Kept) or not self.tables:
            return None
        table = self.table(self.tables[0])
        columns, rows = table.rows()
        return table.caption, columns, rows, f', report.table("{table.name}")'

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Report({self.command!r}, ok={self.ok})"


def _worded(text: str) -> tuple[list[str], list[list[str]]]:
    """A table of all digits as columns and rows of words."""
    head, *lines = csv.reader(io.StringIO(text))
    at = {name: place for place, name in enumerate(head)}
    ends = ("low", "high", "lower", "upper")
    own = [
        name for name in head if not any(name == f"{other}/{end}" for other in head for end in ends)
    ]
    if "group" in own and not any(line[at["group"]] for line in lines):
        own.remove("group")

    def number(line: list[str], name: str) -> float | None:
        place = at.get(name)
        try:
            return float(line[place]) if place is not None and line[place] else None
        except ValueError:
            return None

    def word(line: list[str], name: str) -> str:
        value = number(line, name)
        if value is None:
            # Of rows that list some tokens bounds alone are known.
            least, most = number(line, f"{name}/lower"), number(line, f"{name}/upper")
            if least is not None and most is not None:
                return f"{least:.3f} to {most:.3f}"
        if value is None or value == int(value) and f"{name}/low" not in at:
            return line[at[name]]
        low, high = number(line, f"{name}/low"), number(line, f"{name}/high")
        if low is None or high is None:
            least, most = number(line, f"{name}/lower"), number(line, f"{name}/upper")
            if least is not None and most is not None:
                return f"{least:.3f} to {most:.3f}"
            return f"{value:.3f}".rstrip("0").rstrip(".")
        return f"{value:.3f} ± {(high - low) / 2:.3f}"

    rows = [[word(line, name) for name in own] for line in lines]
    # A group stands where it begins.
    if own[:1] == ["group"]:
        own[0] = ""
        before = ""
        for row in rows:
            before, row[0] = row[0], "" if row[0] == before else row[0]
    return own, rows


def _of_summary(
    summary: Summary, given: Mapping[str, object], positions: Positions | None
) -> Report:
    return summary._report(given, positions=positions)


def _of_kept(
    command: str, kept: Kept, positions: Positions | None, summary: Summary | None
) -> Report:
    return Report(command, kept, positions=positions, summary=summary)


def cite(report: Report | PathLike | None = None) -> str:
    """BibTeX of specgap, with its version, and of the papers whose rules and laws a report has
    (or a report.json); of all papers without one.

    >>> import specgap as sg
    >>> assert sg.cite().startswith("@misc{specgap,")
    """
    if report is None or isinstance(report, Report):
        return _native.cite(None if report is None else report.json)
    return _native.cite(Path(report).read_text(encoding="utf-8"))


def _numbers(value: float | Sequence[float], name: str) -> list[float]:
    try:
        array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"{name}: give a number or several; this is {value!r}") from None
    return [float(x) for x in array]


def _wholes(value: int | str | Sequence[int], name: str) -> list[int]:
    """Whole numbers, several of them also as the command line has them: ``"2-4"``, ``"2,4"``."""
    refused = Refused(
        f"{name}: give whole numbers of at least 1, or such as '2-4'; this is {value!r}"
    )
    try:
        if isinstance(value, str):
            ends = [[int(end) for end in part.split("-")] for part in value.split(",")]
            numbers = [n for first, *last in ends for n in range(first, (*last, first)[0] + 1)]
        else:
            numbers = [_whole(one) for one in np.atleast_1d(np.asarray(value, dtype=object))]
    except (TypeError, ValueError):
        raise refused from None
    if not numbers or min(numbers) < 1:
        raise refused
    return numbers


def _whole(value: Any) -> int:
    """A whole number, of whatever type; 2.0 is one."""
    if isinstance(value, (float, np.floating)) and value == int(value):
        return int(value)
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(value)
    return operator.index(value)


def _names(value: str | Sequence[str] | None) -> list[str] | None:
    if value is None:
        return None
    return [value] if isinstance(value, str) else list(value)


#: Options of ``gap`` about what a report says of what was measured.
_SAID = frozenset(Told.__annotations__)
#: Those about what is measured that go to the command line as they are.
_MEASURED = frozenset(Options.__annotations__)


def _only(
    given: Mapping[str, Any], known: frozenset[str], call: str, meant: Iterable[str] = ()
) -> Mapping[str, Any]:
    for wrong in sorted(set(given) - known):
        raise unexpected(call, wrong, {*known, *meant})
    return given


def _asked(
    drafts: int | str | Sequence[int] | None = None,
    temperature: float | Sequence[float] | None = None,
    schemes: Schemes = None,
    verifiers: Rivals = None,
    samples: int = 20_000,
    **measured: Any,
) -> dict[str, Any]:
    named, laws = split_schemes(schemes)
    names, own, told = split(verifiers)
    numbers = _wholes((2, 3, 4) if drafts is None else drafts, "drafts")
    alone = set(names or ()) - {name for name, _ in told}
    others = bool(alone) or any(law is None for _, law in own)
    named, laws = with_told(named, laws, told, others=others, drafts=numbers)
    return {
        "drafts": numbers,
        # The logs' own, or 0.7 and 1, if not given.
        "temperature": [] if temperature is None else _numbers(temperature, "temperature"),
        "schemes": named,
        "verifiers": names,
        "own": [],
        "laws": [],
        # What :func:`_of_logs` completes, which knows how many tokens there are.
        "later": (laws, own, drafts is not None, samples),
        "measured": _only(measured, _MEASURED, "gap", Whole.__annotations__),
    }


def serving(
    log: Log, temperature: float | None, cuts: Mapping[str, Any]
) -> tuple[float, dict[str, Any]]:
    """The one temperature and the cuts with which a log's rows are read: its own where neither is said."""
    kept = dict(cuts)
    if temperature is None:
        usual, own = _native.usual_serving([log._native])
        temperature = usual[0] if len(usual) == 1 else 1.0
        if all(kept[name] is None for name in ("top_k", "top_p", "min_p")):
            kept = own
    given = _numbers(temperature, "temperature")
    if len(given) != 1:
        raise ValueError(
            f"temperature: {len(given)} are given; rows are read at one, so make a call for each"
        )
    return given[0], kept


def refuse_in_parts(**asked: Any) -> None:
    """Raises, before any log is read, for what :func:`gap` does not take, and for rules of one's own that
    parts which were measured elsewhere could not be told to share."""
    _, own, _, _ = _asked(**asked)["later"]
    for rule, _ in own:
        if getattr(rule, "digest", None) is None:
            raise Refused(
                f"verifiers: {called(rule)} has no digest, by which parts of one report tell that they "
                f"measured one rule; give it as specgap.Sequential(step, digest=..) or Formula(.., digest=..)"
            )


def _of_logs(
    asked: dict[str, Any], logs: Sequence[Log], said: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """The same with laws of one's own, and rules under them, and the options of the command."""
    laws, own, drafts_given, samples = asked.pop("later")
    complete(asked, laws, own, logs, drafts_given, samples)
    named = {"drafts": asked["drafts"], "temperature": asked["temperature"] or None}
    asked["options"] = _options({**named, **asked["measured"], **(said or {})})
    return asked


@stands_for_a_command
@by_any_name
def gap(
    logs: Logs | ArrayLike,
    draft_logits: ArrayLike = None,
    *,
    drafts: int | str | Sequence[int] | None = None,
    temperature: float | Sequence[float] | None = None,
    schemes: Schemes = None,
    verifiers: Rivals = None,
    samples: int = 20_000,
    block_length: int = 5,
    seed: int = 0,
    rrs_wo: str = "fast",
    plans: str = "audited",
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    cut_order: str | None = None,
    draft_temperature: float | Sequence[float] | None = None,
    draft_top_k: int | None = None,
    draft_top_p: float | None = None,
    draft_min_p: float | None = None,
    solve_times: bool = False,
    engine: str | None = None,
    cost_ratio: float | None = None,
    timings: PathLike | None = None,
    depth: int | str | Sequence[int] | None = None,
    paired: bool = False,
    baseline: PathLike | None = None,
    within: float | None = None,
    junit: PathLike | None = None,
    prompt_id: ArrayLike = None,
    position: ArrayLike = None,
    token: ArrayLike = None,
    metadata: Mapping[str, Any] | None = None,
    vocabulary: int | None = None,
    pool: bool = False,
    positions: bool | None = None,
    threads: int = 0,
    progress: Progress = None,
) -> Report:
    """How much every verifier accepts of n drafts, and how far it is from alpha*.

    ``logs`` is a log (a path, a :class:`Log`, a dict of arrays, a table with columns of lists, as
    :meth:`Log.of_table` takes it) or several, as a list or a dict by name, or the target's
    logits [N, V] with ``draft_logits`` beside them; then ``prompt_id``, ``position``, ``token``
    and ``metadata`` may say more (``metadata`` of Parquet files too). Several logs are measured each by itself and compared, or
    counted together with ``pool=True``, as logs of one pair of models.

    ``drafts`` and ``temperature`` are one number or several. Drafts are 2, 3 and 4 if not given, or
    as many as laws of your own have; the temperature is that at which
    the log's text was sampled, with its cuts, if not given, or 0.7 and 1 where the log does not say
    it. ``schemes`` and ``verifiers`` are names, the usual ones if not given. Among ``schemes`` may be
    laws of :mod:`specgap.laws`, each at its own n (several n under one name are one row of the
    tables): alpha* = 1 + min over H of P(H) - Q(H), dimensionless, ``enclosed`` at every position;
    where no method finds it, ``between`` has bounds of the mean, which are neither a sample's
    interval nor about tokens that are not listed. Named rules stand there that are lossless for
    the law. Under a sampler rules of your own are drawn, and alpha* is between 0 and 1. Among ``verifiers`` may be
    rules of your own, which stand beside the named ones in tables, pages and JSON, with their gap and
    paired differences; rows must then be full, or be cut to what they list. These are
    :class:`specgap.Sequential`, exact at any vocabulary under laws of independent drafts (of names,
    ``with-replacement`` if nothing else is said); :class:`specgap.Formula`; and functions of
    ``(p, q, drafts, rng)``, summed over all tuples where that takes no more calls than draws would, or
    else drawn, ``samples`` outputs over all positions: marked MC, with what draws leave beside the
    interval, which holds it. The last two stand under each of
    ``schemes``, under ``with-replacement`` if none is given; ``(rule, law)`` names one. ``(name, law)`` asks
    for a law too; named rules stand under every law that is asked for, where they are lossless. ``positions=True`` keeps the table of all positions, which is
    kept in any case if it is small.
    ``rrs_wo="enclosed"`` computes ``rrs-wo`` with proven bounds at every position, instead of
    fast and audited at some. ``level`` accepts alpha* of i.i.d. drafts by a theorem, and its plans
    are solved as a check where rates are audited, or with ``plans="every"`` at every position.
    ``top_k``, ``top_p`` and ``min_p`` cut both models' rows, as an engine serves them, in
    ``cut_order``: ``"k,p,m"``, ``"joint"``, ``"k,p,m,T"`` or a tool such as ``"llama.cpp"``; the
    log's if not given. Temperature 0 is greedy decoding. ``draft_temperature`` (one or several),
    ``draft_top_k``, ``draft_top_p`` and ``draft_min_p`` measure again with rows of the draft alone
    made so. ``block_length`` is that of the blocks of
    one draft path, ``seed`` that of rates that are simulated, and ``vocabulary`` keeps the first
    tokens of every row. ``solve_times`` puts the time of plans into the report. ``depth`` measures the
    draft's rows for these depths of a round, several each by itself, and ``paired`` refuses logs of
    another text than the first one's.

    ``engine`` names the engine whose default drafts and rule advice starts from. ``cost_ratio`` (time of
    a draft step over a target step's) or ``timings`` (a file of measured times) make acceptance a
    speed. ``baseline`` is an earlier report.json: ``ok`` is False where a number left its interval, or
    is further from it than ``within``, and ``regressions`` names these; ``junit`` is a file for them.
    ``threads`` and ``progress`` are as :func:`alpha` takes them.

    Returns a :class:`Report`, the same to the bit on any number of threads, and the same as that of
    the command ``specgap gap``. Raises :class:`Refused` for a log that cannot be used, with its
    tensor and row, and for what is asked that cannot be measured; ``FileNotFoundError`` where there
    is no such log.

    >>> import numpy as np
    >>> import specgap as sg
    >>> rows = np.log(np.random.default_rng(0).dirichlet(np.ones(20), 8))
    >>> law = sg.laws.composed({"law": "union", "of": [{"law": "top", "drafts": 1}, {
    ...     "law": "with-replacement", "drafts": 1, "avoid_top": 1}]}, name="top and a draw")
    >>> both = ["with-replacement", law]
    >>> report = sg.gap(rows[:4], rows[4:], temperature=1.0, schemes=both, progress=False)
    >>> [(cell["scheme"], cell["drafts"]) for cell in report.to_dict()["cells"]]
    [('with-replacement', 2), ('top and a draw', 2)]
    """
    given = locals()
    if draft_logits is not None:
        logs = Log.of_arrays(
            vocabulary=vocabulary,
            metadata=metadata,
            target_logits=logs,
            draft_logits=draft_logits,
            prompt_id=prompt_id,
            position=position,
            token=token,
        )
        vocabulary = metadata = None
    elif any(one is not None for one in (prompt_id, position, token)):
        raise ValueError("prompt_id, position and token go with arrays; a log has its own")
    measured = {name: one for name, one in given.items() if name in _MEASURED}
    asked = _asked(drafts, temperature, schemes, verifiers, samples, **measured)
    said = {name: one for name, one in given.items() if name in _SAID}
    _refuse_alone(said)
    opened_logs = each_opened(logs, vocabulary, metadata)
    asked = _of_logs(asked, opened_logs, said)
    every = [log._native for log in opened_logs]
    depths = 1 if depth is None else len(set(_wholes(depth, "depth")))
    if len(every) * depths > 1 and not pool:
        for name, wrong in (("positions", positions), ("baseline", baseline)):
            if wrong:
                raise Refused(f"{name}: measure one log, or several together with pool=True")
        made = _native.compare(every, asked, threads_of(threads), shown(progress))
        return Report("gap", made)

    def summed(table: bool) -> tuple[Summary, Positions | None]:
        native, columns = _native.Summary.measure(
            every, asked, 1, 1, table, threads_of(threads), shown(progress)
        )
        return Summary(native), None if columns is None else Positions(columns)

    rows = sum(log.positions for log in every)
    rows *= len(asked["drafts"]) * len(asked["temperature"] or _native.usual_serving(every)[0])
    summary, table = summed(rows <= _SMALL_TABLE if positions is None else bool(positions))
    return summary._report(said, positions=table, again=lambda: summed(True)[1])


def _option(value: object) -> str:
    if isinstance(value, Law):
        raise TypeError(
            f"schemes: {value.name} is a Law of one's own, which gap() and evaluate() take; give names"
        )
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)


def _options(given: Mapping[str, object]) -> list[str]:
    """Keywords as options of a command line."""
    args = []
    for key, value in given.items():
        option = f"--{key.replace('_', '-')}"
        if value is True:
            args.append(option)
        elif value is not None and value is not False:
            several = isinstance(value, Sequence) and not isinstance(value, str)
            several = several or isinstance(value, np.ndarray) and value.ndim > 0
            every = list(cast("Sequence[object]", value)) or [""] if several else [value]
            args += [f"{option}={_option(one)}" for one in every]
    return args


def _command(name: str, given: Mapping[str, Any]) -> Report:
    """Runs a command by its own command line, which knows the options among a call's keywords."""
    options = dict(given)
    logs, vocabulary, threads, progress = (
        options.pop(one)
        for one in ("log" if name == "audit" else "logs", "vocabulary", "threads", "progress")
    )
    command, lent = line_of(name, logs, vocabulary, options)
    made = _native.command(command, lent, threads_of(threads), shown(progress))
    return Report(name, made)


def line_of(
    name: str, logs: Any, vocabulary: int | None, options: Mapping[str, Any]
) -> tuple[list[str], list[_native.Log]]:
    """A command's line, and the logs that are lent to it."""
    args = [name, *_options(options)]
    if is_named(logs):
        raise ValueError(
            f"{name} counts logs together and compares none by name; give them as a list, or "
            "compare them with gap()"
        )
    lent: list[_native.Log] = []
    paths: list[str] = []
    several = cast("Sequence[LogLike]", [logs] if is_one(logs) else list(cast("Any", logs)))
    kept = vocabulary
    for log in several:
        # A path stays one, so that the command line opens it itself.
        path = os.fspath(log) if isinstance(log, (str, os.PathLike)) else None
        if path is not None and not is_parquet(path) and not is_foreign(path):
            paths.append(path)
            continue
        own = opened(log, vocabulary)
        paths.append(own.path)
        if own._native.in_memory:
            lent.append(own._native)
        elif own._native.kept is not None:
            kept = own._native.kept
    if kept is not None and not lent:
        args.append(f"--vocab={kept}")
    return [*args, "--", *paths], lent


@stands_for_a_command
def length(
    logs: Logs,
    *,
    lengths: int | str | Sequence[int] | None = None,
    policies: str | Sequence[str] | None = None,
    verifiers: str | Sequence[str] | None = None,
    drafts: str | Sequence[str] | None = None,
    draft_top_k: int | None = None,
    draft_top_p: float | None = None,
    draft_min_p: float | None = None,
    cut_order: str | None = None,
    max_length: int | None = None,
    profile: str | Sequence[str] | None = None,
    cost_ratio: float | None = None,
    timings: PathLike | None = None,
    engine: str | None = None,
    temperature: float | None = None,
    vocabulary: int | None = None,
    threads: int = 0,
    progress: Progress = None,
) -> Report:
    """How many tokens to draft: lengths and stopping policies replayed along logged text.

    ``logs`` is as :func:`gap` takes it, of N positions with rows of both models, ``prompt_id``,
    ``position`` and ``token``; texts of several are counted together. Keywords are the options of
    ``specgap length``: ``lengths`` are drafts a round, ``policies`` also stop by themselves (a
    family, or ``NAME=NUMBER``), ``verifiers`` are of ``token``, ``block``, ``greedy-block`` and
    ``carried-block``, ``drafts`` of ``sampled``, ``one-hot``, ``exact-match`` and ``shared-gumbel``, ``draft_top_k``,
    ``draft_top_p`` and ``draft_min_p`` cut the draft's rows alone (10 is llama.cpp's default top-k)
    in ``cut_order``, ``max_length`` is the most drafts of a round,
    ``profile`` formats of acceptance by draft length that :meth:`Report.save` writes too (``vllm``,
    ``sglang``, ``llama.cpp`` ..), ``cost_ratio`` the time of a draft step over that of a target step
    (dimensionless), ``timings`` a file of measured times, ``engine`` the one whose defaults advice
    starts from, and ``temperature`` that of the text, where the log does not say it. ``vocabulary``, ``threads`` and ``progress`` are as :func:`gap`
    takes them.

    Returns a :class:`Report`: tokens a round and the speedup (dimensionless) of each, with
    intervals of 95% over prompts. Raises :class:`Refused` for a log without a text, or whose text
    does not look drawn from its rows, and for what is asked that cannot be replayed.
    """
    return _command("length", locals())


@stands_for_a_command
@by_any_name
def tree(
    logs: Logs,
    *,
    topology: str | Sequence[str] | None = None,
    schemes: LawNames = None,
    verifiers: TreeRuleName | Sequence[TreeRuleName] | None = None,
    budget: int | None = None,
    max_depth: int | None = None,
    max_branch: int | None = None,
    cost_ratio: float | None = None,
    timings: PathLike | None = None,
    engine: str | None = None,
    slot_values: bool = False,
    price: bool = False,
    temperature: float | None = None,
    seed: int = 0,
    vocabulary: int | None = None,
    threads: int = 0,
    progress: Progress = None,
) -> Report:
    """Which tree of drafts to verify: trees replayed along logged text, and the best one.

    ``logs``, ``cost_ratio``, ``timings``, ``engine``, ``temperature``, ``vocabulary``, ``threads``
    and ``progress`` are as :func:`length` takes them. Other keywords are the options of
    ``specgap tree``: ``topology`` names trees (such as ``chain-2`` and
    ``2x2``, or files), ``schemes`` and ``verifiers`` say how a node's children are drawn and
    verified, or a tree from its leaves, ``budget``, ``max_depth`` and ``max_branch`` are the most draft tokens, levels and
    children of the best tree, ``slot_values`` adds what the children of the roots are worth,
    ``price`` trees at one price for all nodes (:func:`specgap.rules.children` reads it), and
    ``seed`` is that of rates that are simulated.

    Returns a :class:`Report`: tokens a round of each tree, with intervals of 95% over prompts, and
    the best tree, which :meth:`Report.save` also writes as EAGLE and Sequoia read it. Raises
    :class:`Refused` as :func:`length` does, and for trees that cannot be read.
    """
    return _command("tree", locals())


@stands_for_a_command
def paths(
    logs: Logs,
    *,
    paths: int | str | Sequence[int] | None = None,
    length: int | None = None,
    temperature: float | None = None,
    vocabulary: int | None = None,
    threads: int = 0,
    progress: Progress = None,
) -> Report:
    """What several draft paths could give, and what verifiers get of it.

    ``logs``, ``temperature``, ``vocabulary``, ``threads`` and ``progress`` are as :func:`length`
    takes them. ``paths`` are numbers of draft
    paths, such as ``[1, 2, 4]`` or ``"1-8"``, and ``length`` is the tokens of each: those of the
    logged paths, or 5, if not given.

    Returns a :class:`Report`: tokens a round, with intervals of 95% over prompts. Raises
    :class:`Refused` as :func:`length` does.
    """
    return _command("paths", locals())


@stands_for_a_command
def relaxed(
    logs: Logs,
    *,
    temperature: float | None = None,
    vocabulary: int | None = None,
    threads: int = 0,
    progress: Progress = None,
) -> Report:
    """What rules that are not lossless accept, and what they do to the law: acceptance, TV, KL, tokens let through,
    and the distance to the frontier, overlap + TV, of nine published rules by their parameter.

    Arguments are as :func:`length` takes them. Rows have to be whole, or all that the sampler may draw.

    Returns a :class:`Report` with intervals of 95% over prompts. Raises :class:`Refused` as :func:`length` does.
    """
    return _command("relaxed", locals())


@stands_for_a_command
def audit(
    log: LogLike,
    rule: str | None = None,
    *,
    scheme: str | None = None,
    seeds: str | None = None,
    noise: float | None = None,
    tolerance: float | None = None,
    exclude: float | None = None,
    strict: bool = False,
    alpha: float | None = None,
    counters: PathLike | Sequence[PathLike] | None = None,
    plain: PathLike | None = None,
    negative_control: bool = False,
    temperature: float | None = None,
    draft_temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    cut_order: str | None = None,
    draft_cut: bool = False,
    draft_top_k: int | None = None,
    draft_top_p: float | None = None,
    draft_min_p: float | None = None,
    draft_mask: bool = False,
    stop: int | Sequence[int] | None = None,
    junit: PathLike | None = None,
    markdown: PathLike | None = None,
    seed: int = 0,
    vocabulary: int | None = None,
    threads: int = 0,
    progress: Progress = None,
) -> Report:
    """Whether an engine samples what it claims: four verdicts on a log of its rounds.

    ``rule`` is what it claims: token, rrs, rrs-wo, level-4, k-seq, block, one-hot, exact-match,
    threshold:A or text, which is taken if the log has no drafts. ``scheme`` is the law of its drafts
    where it verifies several: stratified or stratified-independent of level-4. ``seeds`` says whether requests
    drew random numbers of their own (``fresh``) or not (``shared``), where the log does not; what
    is not known counts as shared.

    ``log`` has rows of N positions with ``drafts``, ``accepted`` and ``output``, or with ``token``
    alone. Other keywords are the options of ``specgap audit``: ``alpha`` is the level at which a
    part is refuted (a probability), ``tolerance`` how much the mean of a score may differ from the
    log's rows before it counts, ``noise`` how far rows may be from those that the engine had,
    ``exclude`` the distance of outputs from p up to which a log need not tell, ``strict`` fails other
    lossless rules too, ``counters`` are files of what a server counted, ``plain`` is a log of the text that the target wrote
    alone with the same seeds, which has to be the same, ``temperature``, ``top_k``, ``top_p`` and ``min_p`` what the target
    is sampled with, in ``cut_order`` (as in :func:`gap`), ``draft_temperature`` the draft's, and ``draft_cut`` says that its rows are cut
    too. ``draft_top_k`` (10 is llama.cpp's default), ``draft_top_p`` and ``draft_min_p`` cut the draft's rows alone. ``draft_mask`` says
    that masks (``allowed``) are the draft's too, and not the target's alone.
    ``stop`` are tokens that end a text. ``negative_control`` also tampers with the log in every
    listed way, and each has to be refused. ``junit`` and ``markdown`` are files to write, and
    ``seed`` is that of what is drawn. ``vocabulary``, ``threads`` and ``progress`` are as in
    :func:`gap`.

    Returns a :class:`Report`, whose ``ok`` is False where a part is refuted or a hard check fails.
    Raises :class:`Refused` for a log that has no record of rounds.
    """
    return _command("audit", locals())

"""Results of a run, and their display in a notebook."""

from __future__ import annotations

import html
from typing import AbstractSet, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, overload

from ._text import visible

Row = Dict[str, Any]

_SHOWN = 10
_WIDTH, _HEIGHT, _MARGIN, _LINE = 480, 160, 40, 16
# Times of rows that differ in these are not comparable.
_GROUP = ("kernel", "problem", "device", "timing")


class Results(Sequence[Row]):
    """Judged configurations, in the order in which the run reported them.

    Each row is a dict with the keys of the program's JSON: `kernel`, `problem`, `config`, `verdict`,
    `time_us` (null if the verdict is not `ok`), `timing` (`measured`, `predicted` or `recorded`),
    `compared`, `best_us`, and others.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        *,
        run_id: Optional[str] = None,
        device: Optional[str] = None,
        reason: Optional[str] = None,
        interrupted: bool = False,
        verdicts: Optional[Mapping[str, int]] = None,
        ranked: bool = False,
    ) -> None:
        self._rows = list(rows)
        #: Identity of the run in the database; None for rows of several runs.
        self.run_id = run_id
        #: Device of the run.
        self.device = device
        #: Reason of the run's end, such as `evals` or `budget`.
        self.reason = reason
        #: The run was interrupted: these are the results until then.
        self.interrupted = interrupted
        #: Number of configurations by verdict.
        self.verdicts: Dict[str, int] = dict(verdicts or _count_verdicts(self._rows))
        #: The rows are a ranking, and not in the order of a run.
        self.ranked = ranked

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> List[Row]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Row, List[Row]]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __repr__(self) -> str:
        best = [f"{row['time_us']:.3f} us {visible(row.get('timing', ''))}".rstrip() for row in self.bests[:_SHOWN]]
        names = [f" ({visible(_problem_of(row))})" if len(best) > 1 else "" for row in self.bests]
        text = f", best {', '.join(map(''.join, zip(best, names)))}" if best else ""
        return f"<Results: {len(self)} configurations{text}>"

    @property
    def passed(self) -> List[Row]:
        """Rows with a time, fastest first, of each kernel, problem, device and kind of time in turn."""
        return [row for rows in self._groups() for row in rows]

    @property
    def best(self) -> Optional[Row]:
        """The fastest row, or None if no configuration passed: of the first kernel and problem if there are several."""
        return next(iter(self.passed), None)

    @property
    def bests(self) -> List[Row]:
        """The fastest row of each kernel, problem, device and kind of time."""
        return [rows[0] for rows in self._groups()]

    def _groups(self) -> List[List[Row]]:
        """Returns the rows with a time whose times are comparable together, fastest first."""
        groups: Dict[Tuple[str, ...], List[Row]] = {}
        for row in self._rows:
            if row.get("time_us") is not None:
                groups.setdefault(tuple(str(row.get(name)) for name in _GROUP), []).append(row)
        return [sorted(rows, key=lambda row: float(row["time_us"])) for rows in groups.values()]

    def to_frame(self) -> Any:
        """Returns a pandas DataFrame with a column for each parameter.

        Raises ImportError with advice if pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame() needs pandas; type `pip install pandas`") from error
        keys = {name for row in self._rows for name in row}
        return pandas.DataFrame([flatten_row(row, keys) for row in self._rows])

    def _repr_html_(self) -> str:
        """Returns a table of the best rows and the convergence plot."""
        groups = self._groups()
        shown = max(1, _SHOWN // max(1, len(groups)))
        rows = [(rank, row) for group in groups for rank, row in enumerate(group[:shown], 1)]
        names = list(dict.fromkeys(name for _, row in rows for name in row.get("config", {})))
        columns = [name for name in _GROUP[:3] if any(name in row for _, row in rows)]
        head = _html_row("th", ["", *columns, "time, us", "timing", *names])
        body = "".join(_html_row("td", _cells(rank, row, columns, names)) for rank, row in rows)
        counts = ", ".join(f"{verdict} {count}" for verdict, count in self.verdicts.items())
        title = f"{len(self)} configurations on {self.device or 'several devices'}: {counts}"
        title = html.escape(visible(title))
        return f"<div><p>{title}</p><table>{head}{body}</table>{self._plot()}</div>"

    def _plot(self) -> str:
        """Draws the best time of each problem against the number of its configurations as SVG; nothing for a ranking."""
        problems: Dict[str, List[Row]] = {}
        for row in [] if self.ranked else self._rows:
            problems.setdefault(_problem_of(row), []).append(row)
        curves = [(name, len(rows), _convergence(rows)) for name, rows in problems.items()]
        curves = [curve for curve in curves if len(curve[2]) > 1][:_SHOWN]
        labels = [
            f"{name + ': ' if len(curves) > 1 else ''}best time: {points[0][1]:.3f} to {points[-1][1]:.3f} us in {count} configurations"
            for name, count, points in curves
        ]
        if not curves:
            return ""
        height = _HEIGHT + _LINE * (len(curves) - 1)
        lines = "".join(_polyline(number, count, points) for number, (_, count, points) in enumerate(curves))
        texts = "".join(
            f'<text x="{_MARGIN}" y="{_HEIGHT - 8 + _LINE * number}" font-size="12" fill="currentColor">{html.escape(visible(label))}</text>'
            for number, label in enumerate(labels)
        )
        label = html.escape(visible("; ".join(labels)))
        return f'<svg width="{_WIDTH}" height="{height}" role="img" aria-label="{label}">{lines}{texts}</svg>'


def flatten_row(row: Row, keys: AbstractSet[str] = frozenset()) -> Row:
    """Returns the row with its parameters as keys beside the others: as `config.NAME` where the row, or `keys`, has
    the name."""
    flat = {name: value for name, value in row.items() if name != "config"}
    taken = {*flat, *keys}
    return {**{f"config.{name}" if name in taken else name: value for name, value in row.get("config", {}).items()}, **flat}


def _problem_of(row: Row) -> str:
    return " ".join(str(row[name]) for name in _GROUP[:2] if name in row)


def _convergence(rows: Sequence[Row]) -> List[Tuple[int, float]]:
    """Returns the best time until each row, from the first one with a time."""
    best, points = float("inf"), []
    for number, row in enumerate(rows):
        if row.get("time_us") is not None:
            best = min(best, float(row["time_us"]))
        if best < float("inf"):
            points.append((number, best))
    return points


def _polyline(number: int, count: int, points: Sequence[Tuple[int, float]]) -> str:
    """Draws a curve in the whole height; `number` chooses its dashes."""
    low, high = points[-1][1], points[0][1]
    span = (high - low) or 1.0
    wide = _WIDTH - 2 * _MARGIN
    tall = _HEIGHT - 2 * _MARGIN
    text = " ".join(
        f"{_MARGIN + wide * x / max(1, count - 1):.1f},{_HEIGHT - _MARGIN - tall * (y - low) / span:.1f}" for x, y in points
    )
    dashes = f' stroke-dasharray="{2 * number} {number}"' if number else ""
    return f'<polyline points="{text}" fill="none" stroke="currentColor"{dashes}/>'


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(visible(cell))}</{tag}>' for cell in cells)}</tr>"


def _cells(rank: int, row: Row, columns: Sequence[str], names: Sequence[str]) -> List[str]:
    config = row.get("config", {})
    time = f"{float(row['time_us']):.3f}"
    group = [str(row.get(name, "")) for name in columns]
    return [str(rank), *group, time, str(row.get("timing", "")), *(str(config.get(name, "")) for name in names)]


def _count_verdicts(rows: Sequence[Row]) -> Dict[str, int]:
    counts: Dict[str, int] = {}
    for row in rows:
        verdict = str(row.get("verdict", "ok"))
        counts[verdict] = counts.get(verdict, 0) + 1
    return counts

"""Results of a run, and their display in a notebook."""

from __future__ import annotations

import html
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union, overload

from ._text import visible

Row = Dict[str, Any]

_SHOWN = 10
_WIDTH, _HEIGHT, _MARGIN = 480, 160, 40


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
        best = self.best
        text = f", best {best['time_us']:.3f} us {visible(best.get('timing', ''))}".rstrip() if best else ""
        return f"<Results: {len(self)} configurations{text}>"

    @property
    def passed(self) -> List[Row]:
        """Rows with a time, fastest first."""
        timed = [row for row in self._rows if row.get("time_us") is not None]
        return sorted(timed, key=lambda row: float(row["time_us"]))

    @property
    def best(self) -> Optional[Row]:
        """The fastest row, or None if no configuration passed."""
        return next(iter(self.passed), None)

    def to_frame(self) -> Any:
        """Returns a pandas DataFrame with a column for each parameter.

        Raises ImportError with advice if pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame() needs pandas; type `pip install pandas`") from error
        return pandas.DataFrame([flatten_row(row) for row in self._rows])

    def _repr_html_(self) -> str:
        """Returns a table of the best rows and the convergence plot."""
        rows = self.passed[:_SHOWN]
        names = list(rows[0].get("config", {})) if rows else []
        head = "".join(f"<th>{html.escape(visible(name))}</th>" for name in ["", "time, us", "timing", *names])
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(visible(cell))}</td>" for cell in _cells(rank, row, names)) + "</tr>"
            for rank, row in enumerate(rows, 1)
        )
        counts = ", ".join(f"{verdict} {count}" for verdict, count in self.verdicts.items())
        title = f"{len(self)} configurations on {self.device or 'several devices'}: {counts}"
        title = html.escape(visible(title))
        return f"<div><p>{title}</p><table><tr>{head}</tr>{body}</table>{self._plot()}</div>"

    def _plot(self) -> str:
        """Draws the best time against the number of configurations as SVG."""
        best, points = float("inf"), []
        for number, row in enumerate(self._rows):
            if row.get("time_us") is not None:
                best = min(best, float(row["time_us"]))
            if best < float("inf"):
                points.append((number, best))
        if len(points) < 2:
            return ""
        low, high = min(y for _, y in points), max(y for _, y in points)
        span = (high - low) or 1.0
        wide = _WIDTH - 2 * _MARGIN
        tall = _HEIGHT - 2 * _MARGIN
        place = " ".join(
            f"{_MARGIN + wide * x / max(1, len(self) - 1):.1f},{_HEIGHT - _MARGIN - tall * (y - low) / span:.1f}"
            for x, y in points
        )
        label = f"best time: {high:.3f} to {low:.3f} us in {len(self)} configurations"
        return (
            f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}">'
            f'<polyline points="{place}" fill="none" stroke="currentColor"/>'
            f'<text x="{_MARGIN}" y="{_HEIGHT - 8}" font-size="12" fill="currentColor">{label}</text></svg>'
        )


def flatten_row(row: Row) -> Row:
    """Returns the row with its parameters as keys beside the others."""
    flat = {name: value for name, value in row.items() if name != "config"}
    return {**row.get("config", {}), **flat}


def _cells(rank: int, row: Row, names: Sequence[str]) -> List[str]:
    config = row.get("config", {})
    time = f"{float(row['time_us']):.3f}"
    return [str(rank), time, str(row.get("timing", "")), *(str(config.get(name, "")) for name in names)]


def _count_verdicts(rows: Sequence[Row]) -> Dict[str, int]:
    counts: Dict[str, int] = {}
    for row in rows:
        verdict = str(row.get("verdict", "ok"))
        counts[verdict] = counts.get(verdict, 0) + 1
    return counts
